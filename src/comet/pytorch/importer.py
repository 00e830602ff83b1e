"""From a graph of torch to a function of elementary ops."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import cast

import torch
from torch import fx
from torch.fx.node import Argument, map_arg
from xdsl.dialects.builtin import ModuleOp, bf16, f16, f32, i1, i8, i32, i64

from comet.dialects.compound.dims import Element
from comet.pytorch import (
    attention,
    collectives,
    convolutions,
    division,
    elementwise,
    parts,
    pooling,
    random_numbers,
    reductions,
    tables,
    views,
)
from comet.pytorch.arithmetic import UnsupportedError
from comet.pytorch.collectives import group_of, join
from comet.pytorch.dims import leaves
from comet.pytorch.emitter import Tensor, View
from comet.pytorch.functions import function_of
from comet.pytorch.rules import RULES, Result, op_name
from comet.pytorch.tracer import Tracer

TRANSLATED = (
    attention,
    collectives,
    convolutions,
    division,
    elementwise,
    parts,
    pooling,
    random_numbers,
    reductions,
    tables,
    views,
)
"""The modules whose rules are known."""

ELEMENTS: Mapping[torch.dtype, Element] = {
    torch.float16: f16,
    torch.bfloat16: bf16,
    torch.float32: f32,
    torch.int8: i8,
    torch.int32: i32,
    torch.int64: i64,
    torch.bool: i1,
}


@dataclass(frozen=True)
class Layout:
    """How a torch tensor is stored as a value of the function."""

    order: tuple[int, ...]
    """The axes of the torch tensor, outermost first in memory."""
    shape: tuple[int, ...]
    """The extents of the value's dimensions."""

    def stored(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a torch tensor as the function takes it."""
        return tensor.permute(self.order).contiguous().view(self.shape)


@dataclass(frozen=True)
class Output:
    """Where a result of the graph comes from."""

    source: int
    """The number of an argument, or, behind these, of a result of the function."""
    shape: tuple[int, ...]
    """The extents of the source's dimensions, then 1 for each that it lacks."""
    order: tuple[int, ...]
    """For each dimension of the output, outermost first, where it is in `shape`."""
    expanded: tuple[int, ...]
    """The extents in this order."""
    axes: tuple[int, ...]
    """The shape of the output."""

    def of(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the torch tensor, from all arguments and results."""
        value = values[self.source].reshape(self.shape).permute(self.order)
        return value.expand(self.expanded).reshape(self.axes)


@dataclass(frozen=True)
class Imported:
    """A graph as a function."""

    module: ModuleOp
    name: str
    arguments: tuple[Layout, ...]
    outputs: tuple[Output | None, ...]
    """None for results that are None."""
    computes: bool
    """Whether the function has results: else all outputs are views of arguments."""


def meta_of(node: fx.Node) -> tuple[torch.Tensor, ...]:
    """Return what torch says of the tensors that a node computes."""
    values = _flat(cast("object", node.meta.get("val")))
    return tuple(value for value in values if isinstance(value, torch.Tensor))


def untranslated(what: str) -> str:
    """Return a clause: that there is no translation of `what`, a noun."""
    return f"there is no translation of {what}"


def call_of(node: fx.Node) -> tuple[str, int] | None:
    """
    Return file and line of a model that call a node, if torch knows them.

    It is the innermost line that is neither in torch nor here.
    """
    calls = _CALLS.findall(node.meta.get("stack_trace") or "")
    of_models = [call for call in calls if not call[0].startswith(_NO_MODEL)]
    return (of_models[-1][0], int(of_models[-1][1])) if of_models else None


def line_of(node: fx.Node) -> str | None:
    """Return the line of a model that calls a node, as `model.py:12`, if known."""
    return None if (call := call_of(node)) is None else f"{call[0]}:{call[1]}"


_CALLS = re.compile(r'File "([^"]+)", line (\d+)')
"""A call in a stack trace: file and line."""
_NO_MODEL = (str(Path(torch.__file__).parent), str(Path(__file__).parent))
"""The folder of torch, and ours, where a function becomes a module."""


def result_of(tensor: torch.Tensor) -> Result:
    """Return shape and element type; raise UnsupportedError for those we lack."""
    if tensor.dtype not in ELEMENTS:
        known = ", ".join(str(dtype).removeprefix("torch.") for dtype in ELEMENTS)
        raise UnsupportedError(f"the type {tensor.dtype}, which is none of {known}")
    if any(isinstance(extent, torch.SymInt) for extent in tensor.shape):
        raise UnsupportedError("a shape that the numbers of a tensor decide")
    if 0 in tensor.shape:
        raise UnsupportedError("a tensor without elements")
    return Result(tuple(tensor.shape), ELEMENTS[tensor.dtype])


def argument(
    t: Tracer, tensor: torch.Tensor, sharded: int | None = None
) -> tuple[View, tuple[int, ...]]:
    """Return an argument, and its axes in the order of memory."""
    known = result_of(tensor)
    axes = range(len(known.shape))
    order = tuple(sorted(axes, key=lambda axis: -tensor.stride(axis)))
    return t.argument(known.shape, order, known.element, sharded), order


def traced(t: Tracer, node: fx.Node, value_of: Callable[[fx.Node], object]) -> object:
    """Return the result of a node: a `View`, or a tuple of them."""
    known = cast("Callable[[fx.Node], Argument]", value_of)
    args = cast("tuple[object, ...]", map_arg(node.args, known))
    if node.target is operator.getitem:
        parts, index = cast("tuple[tuple[View, ...], int]", args)
        return parts[index]
    if op_name(node) not in RULES:
        raise UnsupportedError(f"the op {op_name(node)}")
    kwargs = cast("dict[str, object]", map_arg(node.kwargs, known))
    out, rule = result_of(meta_of(node)[0]), RULES[op_name(node)]
    try:
        signature(rule).bind(t, out, *args, **kwargs)
    except TypeError as error:
        raise UnsupportedError(f"arguments of {op_name(node)}: {error}") from error
    return rule(t, out, *args, **kwargs)


def refusal(node: fx.Node) -> str | None:
    """Return why a node of a graph has no translation by itself, None if it has one."""
    t = Tracer()
    known: dict[fx.Node, object] = {}

    def value_of(operand: fx.Node) -> object:
        if operand not in known:
            views = tuple(argument(t, tensor)[0] for tensor in meta_of(operand))
            several = isinstance(operand.meta.get("val"), tuple | list)
            known[operand] = views if several else views[0]
        return known[operand]

    try:
        if not meta_of(node):
            return untranslated("a value that is no tensor")
        for tensor in meta_of(node):
            result_of(tensor)
        traced(t, node, value_of)
    except UnsupportedError as error:
        return untranslated(str(error))
    except IndexError:
        return untranslated("an operand that is no tensor")
    return None


def imported(
    graph: fx.Graph,
    name: str,
    shards: Mapping[str, int | None] | None = None,
    ranks: str | None = None,
) -> Imported:
    """
    Return the function of a graph of ATen ops, whose nodes have `meta["val"]`.

    Its arguments are those of the graph, in the order of memory and without axes of one
    element. If it has collectives, or `ranks` names a group, an argument is what one
    rank has: a part of the axis that `shards` has for its name, of the first one if
    it has none, or, for None, what all ranks have. Raises UnsupportedError, naming the
    node, for what has no translation.
    """
    t = Tracer()
    if group := ranks or next(filter(None, map(group_of, graph.nodes)), None):
        join(t, group)
    several = t.ranks.count > 1
    axes = shards or {}
    values: dict[object, object] = {}
    arguments: list[View] = []
    orders: list[tuple[int, ...]] = []
    results: list[View | None] = []
    for node in graph.nodes:
        if node.op == "output":
            outputs = [values.get(each) for each in _flat(node.args[0])]
            results = cast("list[View | None]", outputs)
        elif node.op == "placeholder":
            sharded = axes.get(node.name, 0) if several else None
            with _naming(node):
                view, order = argument(t, meta_of(node)[0], sharded)
            values[node] = view
            view.tensor.name = node.name
            arguments.append(view)
            orders.append(order)
        else:
            values[node] = found = _traced_in_graph(t, node, values.__getitem__)
            if isinstance(found, View) and not found.tensor.name:
                found.tensor.name, found.tensor.call = node.name, call_of(node)
    return _function(t, name, arguments, orders, results)


def _traced_in_graph(
    t: Tracer, node: fx.Node, value_of: Callable[[fx.Node], object]
) -> object:
    """Return the result of a node; errors name the node."""
    with _naming(node):
        return traced(t, node, value_of)


@contextmanager
def _naming(node: fx.Node) -> Generator[None]:
    """Run the body; an error in it names the node."""
    what = "an argument" if node.op == "placeholder" else op_name(node)
    try:
        yield
    except UnsupportedError as error:
        where = f", {line}" if (line := line_of(node)) else ""
        raise UnsupportedError(
            f"{node.name} ({what}){where}: {untranslated(str(error))}"
        ) from error


def _flat(results: object) -> Sequence[object]:
    """Return a sequence, or one of a single value."""
    if isinstance(results, tuple | list):
        return cast("Sequence[object]", results)
    return (results,)


def _function(
    t: Tracer,
    name: str,
    arguments: Sequence[View],
    orders: Sequence[tuple[int, ...]],
    results: Sequence[View | None],
) -> Imported:
    """Return the function that computes views."""
    given = [view.tensor for view in arguments]
    computed: list[Tensor] = []
    for view in results:
        if view is not None and view.tensor not in (*given, *computed):
            stored = leaves(view.tensor.dims)
            order = tuple(dim for dim in view.dims if dim in stored)
            view.tensor.put_in_order(t.ranks.among(order, view.tensor))
            computed.append(view.tensor)
    module = function_of(name, given, computed, t.ranks)
    extents = [tuple(d.extent for d in leaves(tensor.dims)) for tensor in given]
    layouts = map(Layout, orders, extents)
    sources = [*given, *computed]
    outputs = [None if view is None else _output(t, view, sources) for view in results]
    return Imported(module, name, tuple(layouts), tuple(outputs), bool(computed))


def _output(t: Tracer, view: View, sources: Sequence[Tensor]) -> Output:
    """Return how a view comes from the tensors that the function has and returns."""
    source = sources.index(view.tensor)
    # Of the dimension over ranks, a rank has one element.
    stored = [dim for dim in leaves(view.tensor.dims) if dim is not t.ranks.dim]
    missing = view.expanded
    places = [*stored, *missing]
    shape = (*(d.extent for d in stored), *(1 for _ in missing))
    order = tuple(places.index(dim) for dim in view.dims)
    expanded = tuple(dim.extent for dim in view.dims)
    return Output(source, shape, order, expanded, view.shape)
