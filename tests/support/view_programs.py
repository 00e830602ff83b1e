"""Programs that read a view along any axis: by a map, a contraction, a reduction."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from semantics import parse_module
from xdsl.dialects.func import FuncOp

from comet.codegen.numpy_reference import ReferencePrinter
from comet.interpreter.tensor import Array

EXTENTS = {"A": 6, "B": 4, "C": 5}
Extents: TypeAlias = Mapping[str, int]


def tensor(extents: Extents) -> str:
    """Return the type of a tensor of f32."""
    shape = "".join(f"{extent}x" for extent in extents.values())
    return f"tensor<{shape}f32, #compound.dims<{', '.join(extents)}>>"


@dataclass(frozen=True)
class ViewOf:
    """Lines that make `%v`, a view of `%e`, and the extents of both."""

    lines: str
    before: Extents
    after: Extents


def views() -> Iterator[tuple[str, ViewOf]]:
    """Yield the views by name: every kind along every axis of every rank."""
    for rank in range(1, len(EXTENTS) + 1):
        before = dict(list(EXTENTS.items())[:rank])
        for dim in before:
            for kind, view in _along(before, dim):
                yield f"{kind}_{dim}_of_{''.join(before)}", view


def _along(before: Extents, dim: str) -> Iterator[tuple[str, ViewOf]]:
    extent, old, names = before[dim], tensor(before), list(before)
    named = _replaced(before, dim, {"Z": extent})
    line = f"%v = compound.rename %e : {old} -> {tensor(named)}"
    yield "renamed", ViewOf(line, before, named)
    if extent % 2 == 0:
        parts = _replaced(before, dim, {"P": 2, "Q": extent // 2})
        line = f'%v = compound.rename %e split "{dim}" : {old} -> {tensor(parts)}'
        yield "split", ViewOf(line, before, parts)
    if dim != names[-1]:
        following = names[names.index(dim) + 1]
        merged = _replaced(before, dim, {"Z": extent * before[following]})
        del merged[following]
        line = f'%v = compound.rename %e merge "{dim}" : {old} -> {tensor(merged)}'
        yield "merged", ViewOf(line, before, merged)
    part = {**before, dim: extent - 3}
    line = f'%v = compound.slice %e "{dim}" [2, {extent - 3}] : {old} -> {tensor(part)}'
    yield "sliced", ViewOf(line, before, part)
    rest, longer = {**before, dim: 3}, {**before, dim: extent + 3}
    lines = f"""%t = compound.slice %e "{dim}" [1, 3] : {old} -> {tensor(rest)}
      %n = compound.map neg %t : {tensor(rest)} -> {tensor(rest)}
      %v = compound.concat "{dim}" %n, %e
        : {tensor(rest)}, {old} -> {tensor(longer)}"""
    yield "joined", ViewOf(lines, before, longer)
    line = f"%v = compound.pad %e <1.5 from {dim} = {extent}> : {old} -> "
    yield "padded", ViewOf(line + tensor(longer), before, longer)
    line = f"%v = compound.pad %e <-2.5 from {dim} = 2> : {old} -> {old}"
    yield "masked", ViewOf(line, before, before)


def _replaced(before: Extents, dim: str, new: Extents) -> dict[str, int]:
    after: dict[str, int] = {}
    for name, extent in before.items():
        after |= new if name == dim else {name: extent}
    return after


def programs() -> Iterator[tuple[str, str]]:
    """Yield @main for every view of an argument and of a computed value, by name."""
    for name, view in views():
        for made in (False, True):
            yield f"{name}_{'computed' if made else 'given'}", program(view, made)


def program(view: ViewOf, made: bool) -> str:
    """Return @main, which maps, multiplies and reduces a view, and returns it."""
    before, after = tensor(view.before), tensor(view.after)
    last = [*view.after][-1]
    kept = {dim: extent for dim, extent in view.after.items() if dim != last}
    weights, product = {last: view.after[last], "W": 7}, {**kept, "W": 7}
    first = f"%e = compound.map tanh %x : {before} -> {before}" if made else ""
    lines = view.lines if made else view.lines.replace("%e", "%x")
    types = ", ".join(map(tensor, (view.after, product, kept, view.after)))
    return f"""
    func.func @main(%x: {before}, %w: {tensor(weights)}) -> ({types}) {{
      {first}
      {lines}
      %m = compound.map erf %v : {after} -> {after}
      %s = compound.map tanh %v : {after} -> {after}
      %p = compound.contract %s, %w
        : {after}, {tensor(weights)} -> {tensor(product)}
      %r = compound.reduce max %v : {after} -> {tensor(kept)}
      func.return %m, %p, %r, %v : {types}
    }}"""


def reference(text: str) -> Callable[..., tuple[Array, ...]]:
    """Return what Python makes of the printed reference of @main."""
    (function,) = (op for op in parse_module(text).ops if isinstance(op, FuncOp))
    source = "\n".join(ReferencePrinter(function).lines())
    namespace: dict[str, Callable[..., tuple[Array, ...]]] = {}
    exec(source, {"np": np, "math": math}, namespace)
    return namespace["main"]
