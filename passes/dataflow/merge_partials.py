"""
`merge-partials`: dataflow level -> the same, with split reductions in one launch.

A kernel whose programs split a reduction (split-K, split keys) stores partial results,
and a second launch merges them. This pass makes it one launch, as the fix-up of split-K
and stream-K: after its stores each program adds to the counter of its tile, and the
last program to arrive merges the partial results of the tile. No program waits.

The merging kernel gets the tiles of the first one, and may read the parts in a loop.
The tiles of both must fit in one program; all programs may get another number of warps
for that. `auto` merges where it is faster: there is one launch less, one more exchange
through L2, and fewer, larger tiles to merge.

Needs launch numbers. On several ranks both kernels exchange nothing with others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import prod
from operator import add
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import launch_numbers, summarize, tile_blocks
from comet.cost.from_ir.partials import partial_bytes
from comet.cost.gpu.capacity import fits
from comet.cost.gpu.device import Device
from comet.cost.gpu.kernel import kernel_time
from comet.cost.gpu.registers import LaunchNumbers
from comet.cost.gpu.shared_launch import running_time
from comet.cost.gpu.spent import Spent
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks
from comet.cost.gpu.tiling import (
    kernel_work,
    merging_work,
    program_needs,
    tensor_traffic,
)
from comet.cost.gpu.work import KernelWork, in_one_launch
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.compound.dims import ceil_div, joined_extents, names_of
from comet.dialects.compound.rename import viewed
from comet.dialects.dataflow import (
    ArriveOp,
    CountersOp,
    CountersType,
    KernelOp,
    ProgramOp,
    YieldOp,
    program_value,
)
from comet.dialects.dataflow.locality import is_local
from comet.dialects.dataflow.merging import is_renamed, readers
from comet.dialects.dataflow.program import programs_in
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import LoopAttr, power_of_two
from comet.dialects.schedule.launch import LaunchAttr
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.hardware_kind import attached_gpu
from comet.passes.analysis.levels import IRLevel
from comet.passes.dataflow.kernels import (
    has_only_nodes,
    joined,
    place_barriers,
    rebuild_kernel,
)
from comet.passes.function_pass import FunctionPass
from comet.passes.pipeline import ChoosingPass
from comet.passes.schedule.retile import retile_node, set_loops
from comet.passes.schedule.tile.gpu.space import (
    LAUNCHES,
    KernelTiling,
    block_sizes,
    launches_that_fit,
)
from comet.passes.search import cheapest, timed

MERGES = "comet.merge"
"""The attribute of a function with the kernels whose last programs merge."""


@dataclass(frozen=True)
class MergePartialsPass(ChoosingPass, FunctionPass):
    """Let the last program to arrive merge partial results, in the same launch."""

    name = "merge-partials"

    LEVELS = (IRLevel.DATAFLOW,)

    NOTES: ClassVar[Mapping[str, str]] = {"merge": MERGES}

    merge: str = "auto"
    """
    What merges the partial results of a split reduction: `launch`, another kernel;
    `last`, wherever possible the last program to arrive; `auto`, what is faster; or the
    names of the kernels whose last programs do, as in "f_c_kernel f_d_kernel".
    """

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        system = attached_gpu(self.name, module)
        for program in programs_in(function):
            plans = plan_merges(program, system, self.merge)
            if plans is not None:
                function.attributes[MERGES] = StringAttr(format_merges(plans))
                merge_partials(program, plans)


@dataclass(frozen=True)
class PartialsMerge:
    """A kernel that stores partial results, and the kernel that merges them."""

    producer: KernelOp
    consumer: KernelOp
    counters: Mapping[str, int]
    """The number of blocks along each dimension that both cut."""
    arrivals: int
    """The programs that store partial results of a block."""
    tiling: KernelTiling
    """The tiles of the merging node, and the launch numbers of all programs."""
    two_launches: Spent
    """The time of two launches."""
    one_launch: Spent
    """The time of one."""


def plan_merges(
    program: ProgramOp, system: SystemOp, merge: str
) -> tuple[PartialsMerge, ...] | None:
    """
    Return the merges of a program, None if it has no split reduction.

    Raises PassFailedException for given kernels that cannot merge.
    """
    found = tuple(possible_merges(program, system))
    named = merge not in ("auto", "last", "launch")
    if named:
        names = [name.removeprefix("@") for name in merge.split()]
        by_name = {plan.producer.sym_name.data: plan for plan in found}
        for name in names:
            if name not in by_name:
                choices = ", ".join([*by_name, "auto", "last"])
                raise PassFailedException(
                    f"merge-partials: merge names {name}, which is no kernel whose "
                    f"last program can merge; use {choices} or launch"
                )
        return tuple(by_name[name] for name in names)
    if not found:
        return None
    if merge == "auto":
        return tuple(plan for plan in found if _is_faster(plan))
    return found if merge == "last" else ()


def _is_faster(plan: PartialsMerge) -> bool:
    """Whether one launch takes less time than two."""
    candidates = [
        timed("launch", False, lambda: plan.two_launches),
        timed("last", True, lambda: plan.one_launch),
    ]
    return cheapest("merge", f"@{plan.producer.sym_name.data}", candidates).result


def format_merges(plans: Sequence[PartialsMerge]) -> str:
    """Return the text of the option that makes the same merges."""
    return " ".join(plan.producer.sym_name.data for plan in plans) or "launch"


def possible_merges(program: ProgramOp, system: SystemOp) -> Iterator[PartialsMerge]:
    """Yield the pairs of kernels that can be one launch, each kernel in one pair."""
    levels, gpu = gpu_levels(system), device_of(system)
    used: set[KernelOp] = set()
    for producer in program.kernels():
        consumer = _consumer(producer)
        if consumer is None or used.intersection((producer, consumer)):
            continue
        if not (is_local(producer) and is_local(consumer)):
            continue
        if producer.shard_extents != consumer.shard_extents:
            continue  # A dimension of one is a shard, and in the other whole.
        if (plan := _plan(producer, consumer, levels, gpu)) is not None:
            used |= {producer, consumer}
            yield plan


def _consumer(producer: KernelOp) -> KernelOp | None:
    """Return the only kernel that reads what a kernel makes, None if there is none."""
    consumers = {use.operation for result in producer.results_ for use in result.uses}
    (consumer, *others) = consumers or {None}
    return consumer if isinstance(consumer, KernelOp) and not others else None


def _node(kernel: KernelOp) -> SpatialOp | None:
    """Return the node of a kernel that has one, with launch numbers, and only views."""
    nodes = kernel.nodes
    if not has_only_nodes(kernel) or len(nodes) != 1:
        return None
    launch = nodes[0].launch
    return None if launch is None or launch.specialize else nodes[0]


def _plan(
    producer: KernelOp, consumer: KernelOp, levels: GpuLevels, gpu: Device
) -> PartialsMerge | None:
    """
    Return how the last program of `producer` does `consumer`, None if it cannot.

    Of the numbers of warps with which the tiles of both nodes fit, those of the fastest
    launch.
    """
    split, node = _node(producer), _node(consumer)
    if split is None or node is None or split.launch is None or node.launch is None:
        return None
    if not _reads_all(consumer, producer):
        return None
    if (counters := _counters(split, node, producer)) is None:
        return None
    arrivals = split.trip_count // prod(counters.values())
    if arrivals < 2:
        return None
    blocks, summary = tile_blocks(split), summarize(split, levels, gpu)
    work = partial(kernel_work, summary, blocks, gpu=gpu)
    merging = summarize(node, levels, gpu)
    apart = kernel_work(merging, tile_blocks(node), launch_numbers(node.launch), gpu)
    works = work(numbers=launch_numbers(split.launch)), apart
    two = reduce(add, (kernel_time(each, gpu).spent for each in works))
    found: list[PartialsMerge] = []
    for launch in _launches(split.launch, summary, blocks, gpu):
        tiling = _tiling(merging, split, launch, node, counters, gpu)
        if tiling is not None:
            numbers = launch_numbers(launch)
            last = _merging(merging, tiling, numbers, node, producer, gpu)
            one = merged_time(work(numbers=numbers), last, gpu)
            plan = PartialsMerge(
                producer, consumer, counters, arrivals, tiling, two, one
            )
            found.append(plan)
    return min(found, key=lambda plan: float(plan.one_launch), default=None)


def _launches(
    own: LaunchAttr, summary: KernelSummary, blocks: Blocks, gpu: Device
) -> Iterator[LaunchAttr]:
    """Yield the launch numbers of a node, and those with other warps that fit."""
    yield own
    for warps in LAUNCHES["warps"]:
        numbers = LaunchNumbers(warps, own.stages)
        needs = program_needs(summary, blocks, numbers, gpu)
        others = warps != own.warps and not own.subtiles
        if others and fits(summary, blocks, needs, gpu) > 0:
            yield own.replaced(warps=warps)


def _merging(
    summary: KernelSummary,
    tiling: KernelTiling,
    numbers: LaunchNumbers,
    node: SpatialOp,
    producer: KernelOp,
    gpu: Device,
) -> KernelWork:
    """Return the work of the merging node, whose partial results are in L2."""
    traffic = tensor_traffic(summary, tiling.blocks, gpu)
    partials = partial_bytes(node, partial_operands(node, producer), traffic)
    work = kernel_work(summary, tiling.blocks, numbers, gpu)
    return merging_work(work, partials, gpu)


def merged_time(first: KernelWork, merge: KernelWork, gpu: Device) -> Spent:
    """
    Return the time of a launch whose last programs merge.

    All programs have the room that the larger of both nodes takes. The last program
    sees the stores of the others after an exchange.
    """
    works = in_one_launch((first, merge))
    running = reduce(add, (running_time((work,), gpu) for work in works))
    launch = Spent.on("launch", gpu.times.launch)
    return launch + Spent.on("exchange", gpu.times.exchange) + running


def partial_operands(node: SpatialOp, producer: KernelOp) -> list[SSAValue]:
    """Return the operands of a node that are results of another kernel, each once."""
    return [
        value
        for value in dict.fromkeys(node.ins)
        if program_value(viewed(value)) in producer.results_
    ]


def _reads_all(consumer: KernelOp, producer: KernelOp) -> bool:
    """Whether a kernel reads results of another one, and none of them in part."""
    views = [
        is_renamed(view, whole)
        for whole in consumer.body.block.args
        if program_value(whole) in producer.results_
        for view, _ in readers(whole)
    ]
    return bool(views) and all(views)


def _counters(
    split: SpatialOp, node: SpatialOp, producer: KernelOp
) -> dict[str, int] | None:
    """
    Return the blocks that have a counter each, None if programs would need others.

    They are cut along the dimensions of all partial results that both nodes loop over.
    The other loops of the first node are over what the second one reduces.
    """
    results = set(split.outs)
    if len(set(split.factors)) < len(split.loops) or len(split.outs) != len(results):
        return None
    operands = partial_operands(node, producer)
    counters = {
        dim: factor
        for dim, factor in split.factors.items()
        if dim in node.factors and all(dim in names_of(value) for value in split.outs)
    }
    for value in operands:
        before, after = names_of(viewed(value)), names_of(value)
        for old, new in zip(before, after, strict=True):
            cut = split.factors.get(old, 1) > 1 and old not in counters
            is_output = any(new in names_of(out) for out in node.outs)
            if (old in counters or new in counters) and old != new:
                return None
            if cut and is_output:
                return None
    split_extents = joined_extents((*split.ins, *split.outs))
    extents = joined_extents((*node.ins, *node.outs))
    if any(split_extents[dim] != extents[dim] for dim in {*split_extents} & {*extents}):
        return None
    return counters


def _tiling(
    summary: KernelSummary,
    split: SpatialOp,
    launch: LaunchAttr,
    node: SpatialOp,
    counters: Mapping[str, int],
    gpu: Device,
) -> KernelTiling | None:
    """
    Return the tiles of a merging node, None if it has none that fit.

    Its programs have the warps and stages of `launch`.
    """
    if summary.products.operations or summary.nest.group:
        return None
    tiles = joined_extents(split.yielded)
    sizes: dict[str, Sequence[int]] = {}
    for dim in summary.nest.extents:
        size = power_of_two(summary.nest.extents[dim])
        if dim in summary.nest.grid:
            sizes[dim] = (power_of_two(tiles[dim]) if dim in counters else size,)
        elif dim in summary.nest.loops:
            sizes[dim] = [1 << n for n in range(size.bit_length())]
        else:
            sizes[dim] = block_sizes(summary, dim)
    numbers = {"warps": launch.warps, "stages": launch.stages}
    priced = launches_that_fit(summary, sizes, numbers, gpu)
    if priced is None:
        return None
    place, candidates = f"@{node.node_name}", priced.candidates(priced.varied())
    return cheapest("merge tiles", place, candidates).result


def merge_partials(program: ProgramOp, plans: Sequence[PartialsMerge]) -> None:
    """Make each plan one launch."""
    for plan in plans:
        name = plan.producer.sym_name
        kernel = joined(plan.producer, plan.consumer)
        kernel.sym_name = name
        _arrive(kernel, plan)
    if plans:
        place_barriers(program)


def _arrive(kernel: KernelOp, plan: PartialsMerge) -> None:
    """Let programs of the first node arrive, and the last one run the second."""
    split, node = kernel.nodes
    assert split.launch is not None
    split.launch = split.launch.replaced(warps=plan.tiling.launch.warps)
    _set_tiles(node, plan)
    loops = ArrayAttr(LoopAttr(dim, n) for dim, n in plan.counters.items())
    counters = CountersOp(CountersType(loops))
    counters.result.name_hint = f"{split.outs[0].name_hint or 'x'}_counters"
    Rewriter.insert_op(counters, InsertPoint.before(kernel))
    block = kernel.body.block
    argument = block.insert_arg(counters.result.type, len(block.args))
    argument.name_hint = counters.result.name_hint
    read = [value for value in split.outs if _is_read(value)]
    arrive = ArriveOp(read, argument, plan.arrivals)
    block.insert_op_after(arrive, split)
    for value, complete in zip(read, arrive.complete, strict=True):
        complete.name_hint = value.name_hint
        value.replace_uses_with_if(
            complete, lambda use: not isinstance(use.operation, YieldOp | ArriveOp)
        )
    rebuild_kernel(kernel, (*kernel.ins, counters.result), range(len(kernel.outs)))


def _is_read(value: SSAValue) -> bool:
    return any(not isinstance(use.operation, YieldOp) for use in value.uses)


def _set_tiles(node: SpatialOp, plan: PartialsMerge) -> None:
    """Give the merging node its tiles, and the launch numbers of the first node."""
    for op in [op for op in node.walk() if isinstance(op, NodeOp)]:
        extents = op.extents
        loops: list[LoopAttr] = []
        for loop in op.loops:
            factor = ceil_div(extents[loop.dim], plan.tiling.blocks[loop.dim])
            if op is node:
                factor = plan.counters.get(loop.dim, 1)
            loops.append(LoopAttr(loop.dim, factor, loop.axis))
        set_loops(op, loops)
    retile_node(node)
    launch = plan.tiling.launch
    node.launch = LaunchAttr(launch.warps, launch.stages)
