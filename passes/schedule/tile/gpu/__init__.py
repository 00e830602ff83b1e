"""
Tiles on GPUs: block sizes, warps and pipeline stages by estimated kernel time.

The choice is a plan string, like one from a user. `space` prices all tilings of a
kernel; `finish` sets the launch numbers of kernels whose tiles are given.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.func import FuncOp

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize
from comet.cost.gpu.capacity import shared_need
from comet.cost.gpu.device import Device
from comet.cost.gpu.registers import (
    REGISTER,
    LaunchNumbers,
    thread_registers,
)
from comet.cost.gpu.summary import KernelSummary
from comet.cost.reals import Real
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.compound.dims import ceil_div
from comet.dialects.cost import Figures, Model, TimeUnit, annotate
from comet.dialects.errors import OpError, called
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import NodeOp, repeats_programs
from comet.passes.analysis.grid import grid_nodes
from comet.passes.schedule.plan_string import Numbers, PlanEntry
from comet.passes.schedule.tile.gpu.space import (
    LARGE_LAUNCHES,
    KernelTiling,
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
    need = described_need(node, registers, shared, levels)
    return (
        f"{need} with its smallest tiles, more "
        f"than fit beside addresses and buffers in the {gpu.limits.register_bytes} and "
        f"{gpu.limits.shared_bytes} bytes there"
    )


def described_need(
    node: SpatialOp, registers: Real, shared: Real, levels: GpuLevels
) -> str:
    """Return a clause that says how many bytes a kernel needs."""
    return (
        f"the kernel that makes {_outs(node)} needs {int(registers)} bytes of "
        f"{levels.registers} and {int(shared)} bytes of {levels.shared}"
    )


def _outs(node: SpatialOp) -> str:
    return ", ".join(map(called, node.outs))


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


def set_estimate(node: SpatialOp, seconds: float) -> None:
    """Write the estimated time of a kernel on its grid node, in whole nanoseconds."""
    figures = Figures(Model.PAPER, TimeUnit.NS, latency=round(seconds * 1e9))
    annotate(node, figures)
