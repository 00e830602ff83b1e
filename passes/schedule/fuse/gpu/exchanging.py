"""
Fusion of a region whose instances are programs of one GPU: one kernel that exchanges.

The region of a mesh axis below device memory becomes a node over that axis, directly
inside the grid node. Its collectives stay where they are: what is in registers, such as
the tile of a product, waits there until the values of the other programs arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.collective.mesh import lookup_mesh
from comet.dialects.collective.spmd import SpmdOp
from comet.dialects.compound import CastOp, FoldOp, MapOp, View
from comet.dialects.compound.dims import joined_extents, names_of
from comet.dialects.schedule.attributes import LoopAttr
from comet.dialects.schedule.slices import even_tile
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
    loop_trees,
)
from comet.passes.schedule.fuse.gpu.trial import simplify
from comet.passes.schedule.fuse.program import Program, read_program
from comet.passes.schedule.fuse.rewrite import FusionPlan, rewrite
from comet.passes.schedule.node_names import name_nodes
from comet.passes.schedule.tile_tree import Leaf, Spatial, Temporal, Tree, chunks_of

Stage = tuple[Operation, ...]
"""Ops between two exchanges, or the collectives of one, in order."""


def exchanges_in_gpu(func: FuncOp, levels: GpuLevels) -> bool:
    """Return whether the instances of a function's region share device memory."""
    region = spmd_region(func)
    return region is not None and bool(_axes(region, levels))


def _axes(region: SpmdOp, levels: GpuLevels) -> tuple[str, ...]:
    """Return the axes of a region's mesh whose instances share device memory."""
    mesh = lookup_mesh(region, region.mesh)
    at = mesh.axis_levels
    return tuple(
        axis
        for axis, extent in mesh.axis_extents.items()
        if extent > 1 and at.get(axis, levels.memory) != levels.memory
    )


@dataclass(frozen=True)
class GroupShards:
    """The dimensions that the programs of a group split."""

    mesh: str
    rows: tuple[LoopAttr, ...]

    @property
    def dims(self) -> frozenset[str]:
        """The names of the dimensions."""
        return frozenset(row.dim for row in self.rows)


def fuse_exchanging(func: FuncOp, system: SystemOp) -> None:
    """
    Rewrite the region of `func` as one kernel whose programs exchange.

    Raises PassFailedException if its instances are also ranks, if programs split no
    dimension or two, and for ops that one kernel cannot have.
    """
    levels = gpu_levels(system)
    rewrite(func, plan_exchanging(func, levels))
    simplify(func)
    name_nodes(func)


def plan_exchanging(func: FuncOp, levels: GpuLevels) -> FusionPlan:
    """Return the kernel that replaces the region of `func`; changes nothing."""
    program, ops = read_program(func), elementary_ops(func)
    shards = _shards(program, levels)
    for op in ops:
        if isinstance(op, View):
            raise PassFailedException(
                f"fuse: %{op.result.name_hint or 'a value'} of @{func.sym_name.data} "
                "is a view, which programs that exchange do not have in registers; "
                "compile without ctas"
            )
    inputs = dict(program.inputs)
    return FusionPlan(
        func.body.block,
        (_kernel(ops, program.outputs, shards),),
        tuple(program.returned.operands),
        KernelLevels(levels),
        chunks_of(ops) | {**inputs, **program.leaving},
    )


def _shards(program: Program, levels: GpuLevels) -> GroupShards:
    """Return what the programs of a group split."""
    region, name = program.region, program.func.sym_name.data
    assert region is not None
    mesh = lookup_mesh(region, region.mesh)
    axes = _axes(region, levels)
    ranks = mesh.size(mesh.axis_extents) // mesh.size(axes)
    if ranks > 1:
        raise PassFailedException(
            f"fuse: @{name} runs on {ranks} ranks, whose programs are in groups; use "
            "one rank, or no ctas"
        )
    found: dict[str, str] = {}
    for _, _, sharding in region.boundary():
        for dim, names in sharding.items():
            found |= {axis: dim for axis in names if axis in axes}
    if len(found) != 1 or len(axes) != 1:
        raise PassFailedException(
            f"fuse: programs of @{name} are in groups along {', '.join(axes)}, and "
            f"split {', '.join(found.values()) or 'no argument and no result'}; let "
            "them split one dimension, as in dim=N:cta"
        )
    rows = (LoopAttr(found[axis], mesh.axis_extents[axis], axis) for axis in axes)
    shards = GroupShards(mesh.sym_name.data, tuple(rows))
    for row in shards.rows:
        _check_parts(name, row, joined_extents(region.ins)[row.dim])
    return shards


