"""
`order-programs`: programs with the longest loops are launched first.

List scheduling, longest processing time first (Graham, 1969). A mask ends the loops of
some programs early: in causal attention, programs with the last rows have the longest
loops. Programs start in the order of their ids; if the longest loops start last, other
multiprocessors idle at the end of the launch. So the order along a dimension is
reversed if later rows see more positions (`Bound` in `cost/gpu/bounded.py`).

If that dimension is the last loop of the grid, the programs of one head start after
those of another head, the longest of each head first. Instead, several heads can
advance through the dimension together, as a group: the longest loops of all its heads
start first. This is faster as long as L2 holds the operands of a group. The launch
number `group` is the size of a group.

Takes functions at the schedule or the dataflow level with tiles; sets the property
`reversed` where it is not set and the order can be chosen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Literal

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import launch_numbers, summarize, tile_blocks
from comet.cost.gpu.device import Device
from comet.cost.gpu.launch_order import LaunchOrder
from comet.cost.gpu.spent import Spent
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.tiling import price
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.dataflow import KernelOp
from comet.dialects.dataflow.merging import arrival_of
from comet.dialects.dataflow.rank_loops import destination_dims, source_dims
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.launch import LaunchAttr
from comet.passes.analysis.grid import grid_nodes
from comet.passes.analysis.hardware_kind import attached_gpu
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
    iterations; `index`, those with the first tiles; or `auto`, the fastest of these
    orders and of `longest` in groups.
    """

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        system = attached_gpu(self.name, module)
        levels, gpu = gpu_levels(system), device_of(system)
        for node, order in tuple(plan_order(function, levels, gpu, self.order)):
            node.reversed_ = ArrayAttr(map(StringAttr, sorted(order.reversed)))
            if (launch := node.launch) is not None:
                node.launch = launch.replaced(group=order.swizzle)


def plan_order(
    function: FuncOp, levels: GpuLevels, gpu: Device, order: Order
) -> Iterator[tuple[SpatialOp, LaunchOrder]]:
    """Yield the order of each grid node with loops of different length."""
    for node in grid_nodes(function):
        if node.reversed_ is not None:
            continue
        summary = summarize(node, levels, gpu)
        if dims := growing_dims(node, summary):
            group = (node.launch or LaunchAttr()).group
            given = replace(summary.nest.order, swizzle=group)
            forms = {
                "index": replace(given, reversed=frozenset()),
                "longest": replace(given, reversed=frozenset(dims)),
            }
            if order == "auto":
                yield node, _fastest(node, summary, forms, gpu)
            else:
                yield node, forms[order]


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
    rows = {bound.rows for bound in summary.nest.bounds.values() if not bound.since}
    return tuple(
        dim
        for dim, factor in node.factors.items()
        if dim in rows
        and factor > 1
        and dim not in ordered
        and arrival_of(node) is None
    )


def group_sizes(node: SpatialOp, dims: Collection[str]) -> list[int]:
    """
    Return the sizes of groups of tiles that may advance together along `dims`.

    Powers of two up to the number of tiles of the loops before the last one of several
    tiles. None if the launch has groups already.
    """
    split = [loop for loop in node.loops if loop.factor > 1]
    if node.launch is None or node.launch.group > 1 or split[-1].dim not in dims:
        return []
    others = prod(loop.factor for loop in split[:-1])
    return [2**power for power in range(1, others.bit_length()) if 2**power < others]


def _fastest(
    node: SpatialOp,
    summary: KernelSummary,
    forms: Mapping[str, LaunchOrder],
    gpu: Device,
) -> LaunchOrder:
    """
    Return the fastest order, also of the longest programs in groups.

    If several take equally long, `longest` where programs wait for others to end.
    """
    launch, blocks = node.launch or LaunchAttr(), tile_blocks(node)
    numbers = launch_numbers(launch)

    def time(order: LaunchOrder) -> Spent:
        ordered = replace(summary, nest=replace(summary.nest, order=order))
        return price(ordered, blocks, numbers, gpu).spent

    orders = list(forms.items())
    if summary.programs(blocks) > gpu.multiprocessors:
        orders.reverse()
        longest = forms["longest"]
        orders += [
            (f"longest, {size} at a time", replace(longest, swizzle=size))
            for size in group_sizes(node, longest.reversed)
        ]
    candidates = [timed(name, form, partial(time, form)) for name, form in orders]
    return cheapest("program order", f"@{node.node_name}", candidates).result
