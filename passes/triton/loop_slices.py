"""The slices that a loop of a kernel visits: which elements, in which block."""

from __future__ import annotations

from dataclasses import dataclass

from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import BlocksAttr
from comet.dialects.schedule.node import NodeOp


@dataclass(frozen=True)
class LoopSlice:
    """One loop of a node: how it slices its dimension."""

    dim: str
    factor: int
    tile: int
    """The extent of a slice, in elements."""
    block: int
    """What the tiles of a slice are padded to, in elements."""
    is_bounded: bool
    """Whether a slice ends before its block does: it is split further, or exact."""

    @property
    def length(self) -> int:
        """The elements that a slice has: the tile, or all of its block."""
        return self.tile if self.is_bounded else self.block


def loop_slices(node: NodeOp) -> list[LoopSlice]:
    """Return the loops of a node that slice something, in order."""
    return [loop for loop in all_loops(node) if loop.factor > 1]


def all_loops(node: NodeOp) -> list[LoopSlice]:
    """Return all loops of a node, in order."""
    blocks, lengths, cuts = blocks_of(node), slice_lengths(node), node.cuts()
    found: list[LoopSlice] = []
    for index, cut in enumerate(cuts):
        block = blocks.size(cut.dim, cut.tile)
        later = [other for other in cuts[index + 1 :] if other.dim == cut.dim]
        is_split = any(other.factor > 1 for other in later)
        is_exact = bool(lengths) and lengths[index] != block
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
