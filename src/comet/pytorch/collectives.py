"""
The translation of torch's functional collectives.

`parallelize_module` and other users of DTensor make them, and models may call them. A
graph has those of one group: it is a program of these ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from torch import fx
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from comet.dialects.collective import AllGatherOp, AllReduceOp, ReduceScatterOp
from comet.dialects.compound.dims import with_extents
from comet.dialects.compound.elementary import ReduceKind, ReduceOp
from comet.dialects.compound.map import MapKind
from comet.pytorch.arithmetic import UnsupportedError
from comet.pytorch.dims import Axis, Dim, leaves, replaced
from comet.pytorch.elementwise import negative
from comet.pytorch.emitter import RANK, Emitter, Op, Tensor, View
from comet.pytorch.groups import members, named
from comet.pytorch.rules import Result, op_name, rule
from comet.pytorch.tracer import Tracer

WAIT = "_c10d_functional.wait_tensor"
"""The op that waits for the result of a collective."""
MESH = "ranks"
"""The name of the mesh of all ranks."""


@dataclass(frozen=True)
class AllReduce(Op):
    """`collective.all_reduce` of the values of all ranks."""

    kind: ReduceKind
    operand: Tensor

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        reduced = to.add(ReduceOp(self.kind, to.value(self.operand), to.type(result)))
        if not to.of_one_rank:
            return reduced
        return to.add(AllReduceOp(reduced, MESH, [RANK], kind=self.kind))

    def has_order(self, dims: Axis) -> bool:
        return True


@dataclass(frozen=True)
class AllGather(Op):
    """`collective.all_gather` of the values of all ranks, along the new `dim`."""

    operand: Tensor
    dim: Dim

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        value = to.value(self.operand)
        if to.of_one_rank:
            type_ = with_extents(value.type, {RANK: self.dim.extent})
            value = to.add(AllGatherOp(value, MESH, [RANK], type_, dim=RANK))
        return to.split(value, RANK, (self.dim,))


@dataclass(frozen=True)
class ReduceScatter(Op):
    """`collective.reduce_scatter`: of `dim` each rank gets one position."""

    kind: ReduceKind
    operand: Tensor
    ranks: Dim
    dim: Dim

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        value, (name,) = to.value(self.operand), to.named((self.dim,))
        left = tuple(d for d in leaves(self.operand.dims) if d is not self.ranks)
        reduced = ReduceOp(self.kind, value, to.type(Tensor(left, result.element)))
        value = to.add(reduced)
        if to.of_one_rank:
            group = MESH, [RANK], with_extents(value.type, {name: 1})
            value = to.add(ReduceScatterOp(value, *group, kind=self.kind, dim=name))
        return to.renamed(value, {name: RANK})


def join(t: Tracer, group: str) -> int:
    """Make the ranks of a group those of the graph, and return their number."""
    found = members(named(group))
    if t.ranks.members not in ((), found):
        raise UnsupportedError("a second group of ranks")
    t.ranks.members = found
    return t.ranks.count


def group_of(node: fx.Node) -> str | None:
    """
    Return the name of the group of a collective, or of the one that a node waits for.

    None for other nodes.
    """
    if not is_collective(node) or not node.args:
        return None
    last = node.args[-1]
    if isinstance(last, fx.Node):
        return group_of(last)
    return last if isinstance(last, str) else None


def chains(graph: fx.Graph) -> dict[str, int]:
    """
    Return the groups of the collectives of a graph, in the order of the graph.

    With each is the number of its collectives in the longest chain of them, in which
    each one needs the result of the one before.
    """
    longest: dict[str, dict[fx.Node, int]] = {}
    for node in graph.nodes:
        own = group_of(node)
        if own is not None:
            longest.setdefault(own, {})
        for group, until in longest.items():
            before = (until.get(each, 0) for each in node.all_input_nodes)
            is_next = group == own and op_name(node) != WAIT
            until[node] = max(before, default=0) + is_next
    return {group: max(until.values()) for group, until in longest.items()}


def is_collective(node: fx.Node) -> bool:
    """Return whether a node is a collective of torch, or waits for one."""
    names = "_c10d_functional.", "_dtensor."
    return node.op == "call_function" and op_name(node).startswith(names)


@rule(WAIT)
def wait_tensor(t: Tracer, out: Result, tensor: View):
    return tensor


@rule("_c10d_functional.all_reduce")
def all_reduce(t: Tracer, out: Result, input: View, reduce_op: str, group_name: str):
    join(t, group_name)
    return _reduced(t, out, input, reduce_op, _all_reduced)


@rule("_c10d_functional.reduce_scatter_tensor")
def reduce_scatter_tensor(
    t: Tracer,
    out: Result,
    input: View,
    reduce_op: str,
    group_size: int,
    group_name: str,
):
    join(t, group_name)
    return _reduced(t, out, input, reduce_op, _reduce_scattered)


@rule("_c10d_functional.all_gather_into_tensor")
def all_gather_into_tensor(
    t: Tracer, out: Result, input: View, group_size: int, group_name: str
):
    count = join(t, group_name)
    if not t.ranks.differ_in(input.tensor):
        one = t.reshaped(input, [1, *input.shape])
        return t.reshaped(t.expanded(one, [count, *input.shape]), out.shape)
    if input.tensor not in t.ranks.gathered:
        dim = Dim(count)
        dims = replaced(input.tensor.dims, [((t.ranks.dim,), (dim,))])
        gathered = Tensor(dims, out.element, AllGather(input.tensor, dim))
        t.ranks.gathered[input.tensor] = gathered, dim
    gathered, dim = t.ranks.gathered[input.tensor]
    first, *others = input.axes or ((),)
    return t.view(gathered, [(dim, *first), *others])


Reduction: TypeAlias = Callable[[Tracer, ReduceKind, View], View]


def _reduced(t: Tracer, out: Result, input: View, name: str, reduce: Reduction) -> View:
    """Return a reduction that torch calls `name`, of the values of all ranks."""
    match name:
        case "sum":
            return reduce(t, ReduceKind.ADD, input)
        case "avg":
            total = reduce(t, ReduceKind.ADD, input)
            return t.map(MapKind.MULT, total, 1 / t.ranks.count)
        case "max":
            return reduce(t, ReduceKind.MAX, input)
        case "min":
            least = reduce(t, ReduceKind.MAX, negative(t, out, input))
            return negative(t, out, least)
        case _:
            raise UnsupportedError(f"the reduction {name!r} of all ranks")


def _all_reduced(t: Tracer, kind: ReduceKind, view: View) -> View:
    """Return the sum or the maximum of the values of all ranks."""
    if not t.ranks.differ_in(view.tensor):
        same = kind is ReduceKind.MAX
        return view if same else t.map(MapKind.MULT, view, t.ranks.count)
    _check_reducible(view)
    dims = replaced(view.tensor.dims, [((t.ranks.dim,), ())])
    op = AllReduce(kind, view.tensor)
    return t.view(Tensor(dims, view.tensor.element, op), view.axes)


def _reduce_scattered(t: Tracer, kind: ReduceKind, view: View) -> View:
    """Return the part of the first axis that a rank has of such a reduction."""
    if t.ranks.count == 1:
        return view
    _check_reducible(view)
    each = t.of_each_rank(t.stored(view))
    first, *others = each.shape
    parts = t.reshaped(each, [t.ranks.count, first // t.ranks.count, *others])
    parts = t.in_one_dimension(parts, 0)
    (dim,) = leaves(parts.axes[0])
    op = ReduceScatter(kind, parts.tensor, t.ranks.dim, dim)
    left = replaced(parts.tensor.dims, [((t.ranks.dim,), ())])
    dims = tuple(t.ranks.dim if each is dim else each for each in left)
    return t.view(Tensor(dims, view.tensor.element, op), parts.axes[1:])


def _check_reducible(view: View) -> None:
    if view.tensor.element == i1:
        raise UnsupportedError("a reduction of conditions of all ranks")
