"""
Which dimensions are sharded unevenly.

A shard has ceil(extent / ranks) elements by its type. If the ranks do not divide the
extent, the last ranks have fewer elements, or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from comet.dialects.collective import AllGatherOp, AllToAllOp
from comet.dialects.collective.mesh import MeshOp, lookup_mesh
from comet.dialects.collective.spmd import SpmdOp, region_states
from comet.dialects.compound import ConcatOp, RenameOp, SliceOp
from comet.dialects.compound.dims import extents_of
from comet.dialects.compound.index import IndexOp
from comet.dialects.compound.pad import resized_dims
from comet.dialects.errors import OpError, called
from comet.dialects.schedule import SpatialOp

UnevenExtents: TypeAlias = Mapping[SSAValue, Mapping[str, int]]
"""The extent over all ranks of the unevenly sharded dimensions of each value."""


def uneven_extents(region: SpmdOp) -> UnevenExtents:
    """
    Return the uneven dimensions of the operands and results of a region's ops.

    Raises `PassFailedException` for a node that has a shard and the whole of one.
    """
    mesh, states = lookup_mesh(region, region.mesh), region_states(region)
    extents = global_extents(region)
    found = {
        value: uneven
        for value, state in states.items()
        if (uneven := _uneven(value, state.sharded, extents.get(value, {}), mesh))
    }
    for node in region.body.block.ops:
        uneven = {dim for value in node.operands for dim in found.get(value, {})}
        for value in node.operands if isinstance(node, SpatialOp) else ():
            split = states[value].sharded.values()
            for dim in uneven & extents_of(value).keys() - set(split):
                raise OpError(
                    node,
                    f"outline-kernels: a kernel reads unequal shards of {dim}, and "
                    f"{called(value)}, which has no shards of it; give "
                    "the dimension another name in one of them",
                )
    return found


def global_extents(region: SpmdOp) -> dict[SSAValue, Mapping[str, int]]:
    """Return the extents over all ranks of the values of a region."""
    extents: dict[SSAValue, Mapping[str, int]] = {}
    for outer, inner, _ in region.boundary():
        extents[inner] = extents_of(outer)
    for op in region.body.block.ops:
        joined: dict[str, int] = {}
        for value in op.operands:
            joined |= extents.get(value, {})
        for result in op.results:
            local = extents_of(result)
            inherited = {dim: n for dim, n in joined.items() if dim in local}
            extents.setdefault(result, inherited | _defined_extents(op, joined))
    return extents


def _defined_extents(op: Operation, extents: Mapping[str, int]) -> dict[str, int]:
    """Return the extents over all ranks that `op` itself decides."""
    match op:
        case AllGatherOp():
            return {op.dim.data: extents_of(op.result)[op.dim.data]}
        case AllToAllOp():
            return {
                op.split.data: extents_of(op.input)[op.split.data],
                op.concat.data: extents_of(op.result)[op.concat.data],
            }
        case IndexOp():
            return {op.dim: op.extent}
        case SliceOp() | ConcatOp():
            local = extents_of(op.result)
            return {dim: local[dim] for dim in resized_dims(op)}
        case RenameOp():
            local, before = extents_of(op.result), extents_of(op.input)
            renamed = {
                new: extents.get(old, before[old]) for new, old in op.origin.items()
            }
            if op.cut is not None:
                outer = op.renaming[op.cut]
                renamed[outer] //= before[op.cut] // local[outer]
            for dim in op.merged[1:]:
                renamed[op.renaming[dim]] *= before[dim]
            return renamed
        case _:
            return {}


def _uneven(
    value: SSAValue,
    sharded: Mapping[str, str],
    extents: Mapping[str, int],
    mesh: MeshOp,
) -> dict[str, int]:
    uneven: dict[str, int] = {}
    for dim in dict.fromkeys(sharded.values()):
        axes = [axis for axis, split in sharded.items() if split == dim]
        shard = extents_of(value).get(dim, 0)
        if dim in extents and shard * mesh.size(axes) != extents[dim]:
            uneven[dim] = extents[dim]
    return uneven
