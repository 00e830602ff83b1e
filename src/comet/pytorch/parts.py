"""
What depends on the number of a rank: the part that it takes of an axis, and numbers.

These are nodes of the graph of all ranks, where the graphs of ranks differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from comet.dialects.compound.dims import tensor
from comet.dialects.compound.gather import GatherOp
from comet.dialects.compound.index import IndexOp
from comet.dialects.compound.map import MapKind
from comet.pytorch.dims import Dim, leaves, replaced
from comet.pytorch.emitter import RANK, Emitter, Op, Tensor, View
from comet.pytorch.ops import Fill, Index
from comet.pytorch.rules import Result, rule
from comet.pytorch.tracer import Tracer, UnsupportedError


def part_of_rank(whole: torch.Tensor, axis: int, ranks: int) -> torch.Tensor:
    """Stand in a graph for the part that a rank takes of an axis, of equal ones."""
    raise NotImplementedError


def number_of_rank(first: float, step: float) -> torch.Tensor:
    """Stand in a graph for `first` on rank 0, and `step` more on each next one."""
    raise NotImplementedError


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


@rule("part_of_rank")
def _part(t: Tracer, out: Result, whole: View, axis: int, ranks: int):
    if isinstance(op := whole.tensor.op, Fill):
        return t.full(out.shape, op.number, out.element)
    if t.ranks.differ_in(whole.tensor):
        raise UnsupportedError(
            "a rank's part of what ranks have different values of (if all have the "
            "same, make it a DTensor that is Replicate())"
        )
    before, behind = whole.shape[:axis], whole.shape[axis + 1 :]
    shape = [*before, ranks, out.shape[axis], *behind]
    parts = t.in_one_dimension(t.reshaped(t.stored(whole), shape), axis)
    (dim,) = leaves(parts.axes[axis])
    dims = replaced(parts.tensor.dims, [((dim,), (t.ranks.dim,))])
    part = Tensor(dims, out.element, PartOfRank(parts.tensor, dim))
    return t.view(part, [*parts.axes[:axis], *parts.axes[axis + 1 :]])


@rule("number_of_rank")
def _number(t: Tracer, out: Result, first: float, step: float):
    positions = Index(t.ranks.dim, t.ranks.count)
    rank = View(Tensor((t.ranks.dim,), out.element, positions), ())
    return t.map(MapKind.ADD, t.map(MapKind.MULT, rank, step), first)
