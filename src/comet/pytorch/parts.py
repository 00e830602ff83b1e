"""
What depends on the number of a rank: numbers, and the part that it takes of an axis, of
what all ranks have the same or of what each has (all-to-all).

The graphs of ranks differ in these; in the graph of all they are nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from comet.dialects.collective import AllToAllOp
from comet.dialects.compound.dims import tensor, with_extents
from comet.dialects.compound.gather import GatherOp
from comet.dialects.compound.index import IndexOp
from comet.dialects.compound.map import MapKind
from comet.pytorch.arithmetic import UnsupportedError
from comet.pytorch.collectives import MESH, AllGather, join
from comet.pytorch.dims import Axis, Dim, leaves, replaced
from comet.pytorch.emitter import RANK, Emitter, Op, Tensor, View
from comet.pytorch.ops import Fill, Index
from comet.pytorch.rules import Result, rule
from comet.pytorch.tracer import Tracer


def part_of_rank(whole: torch.Tensor, axis: int, ranks: int) -> torch.Tensor:
    """Be the target of a node: the part that a rank takes of an axis, of equal ones."""
    raise AssertionError("a graph of all ranks is translated, and never run")


def number_of_rank(first: float, step: float) -> torch.Tensor:
    """Be the target of a node: `first` on rank 0, and `step` more on each next one."""
    raise AssertionError("a graph of all ranks is translated, and never run")


@dataclass(frozen=True)
class PartOfRank(Op):
    """Of `dim` each rank takes one position."""

    operand: Tensor
    dim: Dim

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        value, (name,) = to.value(self.operand), to.named((self.dim,))
        if not to.of_one_rank:
            return to.renamed(value, {name: RANK})
        position = IndexOp(tensor({RANK: 1}, i32), self.dim.extent, [RANK])
        return to.add(GatherOp(value, to.add(position), name))


@dataclass(frozen=True)
class AllToAll(Op):
    """
    `collective.all_to_all`: of `dim` each rank gets one position of all ranks, along
    the new dimension `gathered`.
    """

    operand: Tensor
    ranks: Dim
    dim: Dim
    gathered: Dim

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        value = to.value(self.operand)
        name, gathered = to.named((self.dim, self.gathered))
        if to.of_one_rank:
            type_ = with_extents(value.type, {name: 1, RANK: self.dim.extent})
            group = value, MESH, [RANK], type_
            value = to.add(AllToAllOp(*group, split=name, concat=RANK))
        return to.renamed(value, {RANK: gathered, name: RANK})


@rule("part_of_rank")
def _part(t: Tracer, out: Result, whole: View, axis: int, ranks: int):
    found = _before_gather(t, whole)
    if found is None:
        return own_part(t, whole, axis)
    each, gathered = found
    return each if axis == gathered else exchanged(t, each, gathered, axis)


def _before_gather(t: Tracer, view: View) -> tuple[View, int] | None:
    """Return what each rank had of gathered values, and the axis; None for others."""
    if not isinstance(op := view.tensor.op, AllGather):
        return None
    for number, axis in enumerate(map(leaves, view.axes)):
        if axis[:1] == leaves((op.dim,)):
            axes = [*view.axes[:number], axis[1:], *view.axes[number + 1 :]]
            return t.view(op.operand, axes), number
    return None


def own_part(t: Tracer, view: View, axis: int) -> View:
    """Return the part that each rank takes of an axis of what all have."""
    if isinstance(op := view.tensor.op, Fill):
        shape = [*view.shape]
        shape[axis] //= t.ranks.count
        return t.full(shape, op.number, view.tensor.element)
    if t.ranks.differ_in(view.tensor):
        raise UnsupportedError(
            "a rank's part of what ranks have different values of (if all have the "
            "same, make it a DTensor that is Replicate())"
        )
    parts, dim, axes = _cut(t, view, axis)
    dims = replaced(parts.dims, [((dim,), (t.ranks.dim,))])
    return t.view(Tensor(dims, parts.element, PartOfRank(parts, dim)), axes)


def exchanged(t: Tracer, view: View, gathered: int, split: int) -> View:
    """
    Return the part that each rank takes of the axis `split` of what all ranks have.

    The parts of ranks are one behind the other along the axis `gathered`.
    """
    sources = Dim(t.ranks.count)
    if t.ranks.differ_in(view.tensor):
        parts, dim, axes = _cut(t, view, split)
        op = AllToAll(parts, t.ranks.dim, dim, sources)
        moved = ((t.ranks.dim,), (sources,)), ((dim,), (t.ranks.dim,))
        found = Tensor(replaced(parts.dims, moved), parts.element, op)
    else:
        part = own_part(t, view, split)
        found, axes = part.tensor, [*part.axes]
    axes[gathered] = (sources, *axes[gathered])
    return t.view(found, axes)


def _cut(t: Tracer, view: View, axis: int) -> tuple[Tensor, Dim, list[Axis]]:
    """Return a tensor with a dimension for the parts of an axis, and axes of a part."""
    shape = [*view.shape]
    shape[axis : axis + 1] = t.ranks.count, shape[axis] // t.ranks.count
    parts = t.in_one_dimension(t.reshaped(t.stored(view), shape), axis)
    (dim,) = leaves(parts.axes[axis])
    return parts.tensor, dim, [*parts.axes[:axis], *parts.axes[axis + 1 :]]


@rule("_c10d_functional.all_to_all_single")
def all_to_all_single(
    t: Tracer,
    out: Result,
    input: View,
    output_split_sizes: Sequence[int],
    input_split_sizes: Sequence[int],
    group_name: str,
):
    join(t, group_name)
    if len({*output_split_sizes, *input_split_sizes}) > 1:
        raise UnsupportedError("an exchange of parts of different sizes")
    return input if t.ranks.count == 1 else exchanged(t, input, 0, 0)


@rule("_dtensor.shard_dim_alltoall")
def shard_dim_alltoall(
    t: Tracer,
    out: Result,
    input: View,
    gather_dim: int,
    shard_dim: int,
    group_name: str,
):
    join(t, group_name)
    return exchanged(t, input, gather_dim, shard_dim)


@rule("number_of_rank")
def _number(t: Tracer, out: Result, first: float, step: float):
    positions = Index(t.ranks.dim, t.ranks.count)
    rank = View(Tensor((t.ranks.dim,), out.element, positions), ())
    return t.map(MapKind.ADD, t.map(MapKind.MULT, rank, step), first)
