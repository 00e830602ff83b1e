"""
The slices of dimensions in a kernel: how many elements a tile has, in which block.

Slices are implied by names: all tiles of one scope have the same slice of a dimension.
Pure functions on kernels with blocks; nothing here changes IR.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd
from typing import Self

from xdsl.ir import Operation

from comet.dialects.collective.spmd import rank_count
from comet.dialects.compound.dims import ceil_div
from comet.dialects.dataflow import KernelOp
from comet.dialects.dataflow.rank_loops import destination_dims, source_dims
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.attributes import BlocksAttr
from comet.dialects.schedule.node import NodeOp
from comet.passes.triton.pad_blocks import kernel_extents


@dataclass(frozen=True)
class LoopSlice:
    """One loop of a node: how it slices its dimension."""

    dim: str
    factor: int
    tile: int
    """The extent of a slice, in elements."""
    block: int
    """The padded extent of the tiles of a slice, in elements."""
    is_bounded: bool
    """Whether a slice ends before its block does: it is split further, or exact."""

    @property
    def length(self) -> int:
        """The elements that a slice has: the tile, or all of its block."""
        return self.tile if self.is_bounded else self.block


def loop_slices(node: NodeOp) -> list[LoopSlice]:
    """Return the loops of a node that slice something, in order."""
    return [loop for loop in all_loops(node) if loop.factor > 1]


def cut_dims(node: NodeOp) -> tuple[str, ...]:
    """Return the dimension of each loop of a node with several iterations, in order."""
    return tuple(cut.dim for cut in node.cuts() if cut.factor > 1)


def all_loops(node: NodeOp) -> list[LoopSlice]:
    """Return all loops of a node, in order."""
    blocks, lengths, cuts = blocks_of(node), slice_lengths(node), node.cuts()
    found: list[LoopSlice] = []
    for index, cut in enumerate(cuts):
        block = blocks.size(cut.dim, cut.tile)
        later = [inner for inner in cuts[index + 1 :] if inner.dim == cut.dim]
        is_split = any(inner.factor > 1 for inner in later)
        length = lengths[index] if lengths else cut.tile if node.on_mesh else block
        is_exact = length != block
        bounded = is_split or is_exact or is_split_inside(node, cut.dim)
        found.append(LoopSlice(cut.dim, cut.factor, cut.tile, block, bounded))
    return found


def slice_lengths(node: NodeOp) -> tuple[int, ...]:
    """Return the elements of each program's slices, empty before `map-grid`."""
    if not isinstance(node, SpatialOp) or node.programs is None:
        return ()
    return node.programs.slices


def blocks_of(node: NodeOp) -> BlocksAttr:
    """Return the blocks of the kernel that a node is, or is in."""
    grid = node.outermost
    assert isinstance(grid, SpatialOp)
    return BlocksAttr({}) if grid.blocks is None else grid.blocks


def is_split_inside(node: NodeOp, dim: str) -> bool:
    """Whether a node in the body splits `dim` further."""
    return any(
        inner.factors.get(dim, 1) > 1
        for inner in node.body.walk()
        if isinstance(inner, NodeOp)
    )


@dataclass(frozen=True)
class Slice:
    """A slice of one dimension, as far as it is known when a kernel is compiled."""

    length: int
    """The number of elements in a slice that is not cut short."""
    block: int
    """The block size for tiles of the slice."""
    full: bool = True
    """Whether every slice has `length` elements."""
    uncut: bool = True
    """Whether nothing has cut the dimension."""
    unit: int = 0
    """A number that divides every start; 0 where that of a rank is unknown, or 0."""
    uneven: bool = False
    """Whether some ranks have fewer elements: it is an uneven shard."""
    shard: int = 0
    """The extent of the shard of one rank that it is, or is in; 0 without one."""

    @property
    def has_axis(self) -> bool:
        """Whether tiles have an axis for the dimension; one element needs none."""
        return self.block > 1

    @property
    def exact(self) -> bool:
        """Whether every element of a block is one of the slice: no mask is needed."""
        return self.full and self.length == self.block

    def is_in_one_block(self, size: int) -> bool:
        """
        Return whether each slice is within one block of `size` elements.

        Blocks of what is in a shard begin where the shard does; see `of_whole`.
        """
        return self.unit > 0 and size % self.unit == 0 and self.length <= self.unit

    @property
    def of_whole(self) -> Self:
        """The same slice of the whole dimension, which shards do not divide."""
        return replace(self, unit=gcd(self.unit, self.shard), shard=0)

    def in_loop(self, loop: LoopSlice) -> Self:
        """Return a slice that a loop cuts out, which ends where this one does."""
        return self._cut(loop, bounded=True)

    def by_number(self, loop: LoopSlice) -> Self:
        """
        Return a slice that follows from a number, and that may begin after the end.

        The number is that of a program, or of an iteration of several loops in one.
        """
        return self._cut(loop, not self.uneven and (self.uncut or self.full))

    def of_rank(self, loop: LoopSlice, ranks: int) -> Self:
        """Return the shard of a rank, at most a tile of the loop over the ranks."""
        bounded = loop.tile * (ranks - 1) < self.length
        shard = self._cut(replace(loop, is_bounded=True), bounded)
        return replace(shard, unit=0, shard=loop.tile)

    def _cut(self, loop: LoopSlice, bounded: bool) -> Self:
        """Return a slice; `bounded` says that none starts beyond the end of this."""
        length = loop.length
        # A slice of one element is whole if it does not begin beyond the end.
        full = bounded and (length == 1 or (self.full and self.length % length == 0))
        return replace(
            self,
            length=length,
            block=loop.block,
            full=full,
            uncut=False,
            unit=gcd(self.unit, length),
        )


