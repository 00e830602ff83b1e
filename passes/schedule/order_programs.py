"""
`order-programs`: programs with the longest loops are launched first.

A mask ends the loops of some programs early: in causal attention, programs with the
last rows have the longest loops. Programs start in the order of their ids; if the
longest start last, other multiprocessors idle at the end of the launch. So the order
along a dimension is reversed if later rows see more positions (`Bound` in
`cost/gpu/bounded.py`). Takes functions at the schedule or the dataflow level with
tiles; sets the property `reversed` where it is not set and the order can be chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import launch_numbers, summarize, tile_blocks
from comet.cost.gpu.device import Device
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.tiling import price
from comet.cost.reals import Real
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.dataflow import KernelOp
from comet.dialects.dataflow.merging import arrival_of
from comet.dialects.dataflow.rank_loops import destination_dims, source_dims
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import LaunchAttr
from comet.passes.analysis.grid import grid_nodes
from comet.passes.analysis.hardware_kind import require_gpu
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass
from comet.passes.search import cheapest, timed

Order = Literal["auto", "longest", "index"]


@dataclass(frozen=True)
class OrderProgramsPass(FunctionPass):
    """Launch the programs with the longest loops first."""

    name = "order-programs"

    LEVELS = (IRLevel.SCHEDULE, IRLevel.DATAFLOW)

    order: Order = "auto"
    """
    Which programs start first if a mask ends their loops: `longest`, those with most
    iterations; `index`, those with the first tiles; or `auto`, the faster order.
    """

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        system = attached_system(module)
        require_gpu(self.name, system)
        levels, gpu = gpu_levels(system), device_of(system)
        for plan in tuple(plan_order(function, levels, gpu, self.order)):
            names = map(StringAttr, plan.reversed)
            plan.node.reversed_ = ArrayAttr(names)


@dataclass(frozen=True)
class ProgramOrder:
    """The chosen order of a grid node: the dimensions whose last tiles start first."""

    node: SpatialOp
    reversed: tuple[str, ...]


def plan_order(
    function: FuncOp, levels: GpuLevels, gpu: Device, order: Order
) -> Iterator[ProgramOrder]:
    """Yield the order of each grid node with loops of different length."""
    for node in grid_nodes(function):
        if node.reversed_ is not None:
            continue
        summary = summarize(node, levels, gpu)
        if dims := growing_dims(node, summary):
            forms = {"index": (), "longest": dims}
            chosen = _faster(node, summary, dims, gpu) if order == "auto" else order
            yield ProgramOrder(node, forms[chosen])


def growing_dims(node: SpatialOp, summary: KernelSummary) -> tuple[str, ...]:
    """
    Return the dimensions of a grid along which the loops of programs get longer.

    Without those whose order is decided already: programs visit the shards of ranks
    along them, or the last program to arrive does the work.
    """
    kernel = node.parent_op()
    ordered: tuple[str, ...] = ()
    if isinstance(kernel, KernelOp):
        ordered = (*source_dims(kernel, node), *destination_dims(kernel, node))
    rows = {bound.rows for bound in summary.bounds.values() if not bound.since}
    return tuple(
        dim
        for dim, factor in node.factors.items()
        if dim in rows
        and factor > 1
        and dim not in ordered
        and arrival_of(node) is None
    )


def _faster(
    node: SpatialOp, summary: KernelSummary, dims: tuple[str, ...], gpu: Device
) -> str:
    """
    Return the faster order.

    If both take equally long, `longest` where programs wait for others to end.
    """
    launch, blocks = node.launch or LaunchAttr(), tile_blocks(node)
    numbers = launch_numbers(launch)

    def seconds(names: tuple[str, ...]) -> Real:
        ordered = replace(summary, reversed=frozenset(names))
        return price(ordered, blocks, numbers, gpu).seconds

    orders: list[tuple[str, tuple[str, ...]]] = [("index", ()), ("longest", dims)]
    if summary.programs(blocks) > gpu.multiprocessors:
        orders.reverse()
    candidates = [timed(name, name, partial(seconds, names)) for name, names in orders]
    return cheapest("program order", f"@{node.node_name}", candidates).result