def _check_parts(name: str, row: LoopAttr, extent: int) -> None:
    """Check that every program of a group has a part of a dimension."""
    shard = even_tile(extent, row.factor)
    if shard * (row.factor - 1) >= extent:
        raise PassFailedException(
            f"fuse: of {row.factor} programs of @{name} some have no part of {row.dim} "
            f"= {extent}; use ctas={even_tile(extent, shard)} or fewer"
        )


def _kernel(ops: Stage, outs: tuple[SSAValue, ...], shards: GroupShards) -> Spatial:
    """
    Return the tree of the kernel: its grid, the group, the stages of a program.

    Programs loop over rows, so that all of them can run at the same time.
    """
    reduced = {dim for op in ops for dim in reduced_dims(op)} | shards.dims
    kept = [dim for dim in names_of(outs[0]) if dim not in reduced]
    grid = [dim for dim in kept if all(dim in names_of(out) for out in outs)]
    if len(grid) != 1:
        raise PassFailedException(
            f"fuse: groups of programs have rows of {', '.join(grid) or 'no dimension'}"
            ", and exchange for tiles of one; see the others as one, or compile "
            "without ctas"
        )
    rows = tuple(LoopAttr(dim, 1, f"g{index}") for index, dim in enumerate(grid))
    children = tuple(_stages(ops, outs, shards))
    for dim in reversed(grid):
        children = (Temporal(REGISTERS, children, dim, (), ops, outs),)
    group = Spatial(REGISTERS, shards.mesh, shards.rows, children, ops, outs)
    return Spatial(REGISTERS, None, rows, (group,), ops, outs)


def _stages(
    ops: Stage, outs: Sequence[SSAValue], shards: GroupShards
) -> Iterator[Tree]:
    """Yield what a program does: stages of ops, with exchanges between."""
    for stage in stages_of(ops):
        if isinstance(stage[0], CollectiveOp):
            yield Leaf(stage)
            continue
        inside = set(stage)
        later = {v for op in ops if op not in inside for v in op.operands}
        loops = _loops(stage, shards)
        wanted = later | set(outs)
        for tree in loop_trees(stage, loops, wanted, frozenset(), outermost=True):
            yield from _with_parts(tree, shards)


def stages_of(ops: Stage) -> Iterator[Stage]:
    """
    Yield ops by the number of exchanges before them, each exchange after its ops.

    What an elementwise op makes of inputs alone is in the stage that needs it first: no
    register holds it while programs wait.
    """
    made = {value for op in ops for value in op.results}
    depth: dict[Operation, int] = {}
    for op in ops:
        exchanges = isinstance(op, CollectiveOp)
        before = [
            depth[made] + (isinstance(made, CollectiveOp) != exchanges)
            for made in (value.owner for value in op.operands)
            if isinstance(made, Operation) and made in depth
        ]
        depth[op] = max(before, default=int(exchanges))
    for op in ops:
        if isinstance(op, MapOp | CastOp) and not made & set(op.operands):
            users = {use.operation for value in op.results for use in value.uses}
            if not any(isinstance(user, CollectiveOp) for user in users):
                needed = (depth[user] for user in users if user in depth)
                depth[op] = min(needed, default=depth[op])
    for _, stage in groupby(sorted(ops, key=depth.__getitem__), key=depth.__getitem__):
        yield tuple(stage)


def _loops(stage: Stage, shards: GroupShards) -> tuple[str, ...]:
    """Return the loops of a stage: a shard is one tile, which stays in registers."""
    dims = [dim for dim in looped_dims(stage) if dim not in shards.dims]
    extents = {dim: n for op in stage for dim, n in extents_of_op(op).items()}
    return nested_loops(stage, dims, extents)


def _with_parts(tree: Tree, shards: GroupShards) -> Iterator[Tree]:
    """
    Yield a tree, with folds of which each program does a part in loops of their own.

    Such a loop has one iteration; its combiner shows that others have the other parts.
    """
    if not isinstance(tree, Leaf):
        yield tree
        return
    kept: list[Operation] = []
    for op in tree.ops:
        if not isinstance(op, FoldOp) or op.dim.data not in shards.dims:
            kept.append(op)
            continue
        if kept:
            yield Leaf(tuple(kept))
            kept = []
        outs = tuple(op.outs)
        yield Temporal(REGISTERS, (Leaf((op,)),), op.dim.data, (op,), (op,), outs)
    if kept:
        yield Leaf(tuple(kept))
