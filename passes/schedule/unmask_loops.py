"""
`unmask-loops`: iterations in which a mask hides nothing get a loop without the mask.

In causal attention only the tiles on the diagonal need the mask; all tiles before it
are visible. A loop that a mask bounds (`dialects/schedule/masked_loops.py`) is written
as two loops (index-set splitting): one with the mask, and one without comparison and
selection, for the positions that all rows of the program see. Takes functions at the
schedule or the dataflow level with tiles; sets the property `unmask` of such loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import launch_numbers, summarize, tile_blocks
from comet.cost.gpu.capacity import register_limit
from comet.cost.gpu.device import Device
from comet.cost.gpu.registers import thread_registers, unmasked_loop_registers
from comet.cost.gpu.spent import Spent
from comet.cost.gpu.tiling import price
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.launch import LaunchAttr
from comet.dialects.schedule.masked_loops import first_visible, visible_conditions
from comet.dialects.schedule.node import nodes_around
from comet.passes.analysis.grid import grid_nodes
from comet.passes.analysis.hardware_kind import attached_gpu
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass
from comet.passes.search import cheapest, timed

Loops = Literal["auto", "all", "none"]


@dataclass(frozen=True)
class UnmaskLoopsPass(FunctionPass):
    """Write the iterations in which a mask hides nothing as a loop without the mask."""

    name = "unmask-loops"

    LEVELS = (IRLevel.SCHEDULE, IRLevel.DATAFLOW)

    loops: Loops = "auto"
    """
    The loops to write as two: `all` that can, `none`, or `auto`: those whose end a mask
    bounds, if two loops are faster and registers suffice. Loops whose start a mask
    bounds (gradients of keys) spill more registers as two loops, which estimates do not
    show (compiled for sm_90, see benchmarks/figures/kernels.md).
    """

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        system = attached_gpu(self.name, module)
        levels, gpu = gpu_levels(system), device_of(system)
        for node in tuple(plan_unmasked(function, levels, gpu, self.loops)):
            node.unmask = UnitAttr()


def plan_unmasked(
    function: FuncOp, levels: GpuLevels, gpu: Device, loops: Loops
) -> Iterator[TemporalOp]:
    """Yield the loops of a function to write as two, one without the mask."""
    for grid in grid_nodes(function) if loops != "none" else ():
        if grid.launch is not None and grid.launch.specialize:
            continue  # Triton specializes one loop of a kernel.
        found = [op for op in grid.walk() if isinstance(op, TemporalOp)]
        found = [node for node in found if _can_be_unmasked(node)]
        if loops == "auto":
            found = [node for node in found if first_visible(node) is None]
        if found and (loops == "all" or _is_faster(grid, found, levels, gpu)):
            yield from found


def _can_be_unmasked(node: TemporalOp) -> bool:
    """Whether a loop over a whole dimension has a mask that it needs only in part."""
    if node.unmask is not None or not visible_conditions(node):
        return False
    (loop,) = node.loops
    around = {dim for above in nodes_around(node) for dim in above.factors}
    return loop.factor > 1 and loop.dim not in around


def _is_faster(
    grid: SpatialOp, found: list[TemporalOp], levels: GpuLevels, gpu: Device
) -> bool:
    """Return whether a kernel is faster with `found` as two loops, and fits."""
    launch, blocks = grid.launch or LaunchAttr(), tile_blocks(grid)
    numbers = launch_numbers(launch)
    summary = summarize(grid, levels, gpu)
    registers = thread_registers(summary, blocks, numbers, gpu)
    registers = registers + unmasked_loop_registers(summary, blocks, numbers, gpu)
    spare = gpu.triton.limits.spare_registers
    if registers > register_limit(numbers.warps, gpu) + spare:
        return False

    def time(dims: frozenset[str]) -> Spent:
        written = replace(summary, nest=replace(summary.nest, unmasked=dims))
        return price(written, blocks, numbers, gpu).spent

    dims = frozenset(loop.dim for node in found for loop in node.loops)
    candidates = [
        timed("always", False, partial(time, frozenset())),
        timed("where needed", True, partial(time, dims)),
    ]
    return cheapest("mask", f"@{grid.node_name}", candidates).result
