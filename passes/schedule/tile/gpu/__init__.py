"""
Tiles on GPUs: block sizes, warps and pipeline stages by estimated kernel time.

The choice is a plan string, like one from a user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import VerifyException

from comet.cost.from_ir.clusters import program_blocks
from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import launch_numbers, summarize
from comet.cost.gpu.capacity import holds, shared_need
from comet.cost.gpu.clusters import LEAST_COLUMNS, MOST_ROWS, block_of, is_divided
from comet.cost.gpu.device import Device
from comet.cost.gpu.epilogue import with_fewest_subtiles
from comet.cost.gpu.registers import (
    REGISTER,
    LaunchNumbers,
    alive_bytes,
    thread_registers,
)
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks
from comet.cost.gpu.tiling import price
from comet.cost.gpu.triton_rules import SpecializedWarps
from comet.cost.reals import Real
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.arch.triton_version import CLUSTERS_SINCE, version_text
from comet.dialects.compound.dims import LAUNCH_NUMBERS, SPECIALIZE, SUBTILES, ceil_div
from comet.dialects.cost import Figures, Model, TimeUnit, annotate
from comet.dialects.errors import OpError
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.clusters import split_dims, unsplit
from comet.dialects.schedule.epilogue import undivided
from comet.dialects.schedule.launch import LaunchAttr
from comet.dialects.schedule.node import NodeOp, repeats_programs
from comet.dialects.tl.math import MIN_DOT_EXTENT, MOST_THREADS
from comet.passes.analysis.grid import grid_nodes
from comet.passes.schedule.plan_string import Numbers, PlanEntry
from comet.passes.schedule.tile.gpu.space import (
    LARGE_LAUNCHES,
    KernelTiling,
    launches_that_fit,
    smallest_blocks,
    tilings_that_fit,
    unpadded_vector,
    wasted_product,
)
from comet.passes.search import cheapest


def choose(func: FuncOp, system: SystemOp) -> tuple[PlanEntry, ...]:
    """
    Return the plan with the fastest tiling of each kernel, by estimated time.

    Raises PassFailedException if no tiling of a kernel fits the GPU.
    """
    levels = gpu_levels(system)
    gpu = device_of(system)
    tilings: dict[SpatialOp, KernelTiling] = {}
    for node in grid_nodes(func):
        tiling = best_tiling(node, summarize(node, levels, gpu), gpu)
        if tiling is None:
            raise OpError(
                node,
                f"tile: {misfit(node, levels, gpu)}; fuse less, with strategy=auto",
            )
        tilings[node] = tiling
    return plan_with(tilings)


def plan_with(tilings: Mapping[SpatialOp, KernelTiling]) -> tuple[PlanEntry, ...]:
    """Return the plan for the tilings of kernels."""
    return tuple(
        PlanEntry(op.node_name or "", numbers)
        for node, tiling in tilings.items()
        for op in node.walk()
        if isinstance(op, NodeOp)
        and not op.on_mesh
        and (numbers := _numbers(op, node, tiling))
    )


def misfit(node: SpatialOp, levels: GpuLevels, gpu: Device) -> str:
    """Return a clause that says why no tiling of a kernel fits."""
    summary = summarize(node, levels, gpu)
    smallest = smallest_blocks(summary)
    if wasted_product(summary, {dim: (size,) for dim, size in smallest.items()}):
        return (
            f"the kernel that makes {_outs(node)} has a product that is large enough "
            "for tl.dot, but whose programs take several elements of too many "
            "dimensions; store its result in another kernel"
        )
    if unpadded_vector(summary):
        return (
            f"the kernel that makes {_outs(node)} multiplies a vector that cannot be "
            "padded for tl.dot, as another product takes one element at a time of its "
            "dimension; store its result in another kernel"
        )
    warps = max(LARGE_LAUNCHES["warps"])
    per_thread = thread_registers(summary, smallest, LaunchNumbers(warps, 2), gpu)
    registers = per_thread * REGISTER * warps * gpu.limits.warp_threads
    shared = shared_need(summary, smallest, 1, gpu)
    return (
        f"{_needed(node, registers, shared, levels)} with its smallest tiles, more "
        f"than fit beside addresses and buffers in the {gpu.limits.register_bytes} and "
        f"{gpu.limits.shared_bytes} bytes there"
    )


def _needed(node: SpatialOp, registers: Real, shared: Real, levels: GpuLevels) -> str:
    return (
        f"the kernel that makes {_outs(node)} needs {int(registers)} bytes of "
        f"{levels.registers} and {int(shared)} bytes of {levels.shared}"
    )


def _outs(node: SpatialOp) -> str:
    return ", ".join(f"%{value.name_hint or 'a result'}" for value in node.outs)


def _numbers(op: NodeOp, kernel: SpatialOp, tiling: KernelTiling) -> Numbers:
    """
    Return the numbers of a plan for a node of a kernel.

    Its dimensions stay, their factors follow from block sizes; the grid node also has
    launch numbers.
    """
    extents = op.extents
    rows = tuple(
        (dim, ceil_div(extents[dim], tiling.blocks[dim])) for dim in op.factors
    )
    if tiling.row_groups is not None and (op is kernel or repeats_programs(op)):
        number = tiling.row_groups.groups if op is kernel else tiling.row_groups.turns
        rows = tuple((dim, number) for dim in op.factors)
    return (*rows, *tiling.launch.numbers.items()) if op is kernel else rows


def best_tiling(
    node: SpatialOp, summary: KernelSummary, gpu: Device, *, long: bool = True
) -> KernelTiling | None:
    """
    Return the fastest tiling of a kernel, None if none fits.

    `long`: blocks of summed dimensions may be long.
    """
    priced = tilings_that_fit(summary, gpu, long=long)
    if priced is None:
        return None
    candidates = priced.candidates(priced.varied())
    return cheapest("tiles", f"@{node.node_name}", candidates).result


def finish_kernels(func: FuncOp, system: SystemOp, plan: Sequence[PlanEntry]) -> None:
    """
    Set the launch numbers and the estimate of every kernel.

    Tiles are not changed. Launch numbers are those of `plan`, else those of the kernel,
    else the fastest. Raises PassFailedException if a number is not legal, or if the
    tiles of a kernel do not fit.
    """
    levels = gpu_levels(system)
    gpu = device_of(system)
    launches = {entry.name: entry.launch for entry in plan}
    for node in grid_nodes(func):
        try:
            finish_kernel(node, levels, gpu, launches.get(node.node_name or "", {}))
        except VerifyException as error:
            raise OpError(node, f"tile: @{node.node_name}: {error}") from error


def finish_kernel(
    node: SpatialOp,
    levels: GpuLevels,
    gpu: Device,
    fixed: Mapping[str, int],
) -> None:
    """
    Set the launch numbers and the estimate of one kernel; `fixed` numbers are kept.

    Raises VerifyException if a number is not legal, PassFailedException if the tiles do
    not fit.
    """
    summary, blocks = summarize(node, levels, gpu), program_blocks(node)
    _check_products(node, summary, blocks)
    launch = _launch(node, summary, blocks, gpu, _fixed_numbers(node, fixed))
    _check_cluster(node, launch.cluster, summary, blocks, gpu)
    blocks = block_of(summary, blocks, launch.cluster)
    node.launch = _with_subtiles(node, launch, summary, blocks, gpu)
    numbers = launch_numbers(node.launch)
    _check_threads(node, node.launch.warps, gpu)
    shared = shared_need(summary, blocks, numbers.stages, gpu)
    if not holds(summary, blocks, shared, gpu):
        registers = alive_bytes(summary, blocks, gpu.triton.stores.epilogue_subtiles)
        raise OpError(
            node,
            f"tile: {_needed(node, registers, shared, levels)}, more than the "
            f"{gpu.limits.register_bytes} and {gpu.limits.shared_bytes} bytes there: "
            "raise its factors, or fuse less",
        )
    time = price(summary, blocks, numbers, gpu)
    if numbers.specialize and not np.isfinite(time.seconds):
        raise OpError(node, _not_specialized(gpu.triton.specialized))
    set_estimate(node, float(time.seconds) - gpu.times.launch)


def _fixed_numbers(node: SpatialOp, fixed: Mapping[str, int]) -> Mapping[str, int]:
    """
    Return the launch numbers that are not chosen: `fixed`, and others of the kernel.

    Other warps or stages need other subtiles.
    """
    own = {} if node.launch is None else node.launch.numbers
    if any(own.get(name) != number for name, number in fixed.items()):
        own.pop(SUBTILES, None)
    return {**own, **fixed}


def _with_subtiles(
    node: SpatialOp,
    launch: LaunchAttr,
    summary: KernelSummary,
    blocks: Blocks,
    gpu: Device,
) -> LaunchAttr:
    """
    Return launch numbers with the subtiles of the epilogue, by default the fewest.

    Raises PassFailedException if subtiles cannot divide it.
    """
    given = launch.subtiles
    if given > 1 and (reason := undivided(node, given)):
        raise OpError(node, f"tile: @{node.node_name}: {reason}; leave subtiles out")
    if not given:
        numbers = launch_numbers(launch)
        numbers, _ = with_fewest_subtiles(summary, blocks, numbers, gpu)
        given = int(numbers.subtiles)
    return launch.replaced(subtiles=given if given > 1 else 0)


def _check_threads(node: SpatialOp, warps: int, gpu: Device) -> None:
    """Raise PassFailedException for more warps than a program may have."""
    threads = gpu.limits.warp_threads
    if warps * threads > MOST_THREADS:
        raise OpError(
            node,
            f"tile: @{node.node_name} has {warps} warps of {threads} threads, "
            f"and a program has at most {MOST_THREADS}; give it fewer warps",
        )


def _check_cluster(
    node: SpatialOp,
    cluster: int,
    summary: KernelSummary,
    blocks: Mapping[str, int],
    gpu: Device,
) -> None:
    """Raise PassFailedException if a program cannot be `cluster` thread blocks."""
    if cluster == 1:
        return
    what = f"tile: @{node.node_name} cannot have cluster={cluster}:"
    if cluster > (most := gpu.limits.most_cluster_blocks):
        raise OpError(
            node,
            f"{what} a program has at most {most} thread blocks "
            f"here; clusters need Triton {version_text(CLUSTERS_SINCE)} or newer, "
            "which the option triton of attach-hardware says, and most_cluster_blocks "
            "in the hardware file",
        )
    if (reason := unsplit(node)) is not None:
        raise OpError(node, f"{what} {reason}; leave it out")
    if not is_divided(summary, block_of(summary, blocks, cluster), cluster):
        row, column = split_dims(node)
        raise OpError(
            node,
            f"{what} its tiles have {blocks[row]} of {row} and {blocks[column]} of "
            f"{column}, and Triton divides the columns of at most {MOST_ROWS} rows, "
            f"{LEAST_COLUMNS} or more for each thread block; give it fewer of them, or "
            f"other factors",
        )


def _check_products(
    node: SpatialOp, summary: KernelSummary, blocks: Mapping[str, int]
) -> None:
    """Raise PassFailedException if tiles make a large product no `tl.dot`."""
    for dot in summary.products:
        if dot.wastes_dot(blocks, MIN_DOT_EXTENT):
            dims = [dim for dim in sorted(dot.batch) if blocks[dim] > 1]
            sizes = " and ".join(f"{blocks[dim]} of {dim}" for dim in dims)
            factors = " ".join(f"{dim}={summary.extents[dim]}" for dim in dims)
            raise OpError(
                node,
                f"tile: a tl.dot takes one element of a batch dimension and tiles have "
                f"{sizes}, so that a product of {MIN_DOT_EXTENT} or more rows, columns "
                f"and terms would be none; give {factors} in the factors",
            )


def _not_specialized(numbers: SpecializedWarps | None) -> str:
    """Return why a kernel of a plan with specialize=1 cannot be launched."""
    if numbers is None:
        return (
            "tile: with specialize=1 producer warps load, and the GPU has no "
            "numbers for them; leave specialize out, or say `specialized` in its "
            "hardware file"
        )
    return (
        f"tile: with specialize=1 a kernel has {numbers.groups * numbers.rows} rows of "
        "a product in each tile, and loops without others of several iterations; "
        "change its factors, or leave specialize out"
    )


def _launch(
    node: SpatialOp,
    summary: KernelSummary,
    blocks: Mapping[str, int],
    gpu: Device,
    fixed: Mapping[str, int],
) -> LaunchAttr:
    """
    Return num_warps, num_stages and L2 swizzle: the `fixed` ones, and the best others.

    If nothing fits, these are the most warps.
    """
    if fixed.get(SPECIALIZE) and (numbers := gpu.triton.specialized):
        group = int(summary.swizzle(blocks))
        own = {"warps": numbers.warps, "stages": numbers.stages, "group": group}
        fixed = {**own, **fixed}
    if fixed.keys() >= set(LAUNCH_NUMBERS):
        return LaunchAttr(**fixed)
    sizes = {dim: (size,) for dim, size in blocks.items()}
    priced = launches_that_fit(summary, sizes, fixed, gpu)
    if priced is None:
        largest = {name: numbers[-1] for name, numbers in LARGE_LAUNCHES.items()}
        chosen = LaunchAttr(**largest, group=int(summary.swizzle(blocks)))
    else:
        place, candidates = f"@{node.node_name}", priced.candidates(priced.varied())
        chosen = cheapest("launch numbers", place, candidates).result.launch
    return LaunchAttr(**{**chosen.numbers, **fixed})


def set_estimate(node: SpatialOp, seconds: float) -> None:
    """Write the estimated time of a kernel on its grid node, in whole nanoseconds."""
    figures = Figures(Model.PAPER, TimeUnit.NS, latency=round(seconds * 1e9))
    annotate(node, figures)
