"""
The real extents of shards: which dimensions are sharded unevenly.

A shard has ceil(extent / ranks) elements by its type. If that does not divide, the last
ranks have fewer, or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from xdsl.ir import SSAValue

from comet.dialects.collective import AllGatherOp, AllToAllOp
from comet.dialects.collective.mesh import MeshOp, lookup_mesh
from comet.dialects.collective.spmd import SpmdOp, region_states
from comet.dialects.compound import RenameOp
from comet.dialects.compound.dims import extents_of
from comet.dialects.compound.index import IndexOp

Ragged: TypeAlias = Mapping[SSAValue, Mapping[str, int]]
"""The extent over all ranks of a value's dimensions with unequal shards."""


def ragged_extents(region: SpmdOp) -> Ragged:
    """Return the uneven dimensions of the operands and results of a region's ops."""
    mesh = lookup_mesh(region, region.mesh)
    wholes = global_extents(region)
    return {
        value: uneven
        for value, state in region_states(region).items()
        if (uneven := _uneven(value, state.sharded, wholes, mesh))
    }


def global_extents(region: SpmdOp) -> dict[str, int]:
    """Return the extent over all ranks of every dimension of a region's operands."""
    extents: dict[str, int] = {}
    for outer, _, _ in region.boundary():
        extents |= extents_of(outer)
    for op in region.body.block.ops:
        if isinstance(op, AllGatherOp):
            extents |= {op.dim.data: extents_of(op.result)[op.dim.data]}
        if isinstance(op, IndexOp):
            extents |= {op.dim: op.extent}
        if isinstance(op, AllToAllOp):
            extents |= {op.split.data: extents_of(op.input)[op.split.data]}
        if isinstance(op, RenameOp):
            names = op.renaming.items()
            extents |= {new: extents[old] for old, new in names if old in extents}
    return extents


def _uneven(
    value: SSAValue,
    sharded: Mapping[str, str],
    wholes: Mapping[str, int],
    mesh: MeshOp,
) -> dict[str, int]:
    uneven: dict[str, int] = {}
    for dim in dict.fromkeys(sharded.values()):
        axes = [axis for axis, split in sharded.items() if split == dim]
        shard = extents_of(value).get(dim, 0)
        if dim in wholes and shard * mesh.size(axes) != wholes[dim]:
            uneven[dim] = wholes[dim]
    return uneven
