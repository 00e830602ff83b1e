"""Values that kernels gather from other ranks, and exchanges of groups of programs."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from comet.dialects.collective import AllGatherOp, CollectiveOp
from comet.dialects.compound.dims import extents_of, joined_extents
from comet.dialects.dataflow.channel import channel_op
from comet.dialects.dataflow.transfer import WaitOp
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import power_of_two
from comet.dialects.schedule.node import NodeOp


def gathered_shards(node: SpatialOp) -> dict[str, int]:
    """Return the extent of a shard of each dimension that is gathered for a kernel."""
    gathers = (op for op in (v.owner for v in node.ins) if isinstance(op, AllGatherOp))
    return {op.dim.data: extents_of(op.input).get(op.dim.data, 1) for op in gathers}


def group_blocks(nodes: Sequence[NodeOp]) -> dict[str, int]:
    """Return the block size of each dimension that groups of programs split."""
    blocks: dict[str, int] = {}
    for op in nodes:
        if isinstance(op, SpatialOp) and op.on_mesh:
            tiles = joined_extents(op.tiles)
            blocks |= {dim: power_of_two(tiles[dim]) for dim in op.factors}
    return blocks


def group_sizes(nodes: Sequence[NodeOp]) -> dict[str, int]:
    """Return the programs of a group along each dimension that groups split."""
    groups = (op for op in nodes if isinstance(op, SpatialOp) and op.on_mesh)
    return {loop.dim: loop.factor for op in groups for loop in op.loops}


def exchanges(nodes: Sequence[NodeOp], *, among_ranks: bool) -> int:
    """
    Return how often a program of a group waits for others, for each tile.

    `among_ranks`: for other ranks, else for programs of its group.
    """
    groups = (op for op in nodes if isinstance(op, SpatialOp) and op.on_mesh)
    inside = (op for group in groups for op in group.walk())
    return sum(_waits(op) and _is_among_ranks(op) is among_ranks for op in inside)


def _waits(op: Operation) -> bool:
    """Whether programs wait for others at an op."""
    if isinstance(op, CollectiveOp):
        return not op.joins_exchange
    return isinstance(op, WaitOp)


def _is_among_ranks(op: Operation) -> bool:
    """Whether an exchange is between GPUs."""
    if isinstance(op, CollectiveOp):
        return op.among_ranks
    assert isinstance(op, WaitOp)
    return not channel_op(op.channel).in_one_memory