@dataclass(frozen=True)
class RankLoops:
    """The dimensions of a grid node with loops over ranks, and how many ranks."""

    ranks: int = 1
    sources: tuple[str, ...] = ()
    """Dimensions whose first loop runs over the ranks that sent them."""
    destinations: tuple[str, ...] = ()
    """The same for ranks that receive them."""

    @property
    def owned(self) -> tuple[str, ...]:
        """All dimensions with a loop over ranks."""
        return (*self.sources, *self.destinations)


def rank_loops(node: SpatialOp) -> RankLoops:
    """Return the loops over ranks of a grid node."""
    kernel, ranks = node.parent_op(), rank_count(node)
    if ranks == 1 or not isinstance(kernel, KernelOp):
        return RankLoops(ranks)
    return RankLoops(ranks, source_dims(kernel, node), destination_dims(kernel, node))


def uncut_slices(node: SpatialOp, loops: RankLoops) -> dict[str, Slice]:
    """Return the slices of a kernel that nothing has cut; shards may be uneven."""
    kernel, blocks = node.parent_op(), blocks_of(node)
    totals = kernel.shard_extents if isinstance(kernel, KernelOp) else {}
    slices: dict[str, Slice] = {}
    for dim, extent in kernel_extents(node).items():
        # What programs have of all ranks in turn is whole.
        even = extent * loops.ranks
        total = even if dim in loops.owned else totals.get(dim, even)
        is_shard = extent == ceil_div(total, loops.ranks)
        uneven = is_shard and total != even
        slices[dim] = Slice(extent, blocks.size(dim, extent), not uneven, uneven=uneven)
    return slices


def kernel_slices(grid: SpatialOp) -> dict[Operation | None, Mapping[str, Slice]]:
    """
    Return the slices that each node of a kernel has of every dimension.

    `lower-to-triton` derives them again, loop by loop: it also needs those between two
    loops of one node, which no op has.
    """
    ranks = rank_loops(grid)
    uncut = uncut_slices(grid, ranks)
    found: dict[Operation | None, Mapping[str, Slice]] = {}
    for node in grid.walk():
        if isinstance(node, NodeOp):
            outer = found.get(node.parent_op(), uncut)
            found[node] = _inside(node, outer, ranks)
    return found


def _inside(
    node: NodeOp, outer: Mapping[str, Slice], ranks: RankLoops
) -> Mapping[str, Slice]:
    """Return the slices in the body of a node."""
    slices = dict(outer)
    for loop in loop_slices(node):
        current = slices[loop.dim]
        if is_rank_loop(node, loop, current, ranks):
            slices[loop.dim] = current.of_rank(loop, ranks.ranks)
        elif node.is_grid or is_one_loop(node):
            slices[loop.dim] = current.by_number(loop)
        else:
            slices[loop.dim] = current.in_loop(loop)
    return slices


def is_one_loop(node: NodeOp) -> bool:
    """Whether all loops of a node are one, see `coalesce-loops`."""
    return isinstance(node, TemporalOp) and node.coalesce is not None


def is_rank_loop(node: NodeOp, loop: LoopSlice, outer: Slice, ranks: RankLoops) -> bool:
    """Whether a loop runs over ranks: it is the first of its dimension that may."""
    if outer.shard:
        return False
    if node.is_grid:
        return loop.dim in ranks.owned
    return loop.dim in ranks.sources and loop.factor == ranks.ranks > 1
