"""
Fusion for groups of programs: an SPMD region becomes one kernel with collectives.

The instances of the region are programs of one GPU. Its mesh axis, which is below
device memory, becomes a node directly inside the grid node. Collectives stay in the
kernel: values in registers, such as the tile of a product, stay there until those of
the other programs arrive. With several ranks, the region stays as well, for the ranks,
and the node splits the shards of a rank further.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.collective.mesh import lookup_mesh
from comet.dialects.collective.spmd import (
    Sharding,
    SpmdOp,
    sharding_attr,
    sharding_of,
)
from comet.dialects.compound import Elementwise, FoldOp, IndexOp, View
from comet.dialects.compound.dims import (
    ceil_div,
    joined_extents,
    names_of,
    with_extents,
)
from comet.dialects.errors import OpError, called
from comet.dialects.schedule.attributes import LoopAttr
from comet.passes.analysis.levels import spmd_region
from comet.passes.analysis.op_groups import extents_of_op
from comet.passes.analysis.reduction_loops import (
    looped_dims,
    nested_loops,
    reduced_dims,
)
from comet.passes.schedule.fuse.gpu.groups import elementary_ops
from comet.passes.schedule.fuse.gpu.kernel_tree import (
    REGISTERS,
    KernelLevels,
    grid_node,
    loop_trees,
)
from comet.passes.schedule.fuse.gpu.scatters import scatters_of
from comet.passes.schedule.fuse.gpu.simplify import simplify
from comet.passes.schedule.fuse.instance_ops import read_instance_ops
from comet.passes.schedule.fuse.rewrite import FusionPlan, rewrite
from comet.passes.schedule.node_names import name_nodes
from comet.passes.schedule.tile_tree import Leaf, Spatial, Temporal, Tree, chunks_of
from comet.passes.sharding.insert_collectives.local_body import local_type

Stage = tuple[Operation, ...]
"""The ops between two exchanges, or the collectives of one exchange, in order."""


def exchanges_in_gpu(func: FuncOp, levels: GpuLevels) -> bool:
    """Return whether the region of a function has instances on the same GPU."""
    region = spmd_region(func)
    return region is not None and bool(_axes(region, levels))


def _axes(region: SpmdOp, levels: GpuLevels) -> tuple[str, ...]:
    """Return the mesh axes of a region whose instances are on the same GPU."""
    mesh = lookup_mesh(region, region.mesh)
    at = mesh.axis_levels
    return tuple(
        axis
        for axis, extent in mesh.axis_extents.items()
        if extent > 1 and at.get(axis, levels.memory) != levels.memory
    )


@dataclass(frozen=True)
class GroupShards:
    """How the programs of a group shard a dimension."""

    mesh: str
    loop: LoopAttr
    """The dimension that they shard, and its shards."""
    ranks: int
    """The number of GPUs; each has groups for its own shard."""


def fuse_exchanging(func: FuncOp, system: SystemOp) -> None:
    """
    Rewrite the region of `func` as one kernel whose programs exchange values.

    Raises PassFailedException unless the programs of a group shard exactly one
    dimension, and for ops that one kernel cannot have.
    """
    levels, region = gpu_levels(system), spmd_region(func)
    assert region is not None
    if scatters_of(func.walk()):
        raise OpError(
            func,
            f"fuse: programs of a group exchange what they read, and sums that "
            f"@{func.sym_name.data} scatters are complete when all have ended; use "
            "ctas=1",
        )
    shards = _shards(region, func.sym_name.data, levels)
    axes = _axes(region, levels)
    unshard_positions(region, axes)
    if shards.ranks > 1:
        unshard_boundary(region, axes)
    rewrite(func, plan_exchanging(func, shards, levels))
    simplify(func)
    name_nodes(func)


def unshard_boundary(region: SpmdOp, axes: Collection[str]) -> None:
    """Make the arguments and results of a region whole along some mesh axes."""
    mesh = lookup_mesh(region, region.mesh)
    for outer, inner, sharding in region.boundary()[: len(region.ins)]:
        kept = without_axes(sharding, axes)
        shard = local_type(outer.type, kept, mesh)
        Rewriter.replace_value_with_new_type(inner, shard)
    region.in_shardings = _without_axes(region.in_shardings, axes)
    region.out_shardings = _without_axes(region.out_shardings, axes)


def unshard_positions(region: SpmdOp, axes: Collection[str]) -> None:
    """Make the positions that a region counts whole along some mesh axes."""
    mesh = lookup_mesh(region, region.mesh)
    for op in list(region.walk()):
        if isinstance(op, IndexOp) and not set(axes).isdisjoint(op.axis_names):
            kept = tuple(axis for axis in op.axis_names if axis not in axes)
            extents = {op.dim: ceil_div(op.extent, mesh.size(kept))}
            counted = with_extents(op.result.type, extents)
            of = op.extent if kept else None
            Rewriter.replace_op(op, IndexOp(counted, of, kept))


def _without_axes(
    shardings: ArrayAttr[DictionaryAttr], axes: Collection[str]
) -> ArrayAttr[DictionaryAttr]:
    kept = (without_axes(sharding_of(each), axes) for each in shardings)
    return ArrayAttr(map(sharding_attr, kept))


def without_axes(sharding: Sharding, axes: Collection[str]) -> Sharding:
    """Return a sharding without some mesh axes."""
    left = {
        dim: tuple(axis for axis in names if axis not in axes)
        for dim, names in sharding.items()
    }
    return {dim: names for dim, names in left.items() if names}


def plan_exchanging(func: FuncOp, shards: GroupShards, levels: GpuLevels) -> FusionPlan:
    """Plan the kernel that replaces the region, or its ops if it stays for ranks."""
    instance, ops = read_instance_ops(func), elementary_ops(func)
    _check_ops(func, ops, shards)
    positions = Leaf(tuple(op for op in instance.ops if isinstance(op, IndexOp)))
    if instance.region is not None and shards.ranks > 1:
        outs = instance.region.yielded
        return FusionPlan(
            instance.region.body.block,
            (positions, _kernel(ops, tuple(dict.fromkeys(outs)), shards)),
            outs,
            KernelLevels(levels),
            chunks_of(ops),
        )
    return FusionPlan(
        func.body.block,
        (positions, _kernel(ops, instance.outputs, shards)),
        tuple(instance.returned.operands),
        KernelLevels(levels),
        chunks_of(ops) | {**instance.inputs, **instance.leaving},
    )


def _check_ops(func: FuncOp, ops: Stage, shards: GroupShards) -> None:
    """Raise an error for ops that programs of a group cannot have, or need not have."""
    name = func.sym_name.data
    for op in ops:
        if isinstance(op, View):
            raise OpError(
                op,
                f"fuse: {called(op.result)} of @{name} is a view, "
                "which programs that exchange do not have in registers; compile "
                "without ctas",
            )
        if isinstance(op, CollectiveOp) and _sends_shards(op, shards.loop):
            raise OpError(
                op,
                f"fuse: ranks of @{name} exchange {called(op.input)}, "
                f"of which each program of a group has a part of {shards.loop.dim}; "
                f"let ranks split what programs do, as in dim={shards.loop.dim}, or "
                "compile without ctas",
            )
    if not any(isinstance(op, CollectiveOp) for op in ops):
        raise OpError(
            func,
            f"fuse: programs of @{name} split {shards.loop.dim} and have nothing to "
            "exchange, so they are no groups; compile without ctas",
        )


def _sends_shards(op: CollectiveOp, loop: LoopAttr) -> bool:
    """Whether ranks exchange a value that no program of a group has whole."""
    return loop.axis not in op.axis_names and loop.dim in names_of(op.input)


def _shards(region: SpmdOp, name: str, levels: GpuLevels) -> GroupShards:
    """Return how the programs of a group shard a dimension; checks the sharding."""
    mesh = lookup_mesh(region, region.mesh)
    axes = _axes(region, levels)
    shardings = [sharding for _, _, sharding in region.boundary()]
    dims = dict.fromkeys(
        dim
        for sharding in shardings
        for dim, names in sharding.items()
        if not set(axes).isdisjoint(names)
    )
    if len(dims) != 1 or len(axes) != 1:
        raise PassFailedException(
            f"fuse: programs of @{name} are in groups along {', '.join(axes)}, and "
            f"split {', '.join(dims) or 'no argument and no result'}; let them split "
            "one dimension, as in dim=N:cta"
        )
    (axis,), (dim,) = axes, dims
    loop = LoopAttr(dim, mesh.axis_extents[axis], axis)
    whole = joined_extents((*region.ins, *region.outs))[dim]
    sharding = next(each for each in shardings if dim in each)
    over_ranks = without_axes(sharding, axes).get(dim, ())
    _check_shards(name, loop, ceil_div(whole, mesh.size(over_ranks)))
    ranks = mesh.size(mesh.axis_extents) // mesh.size(axes)
    return GroupShards(mesh.sym_name.data, loop, ranks)


def _check_shards(name: str, loop: LoopAttr, extent: int) -> None:
    """Check that no program of a group has an empty shard."""
    shard = ceil_div(extent, loop.factor)
    if shard * (loop.factor - 1) >= extent:
        raise PassFailedException(
            f"fuse: of {loop.factor} programs of @{name} some have no part of "
            f"{loop.dim} = {extent}; use ctas={ceil_div(extent, shard)} or fewer"
        )


def _kernel(ops: Stage, outs: tuple[SSAValue, ...], shards: GroupShards) -> Spatial:
    """
    Return the tree of the kernel: grid node, group node, loop over rows, stages.

    With the loop there are few enough programs that all run at the same time.
    """
    _check_results(outs, ops, shards.loop.dim)
    cut = {shards.loop.dim, *(dim for op in ops for dim in reduced_dims(op))}
    kept = [dim for dim in names_of(outs[0]) if dim not in cut]
    grid = [dim for dim in kept if all(dim in names_of(out) for out in outs)]
    if len(grid) != 1:
        raise PassFailedException(
            "fuse: groups of programs need rows of one dimension, and have "
            f"{', '.join(grid) or 'none'}; merge them to one with compound.rename, or "
            "compile without ctas"
        )
    stages = tuple(_stages(ops, outs, shards))
    rows = Temporal(REGISTERS, stages, grid[0], (), ops, outs)
    group = Spatial(REGISTERS, shards.mesh, (shards.loop,), (rows,), ops, outs)
    return grid_node(grid, (group,), ops, outs)


def _check_results(outs: Sequence[SSAValue], ops: Stage, dim: str) -> None:
    """Check that programs that shard `dim` have shards of all results to store."""
    for op in ops:
        for value in op.results:
            if value in outs and dim not in names_of(value):
                raise OpError(
                    op,
                    f"fuse: {called(value)} has no {dim}, so all "
                    "programs of a group have all of it, and none a part to store; "
                    "compile without ctas, or split another dimension with dim",
                )


def _stages(
    ops: Stage, outs: Sequence[SSAValue], shards: GroupShards
) -> Iterator[Tree]:
    """Yield the stages of a program: ops, and the collectives between them."""
    for stage in stages_of(ops):
        if isinstance(stage[0], CollectiveOp):
            yield Leaf(stage)
            continue
        inside = set(stage)
        later = {v for op in ops if op not in inside for v in op.operands}
        loops = _loops(stage, shards)
        wanted = later | set(outs)
        for tree in loop_trees(stage, loops, wanted):
            yield from _with_partial_folds(tree, shards)


def stages_of(ops: Stage) -> Iterator[Stage]:
    """
    Yield ops by the number of exchanges before them, each exchange after its ops.

    An elementwise op that reads only inputs is in the first stage that needs it, so
    that no register holds its result while programs wait.
    """
    results = {value for op in ops for value in op.results}
    depth: dict[Operation, int] = {}
    for op in ops:
        exchanges = isinstance(op, CollectiveOp)
        before = [
            depth[producer] + (isinstance(producer, CollectiveOp) != exchanges)
            for producer in (value.owner for value in op.operands)
            if isinstance(producer, Operation) and producer in depth
        ]
        depth[op] = max(before, default=int(exchanges))
    for op in ops:
        if isinstance(op, Elementwise) and not results & set(op.operands):
            users = {use.operation for value in op.results for use in value.uses}
            if not any(isinstance(user, CollectiveOp) for user in users):
                needed = (depth[user] for user in users if user in depth)
                depth[op] = min(needed, default=depth[op])
    for _, stage in groupby(sorted(ops, key=depth.__getitem__), key=depth.__getitem__):
        yield tuple(stage)


def _loops(stage: Stage, shards: GroupShards) -> tuple[str, ...]:
    """Return the loops of a stage: none over the shard, which registers hold whole."""
    dims = [dim for dim in looped_dims(stage) if dim != shards.loop.dim]
    extents = {dim: n for op in stage for dim, n in extents_of_op(op).items()}
    return nested_loops(stage, dims, extents)


def _with_partial_folds(tree: Tree, shards: GroupShards) -> Iterator[Tree]:
    """
    Yield a tree, with each fold over the sharded dimension in a loop of one iteration.

    The combiner of the loop shows that the result is partial.
    """
    if not isinstance(tree, Leaf):
        yield tree
        return
    kept: list[Operation] = []
    for op in tree.ops:
        if not isinstance(op, FoldOp) or op.dim.data != shards.loop.dim:
            kept.append(op)
            continue
        if kept:
            yield Leaf(tuple(kept))
            kept = []
        outs = tuple(op.outs)
        yield Temporal(REGISTERS, (Leaf((op,)),), op.dim.data, (op,), (op,), outs)
    if kept:
        yield Leaf(tuple(kept))
