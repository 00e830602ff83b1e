"""
Loops over ranks: loops of a kernel whose iterations are for one sender or receiver
each.

Pure functions on kernels and their nodes; nothing here changes IR.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir import SSAValue

from comet.dialects.compound import RenameOp
from comet.dialects.compound.dims import extents_of
from comet.dialects.dataflow import KernelOp, PullOp, ReadOp, WaitOp
from comet.dialects.dataflow.signals import producers_in
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import NodeOp


def loops_over(value: SSAValue, dim: str) -> Iterator[tuple[NodeOp, str]]:
    """
    Yield the outermost nodes that loop over a dimension of `value`.

    Each comes with the name of the dimension there, which views may change.
    """
    for use in value.uses:
        op = use.operation
        if isinstance(op, RenameOp):
            yield from loops_over(op.result, op.renaming[dim])
        elif isinstance(op, WaitOp):
            yield from loops_over(op.awaited[use.index], dim)
        elif isinstance(op, NodeOp) and dim in op.factors:
            yield op, dim
        elif isinstance(op, NodeOp):
            yield from loops_over(op.body.block.args[use.index], dim)


@dataclass(frozen=True)
class SourceLoop:
    """A loop whose iterations read what one rank sent each."""

    node: NodeOp
    operand: int
    """The operand of the node that all ranks sent."""
    depth: int
    """How many loops of the node are around it."""

    @property
    def trips_inside(self) -> tuple[int, ...]:
        """The trip counts of the loops inside of it."""
        inner = (op for op in self.node.body.walk() if isinstance(op, NodeOp))
        loops = [*self.node.loops.data[self.depth + 1 :]]
        loops += [loop for op in inner for loop in op.loops]
        return tuple(loop.factor for loop in loops)


def source_loops(view: SSAValue, dim: str, ranks: int) -> Iterator[SourceLoop]:
    """Yield the loops over `ranks` ranks along `dim` that read tiles of a view."""
    for use in view.uses:
        op = use.operation
        if isinstance(op, WaitOp):
            yield from source_loops(op.awaited[use.index], dim, ranks)
        elif isinstance(op, NodeOp):
            loops = [(i, lp) for i, lp in enumerate(op.loops) if lp.dim == dim]
            repeated = [(i, loop.factor) for i, loop in loops if loop.factor > 1]
            if not repeated:
                yield from source_loops(op.body.block.args[use.index], dim, ranks)
            elif repeated[0][1] == ranks:
                yield SourceLoop(op, use.index, repeated[0][0])


def source_dims(kernel: KernelOp, node: SpatialOp) -> tuple[str, ...]:
    """
    Return the dimensions along which each iteration of `node` reads what one rank sent.

    The kernel names those of all its nodes; one of these may loop over the same name
    without receiving anything.
    """
    named = () if kernel.sources is None else [name.data for name in kernel.sources]
    received = [op for op in kernel.body.block.ops if isinstance(op, ReadOp | PullOp)]
    looped = {
        dim
        for op in received
        for inner, dim in loops_over(op.result, op.channel_type.gather)
        if node.is_ancestor(inner)
    }
    return tuple(dim for dim in named if dim in looped)


def destination_dims(kernel: KernelOp, node: SpatialOp) -> tuple[str, ...]:
    """Return the dimensions whose shards `node` computes rank by rank."""
    names = kernel.destinations
    named = () if names is None else [name.data for name in names]
    split = {op.channel_type.split for op in producers_in(kernel, node)}
    return tuple(dim for dim in named if dim in split)


def tile_of(node: NodeOp, dim: str) -> int:
    """Return the extent of the tiles that `node` cuts `dim` into."""
    tiles = (extents_of(tile) for _, tile in node.sliced)
    return next(extents[dim] for extents in tiles if dim in extents)
