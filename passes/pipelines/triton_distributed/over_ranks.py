"""Which passes shard dimensions over ranks and programs."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.dialects.arch import attached_system
from comet.dialects.compound.dims import ceil_div
from comet.dialects.errors import OpError
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.levels import IRLevel
from comet.passes.graph.decompose import DecomposePass
from comet.passes.pipelines.triton_distributed.start import NAME, plan_start
from comet.passes.sharding.add_ctas import AXIS as CTAS
from comet.passes.sharding.boundary import boundary_of, says_sharding
from comet.passes.sharding.dim_axes import (
    DimAxes,
    Dims,
    assign_axes,
    check_dims,
    extents_along,
    format_dims,
)
from comet.passes.sharding.distribute import DistributePass
from comet.passes.sharding.shardings import select_mesh


def distribute_over_ranks(module: ModuleOp, dims: Dims) -> Iterator[ModulePass]:
    """Yield the passes that shard the dimensions `dims` over ranks."""
    mesh = select_mesh(NAME, module, None)
    for dim, axes in assign_axes(NAME, module, mesh, dims, uneven=True):
        yield DistributePass(dim, axes)


def check_groups(module: ModuleOp) -> None:
    """
    Raise PassFailedException for a function that states shardings of ranks.

    With groups of programs, only the option `dim` gives the shardings of ranks.
    """
    for func in filter(_states_shardings, compute_functions(module)):
        raise OpError(
            func,
            f"{NAME}: @{func.sym_name.data} says by collective.shard what ranks hold, "
            "and with groups of programs only the option 'dim' does; use ctas=1, or "
            f'leave collective.shard out and say it by dim="M:rank;N:{CTAS}"',
        )


def _states_shardings(func: FuncOp) -> bool:
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
        (ranks == 1 and any(entry.axes is None for entry in dims))
        or len(dims) > len(sharded)
        or [CTAS in axes for _, axes in sharded].count(True) != 1
    ):
        first, over = dims[0].dim, "" if ranks == 1 else ",".join(mesh.rank_axes) + ","
        raise PassFailedException(
            f"{NAME}: the programs of a group share one dimension, and dim is "
            f'{format_dims(dims)}; use dim="{first}:{over}{CTAS}"'
        )
    yield from (DistributePass(dim, axes) for dim, axes in sharded)


def group_sizes(
    ctx: Context, module: ModuleOp, dims: Dims, ranks: int, *, named: bool
) -> Iterator[int]:
    """
    Yield the sizes of groups to try: powers of two that leave each program a tile.

    `dims` are the dimensions of the option `dim`. Programs shard the one with their
    axis, else the first one, of which ranks have shards. Yields nothing if
    `check_groups` fails. Raises OpError if the user `named` dimensions that `module`
    does not have.
    """
    if ranks > 1 and any(map(_states_shardings, compute_functions(module))):
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
