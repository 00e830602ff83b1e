"""
Which passes shard dimensions over ranks and programs, and what GPUs cannot execute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.dialects.arch import attached_system
from comet.dialects.collective import (
    AllGatherOp,
    AllReduceOp,
    AllToAllOp,
    CollectiveOp,
    ReduceScatterOp,
)
from comet.dialects.compound.dims import ceil_div
from comet.dialects.errors import OpError
from comet.dialects.parents import enclosing
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.levels import IRLevel
from comet.passes.graph.decompose import DecomposePass
from comet.passes.pipelines.triton_distributed.start import NAME, plan_start
from comet.passes.sharding.add_ctas import AXIS as CTAS
from comet.passes.sharding.boundary import boundary_of, says_sharding
from comet.passes.sharding.dim_axes import (
    DimAxes,
    Dims,
    ShardedDim,
    assign_axes,
    check_dims,
    dims_in,
    extents_along,
    format_dims,
)
from comet.passes.sharding.distribute import DistributePass
from comet.passes.sharding.insert_collectives import InsertCollectivesPass
from comet.passes.sharding.shardings import select_mesh


def distribute_over_ranks(
    ctx: Context, module: ModuleOp, dims: Dims
) -> Iterator[ModulePass]:
    """
    Yield the passes that shard the dimensions `dims` over ranks.

    Raises PassFailedException, with other dimensions, if GPUs do not execute the
    collectives that these need.
    """
    mesh = select_mesh(NAME, module, None)
    sharded = assign_axes(NAME, module, mesh, dims, uneven=True)
    trial = with_collectives(ctx, module, sharded)
    if trial is not None and (found := unsupported(trial)) is not None:
        axes = tuple(mesh.axis_extents)
        options = [
            f"dim={dim}"
            for dim in dims_in(module)
            if (tried := with_collectives(ctx, module, ((dim, axes),))) is not None
            and unsupported(tried) is None
        ]
        way_out = f"use {' or '.join(options)}" if options else "use one rank"
        raise OpError(
            _function_with(found, module),
            f"{NAME}: ranks that split {' and '.join(d for d, _ in sharded)} "
            f"need {found.name} of %{found.input.name_hint or 'a value'}, which "
            f"GPUs do not carry out; {way_out}, or say the shards of each op by "
            "collective.shard",
        )
    yield from (DistributePass(dim, axes) for dim, axes in sharded)


def _function_with(op: Operation, module: ModuleOp) -> FuncOp:
    """Return the function of a module that has the name of the one around `op`."""
    around = enclosing(op, FuncOp)
    assert around is not None
    named = SymbolTable.lookup_symbol(module, around.sym_name)
    assert isinstance(named, FuncOp)
    return named


def check_groups(module: ModuleOp) -> None:
    """
    Raise PassFailedException where groups of programs on several ranks cannot exchange.

    What ranks hold is then given by `dim`, and not by functions.
    """
    for func in filter(_says_what_ranks_hold, compute_functions(module)):
        raise OpError(
            func,
            f"{NAME}: @{func.sym_name.data} says by collective.shard what ranks hold, "
            "and with groups of programs only the option 'dim' does; use ctas=1, or "
            f'leave collective.shard out and say it by dim="M:rank;N:{CTAS}"',
        )


def _says_what_ranks_hold(func: FuncOp) -> bool:
    boundary = boundary_of(func)
    stated = (*boundary.arguments, *boundary.results)
    return says_sharding(func) or any(sharding is not None for sharding in stated)


def distribute_over_programs(
    ctx: Context, module: ModuleOp, dims: Dims, ranks: int
) -> Iterator[ModulePass]:
    """
    Yield the passes that shard a dimension over the programs of a group.

    Of several ranks, it is over these as well, unless `dims` give them another one, as
    in M:rank;N:cta. Raises PassFailedException if programs share several dimensions.
    """
    mesh = select_mesh(NAME, module, None)
    if ranks == 1 and len(dims) == 1 and dims[0].axes is None:
        dims = (DimAxes(dims[0].dim, (CTAS,)),)
    sharded = assign_axes(NAME, module, mesh, dims, uneven=True)
    if (
        len(dims) > len(sharded)
        or [CTAS in axes for _, axes in sharded].count(True) != 1
    ):
        first, over = dims[0].dim, "" if ranks == 1 else ",".join(mesh.rank_axes) + ","
        raise PassFailedException(
            f"{NAME}: the programs of a group share one dimension, and dim is "
            f'{format_dims(dims)}; use dim="{first}:{over}{CTAS}"'
        )
    yield from (DistributePass(dim, axes) for dim, axes in sharded)


def with_collectives(
    ctx: Context, module: ModuleOp, sharded: Sequence[ShardedDim]
) -> ModuleOp | None:
    """
    Return a copy of `module`, sharded, with the collectives that this needs.

    None if the dimensions cannot be sharded: the passes themselves raise that error.
    """
    trial = module.clone()
    try:
        for dim, axes in sharded:
            DistributePass(dim, axes).apply(ctx, trial)
        InsertCollectivesPass().apply(ctx, trial)
    except PassFailedException:
        return None
    return trial


def unsupported(module: ModuleOp) -> CollectiveOp | None:
    """
    Return the first collective that GPUs do not execute, None if there is none.

    GPUs move data between ranks, and reduce it locally. `fuse` rejects the others, too,
    but cannot name dimensions that work.
    """
    carried_out = (AllGatherOp, AllToAllOp, AllReduceOp, ReduceScatterOp)
    found = (op for op in module.walk() if isinstance(op, CollectiveOp))
    return next((op for op in found if not isinstance(op, carried_out)), None)


def group_sizes(
    ctx: Context, module: ModuleOp, dims: Dims, ranks: int, *, named: bool
) -> Iterator[int]:
    """
    Yield the sizes of groups to try: powers of two that leave each program a tile.

    `dims` are those of the option `dim`. Programs share the first one, of which ranks
    have shards, or the one with their axis. There are none where `check_groups` fails.
    Raises OpError if they are `named` by the user and `module` does not have them.
    """
    if ranks > 1 and any(map(_says_what_ranks_hold, compute_functions(module))):
        return
    shared = next((entry for entry in dims if CTAS in (entry.axes or ())), dims[0])
    over_ranks = 1 if shared.axes == (CTAS,) else ranks
    copy = module.clone()
    if plan_start(copy, ranks)[0] is IRLevel.GRAPH:
        DecomposePass(accumulator="f32").apply(ctx, copy)
    if named:
        check_dims(NAME, copy, dims)
    extent = ceil_div(max(extents_along(copy, shared.dim), default=0), over_ranks)
    gpu = device_of(attached_system(module))
    smallest = gpu.triton.groups.least_group_elements
    largest = gpu.triton.groups.most_group_elements
    sizes = (2**power for power in range(1, gpu.multiprocessors.bit_length()))
    for size in sizes:
        if size <= gpu.multiprocessors and smallest * size <= extent <= largest * size:
            yield size
