"""
Tiles on GPUs: block sizes, warps and pipeline stages by estimated kernel time.

Blocks are powers of two, as Triton wants them; one dimension has one block size in a
kernel. The choice is a plan string, which `tile` obeys as it obeys one from a user.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException, VerifyException

from comet.cost.from_ir.hardware import device_of
from comet.cost.from_ir.kernel import summarize, tile_blocks
from comet.cost.gpu.capacity import (
    LaunchNumbers,
    fits,
    holds,
    register_need,
    shared_need,
)
from comet.cost.gpu.kernel import Device
from comet.cost.gpu.summary import KernelSummary, power_of_two
from comet.cost.gpu.tiling import price, rank
from comet.cost.reals import Real
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.compound.dims import LAUNCH_NUMBERS, joined_extents
from comet.dialects.cost import Figures, Model, TimeUnit, annotate
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import LaunchAttr
from comet.dialects.schedule.node import NodeOp
from comet.dialects.tl.math import MIN_DOT_EXTENT
from comet.passes.analysis.levels import compute_block
from comet.passes.schedule.plan_string import PlanEntry, Rows

GROUP = 8
"""L2 swizzle: programs along the first grid axis that run together, where that pays."""
STAGES = (3, 4, 2, 1)
LAUNCHES = tuple(product((4, 8), STAGES))
"""Warps and stages that are tried; of equals the first is taken."""
LARGE_LAUNCHES = tuple(product((16,), STAGES))
"""Tried where no other fits: more warps leave each thread fewer registers."""

NONE_GIVEN: Mapping[str, int] = {}
"""No launch number is given: all are chosen."""

DOT_BLOCKS = (16, 32, 64, 128, 256)
DOT_DEPTHS = (32, 64)
"""Blocks of summed dimensions: longer ones take registers and save little."""
SHORT_DEPTHS = (16,)
"""Tried where no other fits: a row of it is half of what memory moves at a time."""
WHOLE_DEPTH = 128
"""
The longest dimension that is summed at once if its loop is in another one, unless
that fits nowhere: with a loop inside, as over the numbers of a head, no loads of the
outer loop run ahead.
"""
EXACT_DOT_DEPTHS = (16, 32)
"""The same for f32, whose products are unrolled: longer blocks spill registers."""
GRID_BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128)
LOOP_BLOCKS = (64, 128, 256, 512, 1024, 2048, 4096)


@dataclass(frozen=True)
class KernelTiling:
    """The choice for one kernel, and what it is expected to cost."""

    blocks: Mapping[str, int]
    """The block size (elements) of each dimension."""
    launch: LaunchAttr
    seconds: float
    """The time of one launch, starting it included."""
    limit: str
    """What takes the most of it."""


def grid_nodes(func: FuncOp) -> tuple[SpatialOp, ...]:
    """Return the kernels of a function, in order of launch."""
    return tuple(op for op in compute_block(func).ops if isinstance(op, SpatialOp))


def choose(func: FuncOp, system: SystemOp) -> tuple[PlanEntry, ...]:
    """
    Return the plan of the tiling with the smallest estimated time.

    Raises PassFailedException if no tiling of a kernel fits the GPU.
    """
    levels = gpu_levels(system)
    gpu = device_of(system)
    tilings: dict[SpatialOp, KernelTiling] = {}
    for node in grid_nodes(func):
        if (tiling := best_tiling(node, levels, gpu)) is None:
            raise PassFailedException(
                f"tile: {misfit(node, levels, gpu)}; fuse less, with strategy=auto"
            )
        tilings[node] = tiling
    return plan_with(tilings)


def plan_with(tilings: Mapping[SpatialOp, KernelTiling]) -> tuple[PlanEntry, ...]:
    """Return the plan that gives the kernels of a function their tiles."""
    return tuple(
        PlanEntry(op.node_name or "", rows)
        for node, tiling in tilings.items()
        for op in node.walk()
        if isinstance(op, NodeOp) and (rows := _rows(op, tiling.blocks))
    )


def misfit(node: SpatialOp, levels: GpuLevels, gpu: Device) -> str:
    """Say why no tiling of a kernel fits."""
    summary = summarize(node, levels, gpu)
    smallest = {
        dim: min(_block_sizes(summary, dim, SHORT_DEPTHS)) for dim in summary.extents
    }
    registers = register_need(summary, smallest, gpu)
    shared = shared_need(summary, smallest, 1, gpu)
    return (
        f"{_needed(node, registers, shared, levels)} with its smallest tiles, more "
        f"than fit beside addresses and buffers in the {gpu.register_bytes} and "
        f"{gpu.shared_bytes} bytes there"
    )


def _needed(node: SpatialOp, registers: Real, shared: Real, levels: GpuLevels) -> str:
    made = ", ".join(f"%{value.name_hint or 'a result'}" for value in node.outs)
    return (
        f"the kernel that makes {made} needs {int(registers)} bytes of "
        f"{levels.registers} and {int(shared)} bytes of {levels.shared}"
    )


def _rows(node: NodeOp, blocks: Mapping[str, int]) -> Rows:
    """Return the rows of a node: it keeps its dimensions, blocks give the factors."""
    extents = joined_extents((*node.ins, *node.init_args()))
    return tuple((dim, -(-extents[dim] // blocks[dim])) for dim in node.factors)


def best_tiling(node: SpatialOp, levels: GpuLevels, gpu: Device) -> KernelTiling | None:
    """Return the tiling of a kernel with the smallest time, None if none fits."""
    summary = summarize(node, levels, gpu)
    dims = tuple(summary.extents)
    for depths in (None, DOT_DEPTHS, SHORT_DEPTHS):
        sizes = [_block_sizes(summary, dim, depths) for dim in dims]
        if (found := _cheapest(summary, dims, list(product(*sizes)), gpu)) is not None:
            return found
    return None


def tilings(node: SpatialOp, levels: GpuLevels, gpu: Device) -> Iterator[KernelTiling]:
    """Yield the best tiling of a kernel for each block size along each grid dim."""
    summary = summarize(node, levels, gpu)
    sizes = {dim: _block_sizes(summary, dim) for dim in summary.extents}
    for dim in summary.grid:
        for size in sizes[dim]:
            choices = list(product(*(sizes | {dim: (size,)}).values()))
            if (found := _cheapest(summary, tuple(sizes), choices, gpu)) is not None:
                yield found


def _cheapest(
    summary: KernelSummary,
    dims: Sequence[str],
    choices: Sequence[tuple[int, ...]],
    gpu: Device,
    given: Mapping[str, int] = NONE_GIVEN,
) -> KernelTiling | None:
    """
    Return the best of `choices`, block sizes for `dims`, with the best launch.

    Launch numbers that are `given` are not varied.
    """
    for launches in (LAUNCHES, LARGE_LAUNCHES):
        tried = dict.fromkeys(
            (given.get("warps", warps), given.get("stages", stages))
            for warps, stages in launches
        )
        rows = [(*sizes, *launch) for sizes, launch in product(choices, tried)]
        if (found := _cheapest_row(summary, dims, rows, gpu)) is not None:
            return found
    return None


def _cheapest_row(
    summary: KernelSummary,
    dims: Sequence[str],
    rows: Sequence[tuple[int, ...]],
    gpu: Device,
) -> KernelTiling | None:
    """Return the best row: a block size for each of `dims`, warps and stages."""
    table = np.array(rows, dtype=float)
    columns = dict(zip(dims, table.T, strict=False))
    numbers = LaunchNumbers(table[:, -2], table[:, -1])
    time = price(summary, columns, numbers, gpu)
    fitting = np.greater(fits(summary, columns, numbers, gpu), 0)
    programs = summary.programs(columns)
    ranks = np.where(fitting, rank(time, programs, gpu), np.inf)
    best = int(np.argmin(ranks))
    if not np.isfinite(ranks[best]):
        return None
    *sizes, warps, stages = (int(number) for number in table[best])
    seconds = float(np.broadcast_to(time.seconds, ranks.shape)[best])
    parts = {
        name: float(np.broadcast_to(part, ranks.shape)[best])
        for name, part in time.parts.items()
    }
    blocks = dict(zip(dims, sizes, strict=True))
    limit = max(parts, key=lambda name: parts[name])
    return KernelTiling(blocks, LaunchAttr(warps, stages), seconds, limit)


def _block_sizes(
    summary: KernelSummary, dim: str, depths: Sequence[int] | None = None
) -> Sequence[int]:
    """
    Return the block sizes to try for one dimension, smallest first.

    `depths` are those for what contractions of 16-bit numbers sum. None takes the best,
    `DOT_DEPTHS`, and the whole of what a loop inside another one sums.
    """
    whole = power_of_two(summary.extents[dim])
    in_grid, in_dot = dim in summary.grid, dim in summary.dot_dims
    if in_dot:
        whole = max(whole, MIN_DOT_EXTENT)
    if not in_grid and dim not in summary.loops:
        return (whole,)
    if dim in summary.batch_dims:
        return (1,)
    sizes = GRID_BLOCKS if in_grid else LOOP_BLOCKS
    if in_dot:
        sizes = DOT_BLOCKS
    if dim in summary.dot_depths:
        if depths is None and dim in summary.inner_dims and whole <= WHOLE_DEPTH:
            return (whole,)
        sizes = EXACT_DOT_DEPTHS if summary.dot_type == "f32" else depths or DOT_DEPTHS
    return [size for size in sizes if size <= whole] or [whole]


def finish_kernels(
    func: FuncOp, system: SystemOp, plan: Sequence[PlanEntry] = ()
) -> None:
    """
    Give every kernel its launch numbers and its estimate.

    The tiles stand. Numbers are those of `plan`, else those that the kernel has, else
    the cheapest. Raises PassFailedException if a number is not possible, or if the
    tiles of a kernel do not fit.
    """
    levels = gpu_levels(system)
    gpu = device_of(system)
    given = {entry.name: entry.launch for entry in plan}
    for node in grid_nodes(func):
        try:
            finish_kernel(node, levels, gpu, given.get(node.node_name or "", {}))
        except VerifyException as error:
            raise PassFailedException(f"tile: @{node.node_name}: {error}") from error


def finish_kernel(
    node: SpatialOp,
    levels: GpuLevels,
    gpu: Device,
    given: Mapping[str, int] = NONE_GIVEN,
) -> None:
    """
    Do that for one kernel.

    Raises VerifyException if a number is not possible, PassFailedException if its tiles
    do not fit.
    """
    summary, blocks = summarize(node, levels, gpu), tile_blocks(node)
    known = given if node.launch is None else {**node.launch.numbers, **given}
    node.launch = _launch(summary, blocks, gpu, known)
    numbers = LaunchNumbers(node.launch.warps, node.launch.stages)
    if not holds(summary, blocks, numbers, gpu):
        registers = summary.peak(summary.crowded, blocks)
        shared = shared_need(summary, blocks, numbers.stages, gpu)
        raise PassFailedException(
            f"tile: {_needed(node, registers, shared, levels)}, more than the "
            f"{gpu.register_bytes} and {gpu.shared_bytes} bytes there: raise its "
            "factors, or fuse less"
        )
    time = price(summary, blocks, numbers, gpu)
    set_estimate(node, float(time.seconds) - gpu.launch)


def _launch(
    summary: KernelSummary,
    blocks: Mapping[str, int],
    gpu: Device,
    given: Mapping[str, int],
) -> LaunchAttr:
    """
    Return num_warps, num_stages and L2 swizzle: those that are `given`, and the best.

    If none fits, these are the most warps.
    """
    if len(given) == len(LAUNCH_NUMBERS):
        return LaunchAttr(**given)
    best = _cheapest(summary, tuple(blocks), [tuple(blocks.values())], gpu, given)
    warps, stages = LARGE_LAUNCHES[-1]
    if best is not None:
        warps, stages = best.launch.warps, best.launch.stages
    chosen = LaunchAttr(warps, stages, _group(summary, blocks, gpu))
    return LaunchAttr(**{**chosen.numbers, **given})


def _group(summary: KernelSummary, blocks: Mapping[str, int], gpu: Device) -> int:
    """
    Return the L2 swizzle: how many programs along the first grid axis run together.

    Where a product takes several waves, programs near each other on both axes share
    more of their operands in L2.
    """
    trips = [int(summary.trips(dim, blocks)) for dim in summary.grid]
    split = [count for count in trips if count > 1]
    one_wave = summary.programs(blocks) <= gpu.multiprocessors
    if len(split) != 2 or not summary.dots or one_wave:
        return 1
    return min(GROUP, split[0])


def set_estimate(node: SpatialOp, seconds: float) -> None:
    """Write on its grid node how long a kernel runs, in whole nanoseconds."""
    figures = Figures(Model.PAPER, TimeUnit.NS, latency=round(seconds * 1e9))
    annotate(node, figures)
