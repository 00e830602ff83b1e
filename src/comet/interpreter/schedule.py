"""
Evaluates the nodes of a tile tree.

Every loop of a node is an axis along which tiles differ, just as along the mesh axes of
an SPMD region, so a body runs once for all tiles of its node. Only a node with
iter_args runs tile by tile, as each iteration uses the iter_args of the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from xdsl.ir import Operation
from xdsl.utils.exceptions import InterpretationError

from comet.dialects.compound import ReduceKind
from comet.dialects.schedule import CopyOp, SpatialOp, TemporalOp
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.slices import Cut
from comet.interpreter.instances import (
    agree,
    at,
    instance,
    join,
    reduced_over,
    split,
    stacked,
)
from comet.interpreter.machine import Interpreter, Values, evaluate
from comet.interpreter.tensor import Tensor, joined_lengths, selected


@dataclass(frozen=True)
class Slices:
    """The slices that one cut of a node makes, and the axes along which they lie."""

    cut: Cut
    axes: tuple[tuple[str, int], ...]
    """The axes and their extents, the first one major."""

    @property
    def dim(self) -> str:
        """The dimension that is cut."""
        return self.cut.dim


def slices_of(op: NodeOp) -> tuple[Slices, ...]:
    """Return the slices of each cut of a node; nested nodes get different axes."""
    depth, parent = 0, op.parent_op()
    while isinstance(parent, NodeOp):
        depth, parent = depth + 1, parent.parent_op()
    slices: list[Slices] = []
    for cut in op.cuts():
        again = any(other.dim == cut.dim for other in slices)
        name = f"{cut.dim} at depth {depth}{' again' if again else ''}"
        axes = tuple((loop.axis or name, loop.factor) for loop in cut.loops)
        slices.append(Slices(cut, axes))
    return tuple(slices)


def axes_of(slices: Iterable[Slices]) -> dict[str, int]:
    """Return the extent of each axis, the first one major."""
    return {axis: count for part in slices for axis, count in part.axes}


def tiled(value: Tensor, slices: Sequence[Slices]) -> Tensor:
    """Return all tiles of `value`, along the axes of the slices."""
    for part in slices:
        if part.dim in value.dims:
            value = split(value, part.dim, dict(part.axes), part.cut.tile)
    return value


def untiled(value: Tensor, slices: Sequence[Slices]) -> Tensor:
    """Return the value whose tiles are `value`: the inverse of `tiled`."""
    for part in reversed(slices):
        if part.dim in value.dims:
            value = join(value, part.dim, dict(part.axes), part.cut.extent)
    return value


def whole(op: Operation, value: Tensor) -> Tensor:
    """Return a value at `op`, a tile, as the whole value outside all nodes."""
    node = op.parent_op()
    if not isinstance(node, NodeOp):
        return value
    slices = slices_of(node)
    value = instance(value, axes_of(_reduced(slices, value)), 0)
    return whole(node, untiled(value, slices))


@evaluate.register
def _(op: SpatialOp, machine: Interpreter, args: Values) -> Values:
    return _all_at_once(op, machine, args)


@evaluate.register
def _(op: TemporalOp, machine: Interpreter, args: Values) -> Values:
    run = _one_by_one if op.iter_args else _all_at_once
    return run(op, machine, args)


@evaluate.register
def _(op: CopyOp, machine: Interpreter, args: Values) -> Values:
    """A copy changes no elements."""
    return args


def _all_at_once(op: NodeOp, machine: Interpreter, args: Values) -> Values:
    """Run the body once for all tiles."""
    slices, count = slices_of(op), len(args) - len(op.with_args)
    tiles = [tiled(arg, slices) for arg in args[:count]]
    yielded = machine.run_block(op.body.block, (*tiles, *args[count:]))
    if isinstance(op, SpatialOp) and op.merge is not None:
        yielded = _merged(op, machine, yielded)
    return tuple(
        _result(op, combiner, value, slices)
        for combiner, value in zip(op.combiners, yielded, strict=True)
    )


def _reduced(slices: Sequence[Slices], value: Tensor) -> tuple[Slices, ...]:
    """Return the slices of reduced dimensions, which the result `value` lacks."""
    return tuple(part for part in slices if part.dim not in value.dims)


def _result(
    op: NodeOp, combiner: Combiner, value: Tensor, slices: Sequence[Slices]
) -> Tensor:
    """Return one result of a node: its tiles combined, then concatenated."""
    axes = axes_of(_reduced(slices, value))
    return untiled(_combined(op, combiner, value, axes), slices)


def _combined(
    op: NodeOp, combiner: Combiner, value: Tensor, axes: Mapping[str, int]
) -> Tensor:
    match combiner:
        case Combiner.ADD:
            return reduced_over(value, ReduceKind.ADD, axes)
        case Combiner.MAX:
            return reduced_over(value, ReduceKind.MAX, axes)
        case Combiner.SAME:
            if not agree(value, axes):
                raise InterpretationError(
                    f"'{op.name}' op result {value.dims} is not the same in all tiles; "
                    "its combiner `same` says so"
                )
            return instance(value, axes, 0)
        case Combiner.ROOT:
            return instance(value, axes, 0)
        case Combiner.NONE:  # idle axes have one instance
            return instance(value, {a: n for a, n in axes.items() if n == 1}, 0)
        case Combiner.FOLD:
            return value


def _merged(op: SpatialOp, machine: Interpreter, yielded: Values) -> Values:
    """Return `yielded` with the `fold` results merged over the instances."""
    assert op.merge is not None
    folds = [i for i, kind in enumerate(op.combiners) if kind is Combiner.FOLD]
    reduced = {_reduced(slices_of(op), yielded[i]) for i in folds}
    if len(reduced) > 1:
        raise InterpretationError(
            f"'{op.name}' op merges results that lack different looped dimensions"
        )
    axes = axes_of(reduced.pop())
    partials = [yielded[i] for i in folds]
    merged = tuple(instance(value, axes, 0) for value in partials)
    for index in range(1, prod(axes.values())):
        partial = tuple(instance(value, axes, index) for value in partials)
        merged = machine.run_block(op.merge.block, (*merged, *partial))
    results = dict(zip(folds, merged, strict=True))
    return tuple(results.get(i, value) for i, value in enumerate(yielded))


@dataclass(frozen=True)
class _IterArg:
    """The iter_arg of one `fold` result, with a value for each of its tiles."""

    axes: dict[str, int]
    """The axes along which it differs."""
    tiles: dict[tuple[int, ...], Tensor]

    def key(self, index: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(index[axis] for axis in self.axes)


def _iter_arg(value: Tensor, slices: Sequence[Slices]) -> _IterArg:
    axes = axes_of(part for part in slices if part.dim in value.dims)
    tiles = tiled(value, slices)
    return _IterArg(axes, {index: _at(tiles, axes, index) for index in _indices(axes)})


def _fitted(start: Tensor, ins: Values) -> Tensor:
    """Return an init arg, a constant, with the lengths of the ragged `ins`."""
    return replace(start, lengths=joined_lengths(ins, start.dims) | dict(start.lengths))


def _indices(axes: Mapping[str, int]) -> list[tuple[int, ...]]:
    return list(np.ndindex(*axes.values()))


def _at(value: Tensor, axes: Iterable[str], index: Sequence[int]) -> Tensor:
    for axis, position in zip(axes, index, strict=True):
        value = at(value, axis, position)
    return value


def _one_by_one(op: TemporalOp, machine: Interpreter, args: Values) -> Values:
    """Run the iterations in order; each reads the iter_args of the one before."""
    slices, count = slices_of(op), len(op.ins)
    end = count + len(op.iter_args)
    axes, ins = axes_of(slices), args[:count]
    tiles = [tiled(value, slices) for value in ins]
    iter_args = [_iter_arg(_fitted(value, ins), slices) for value in args[count:end]]
    history: list[Values] = []
    for index in _indices(axes):
        current = [_at(tile, axes, index) for tile in tiles]
        position = dict(zip(axes, index, strict=True))
        before = [arg.tiles[arg.key(position)] for arg in iter_args]
        yielded = machine.run_block(op.body.block, (*current, *before, *args[end:]))
        history.append(yielded)
        pairs = zip(yielded, op.combiners, strict=True)
        folds = [value for value, combiner in pairs if combiner is Combiner.FOLD]
        for iter_arg, old, new in zip(iter_args, before, folds, strict=True):
            dims = [part.dim for part in _reduced(slices, old)]
            kept = _unless_empty(current, dims, new, old)
            for runs in _runs(op, index[-1:], args):
                kept = selected(runs, kept, old)
            iter_arg.tiles[iter_arg.key(position)] = kept
    return _loop_results(op, slices, iter_args, history)


def _runs(op: TemporalOp, index: Sequence[int], args: Values) -> Iterator[Tensor]:
    """Yield the conditions under which an iteration runs, see `first` and `end`."""
    for operand, is_end in ((op.first, False), (op.end, True)):
        if operand is not None:
            number = args[operand.value.data]
            elements = number.data.reshape(number.data.shape[: len(number.axes)])
            runs = (elements > index[0]) == is_end
            yield Tensor(number.axes, (), runs.astype(np.float64))


def _loop_results(
    op: TemporalOp,
    slices: Sequence[Slices],
    iter_args: Sequence[_IterArg],
    history: Sequence[Values],
) -> Values:
    """Return the final iter_args, and the combined values of all iterations."""
    axes, folded = axes_of(slices), iter(iter_args)
    results: list[Tensor] = []
    for index, combiner in enumerate(op.combiners):
        if combiner is Combiner.FOLD:
            iter_arg = next(folded)
            value = stacked(list(iter_arg.tiles.values()), iter_arg.axes)
        else:
            value = stacked([values[index] for values in history], axes)
        results.append(_result(op, combiner, value, slices))
    return tuple(results)


def _unless_empty(
    tiles: Sequence[Tensor], dims: Sequence[str], new: Tensor, old: Tensor
) -> Tensor:
    """Return `new`; on instances whose tile is empty along one of `dims`, `old`."""
    for length in joined_lengths(tiles, dims).values():
        new = selected(length, new, old)
    return new
