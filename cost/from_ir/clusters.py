"""Reads from a kernel how clusters of thread blocks divide its tiles."""

from __future__ import annotations

from comet.cost.gpu.device import Device
from comet.cost.gpu.terms import RowSplit
from comet.dialects.compound.dims import extents_of
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import power_of_two
from comet.dialects.schedule.clusters import row_reductions, split_dims, unsplit
from comet.dialects.schedule.node import NodeOp


def row_split(node: SpatialOp, gpu: Device) -> RowSplit | None:
    """Return how clusters divide the tiles of a kernel, None if they cannot."""
    if gpu.limits.most_cluster_blocks == 1 or unsplit(node) is not None:
        return None
    return RowSplit(*split_dims(node), len(row_reductions(node)))


def program_blocks(node: SpatialOp) -> dict[str, int]:
    """Return the block size of each dimension of a whole program."""
    blocks: dict[str, int] = {}
    for op in node.walk():
        if not isinstance(op, NodeOp):
            continue
        for outer, tile in zip(op.ins, op.tiles, strict=True):
            for dim, extent in extents_of(tile).items():
                blocks.setdefault(dim, power_of_two(extents_of(outer)[dim]))
                if dim in op.factors:
                    blocks[dim] = power_of_two(extent)
    for value in node.outs:
        for dim, extent in extents_of(value).items():
            blocks.setdefault(dim, power_of_two(extent))
    return blocks
