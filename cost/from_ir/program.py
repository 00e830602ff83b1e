"""
Reads the launch plan that `cost.gpu.taxes` prices from a `dataflow.program`.

Channels may be lowered or not: messages, flags and waits are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import prod
from operator import add
from typing import TypeAlias

from xdsl.ir import BlockArgument, Operation, SSAValue

from comet.cost.from_ir.gpus import device_of, machine_of
from comet.cost.from_ir.node_figures import KnownFigures, NodeFigures
from comet.cost.from_ir.partials import (
    arrived_partials,
    bytes_by_value,
    partial_bytes,
)
from comet.cost.from_ir.tile_loops import kept_bytes
from comet.cost.gpu.device import Device
from comet.cost.gpu.kernel import kernel_time
from comet.cost.gpu.launch_plan import (
    Barrier,
    Clear,
    Launch,
    LaunchNode,
    LibraryCollective,
    Machine,
    Plan,
    Receive,
    Send,
    Step,
    in_place,
)
from comet.cost.gpu.persistent import persistent_work, with_tile_loop
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.taxes import Taxes, taxes_of
from comet.cost.gpu.terms import Blocks
from comet.cost.gpu.tiling import held_bytes, merging_work
from comet.cost.gpu.timeline import Timeline, play
from comet.cost.gpu.waiting import waits_in_loop
from comet.cost.gpu.work import KernelWork, in_one_launch
from comet.cost.reals import product
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.collective import CollectiveOp
from comet.dialects.collective.spmd import rank_count
from comet.dialects.compound.dims import bits_of, bytes_of, elements_of, names_of
from comet.dialects.compound.gather import stored_values
from comet.dialects.compound.rename import viewed
from comet.dialects.compound.views import sources
from comet.dialects.dataflow import (
    ArriveOp,
    BarrierOp,
    BufferOp,
    KernelOp,
    ProgramOp,
    YieldOp,
)
from comet.dialects.dataflow.channel import ChannelType, input_of, program_value
from comet.dialects.dataflow.merging import arrival_of
from comet.dialects.dataflow.persistence import loads_tiles_ahead
from comet.dialects.dataflow.rank_loops import source_dims, source_loops
from comet.dialects.dataflow.signals import awaited_channel, blocks_of
from comet.dialects.dataflow.transfer import (
    PullOp,
    PushOp,
    ReadOp,
    SignalOp,
    StageOp,
    WaitOp,
)
from comet.dialects.schedule import SpatialOp


def machine_for(
    program: ProgramOp, system: SystemOp, *, graph: bool = False
) -> Machine:
    """
    Return the GPUs that run a program.

    With `graph`, kernels are started by replaying a captured graph. Raises `CostError`
    where the system has no GPU.
    """
    return machine_of(system, rank_count(program), graph=graph)


StepOp: TypeAlias = KernelOp | BarrierOp | BufferOp
"""A step of a program: a kernel, a barrier, or a buffer that is set to 0."""


def steps_of(program: ProgramOp) -> dict[str, StepOp]:
    """Return the steps of a program by name: kernels, barriers, cleared buffers."""
    steps: dict[str, StepOp] = {}
    meets = rank_count(program) > 1
    for op in program.body.block.ops:
        if isinstance(op, KernelOp):
            steps[op.sym_name.data] = op
        elif isinstance(op, BufferOp) and op.zeroed is not None:
            cleared = sum(isinstance(step, BufferOp) for step in steps.values())
            steps[f"clear {cleared + 1}"] = op
        elif isinstance(op, BarrierOp) and op.local is None and meets:
            barriers = sum(isinstance(step, BarrierOp) for step in steps.values())
            steps[f"barrier {barriers + 1}"] = op
    return steps


def launch_plan_of(program: ProgramOp, system: SystemOp) -> Plan:
    """
    Return the launch plan of a program: its kernels and barriers, in order.

    Raises `CostError` where the system has no GPU.
    """
    device = device_of(system)
    known = KnownFigures(device, gpu_levels(system))
    return read_plan(program, device, known.of)


@dataclass(frozen=True)
class PricedPlan:
    """A launch plan, the GPUs that run it, and the timeline of all ranks."""

    plan: Plan
    machine: Machine
    timeline: Timeline

    @property
    def taxes(self) -> Taxes:
        """The taxes of the whole plan, in seconds."""
        return taxes_of(self.timeline.segments, self.timeline.ranks)

    @property
    def bound(self) -> str:
        """The largest part of the latency; of kernels, what bounds most of them."""
        launches = [step for step in self.plan if isinstance(step, Launch)]
        largest = self.taxes.bound
        if largest != "kernels" or not launches:
            return largest
        works = [node.work for launch in launches for node in launch.nodes]
        device = self.machine.device
        return reduce(add, (kernel_time(work, device).body for work in works)).bound

    def __float__(self) -> float:
        """Return the latency in seconds."""
        return self.timeline.latency


def priced(
    program: ProgramOp,
    system: SystemOp,
    *,
    graph: bool = False,
    symmetric_inputs: bool = False,
) -> PricedPlan:
    """
    Return the price of a program on the GPUs of a system.

    `graph` as in `machine_for`. With `symmetric_inputs`, the caller keeps inputs that
    peers pull in symmetric memory. Raises `CostError` where the system has no GPU, and
    as `play` does.
    """
    machine = machine_for(program, system, graph=graph)
    plan = launch_plan_of(program, system)
    plan = in_place(plan) if symmetric_inputs else plan
    return PricedPlan(plan, machine, play(plan, machine))


Figures: TypeAlias = Callable[[KernelOp], tuple[NodeFigures, ...]]
"""Returns the figures of each node of a kernel."""


def read_plan(program: ProgramOp, device: Device, figures: Figures) -> Plan:
    """Return the launch plan of a program, given its GPU and what reads its kernels."""
    return tuple(_Reader(program, device, figures).steps())


@dataclass(frozen=True)
class _Reader:
    """Reads the kernels of one program."""

    program: ProgramOp
    device: Device
    figures: Figures

    @cached_property
    def ranks(self) -> int:
        """How many ranks run the program."""
        return rank_count(self.program)

    def steps(self) -> Iterator[Step]:
        """Yield the steps of the plan, in order."""
        for name, op in steps_of(self.program).items():
            match op:
                case KernelOp():
                    yield self._kernel(op, name)
                case BufferOp():
                    yield Clear(name, bytes_of(op.result))
                case BarrierOp():
                    yield Barrier(name)

    def _kernel(self, kernel: KernelOp, name: str) -> Step:
        for op in kernel.body.block.ops:
            if isinstance(op, CollectiveOp):
                return _exchange(name, op)
        nodes: list[LaunchNode] = []
        found = self.figures(kernel)
        for index, (node, figures) in enumerate(zip(kernel.nodes, found, strict=True)):
            label = name if len(found) == 1 else f"{name} {index + 1}"
            nodes.append(self._node(label, kernel, node, figures))
        return Launch(
            name, tuple(_in_one_kernel(nodes)), tuple(_signalled_inputs(kernel))
        )

    def _node(
        self, name: str, kernel: KernelOp, node: SpatialOp, figures: NodeFigures
    ) -> LaunchNode:
        summary, blocks, traffic = figures.summary, figures.blocks, figures.traffic
        sends = tuple(_sends(kernel, node))
        receives = tuple(_receives(kernel, node, summary, blocks, self.ranks))
        moved = bytes_by_value(node, traffic)
        copies = not summary.products.operations and not summary.vector.operations
        intermediate = [
            n for v, n in moved.items() if copies or self._is_intermediate(v)
        ]
        spilled = map(float, traffic[len(moved) :])
        partials = partial_bytes(node, arrived_partials(node), traffic)
        held = float(held_bytes(partials, self.device))
        work = self._with_tile_loop(kernel, node, figures, waits=bool(receives))
        return LaunchNode(
            name,
            merging_work(work, partials, self.device),
            intermediates=sum((*intermediate, *spilled)) - held,
            copies=copies,
            counts=bool(sends or receives),
            merges=arrival_of(node) is not None,
            sends=sends,
            receives=receives,
        )

    def _with_tile_loop(
        self, kernel: KernelOp, node: SpatialOp, figures: NodeFigures, *, waits: bool
    ) -> KernelWork:
        """Return the work of a node; persistent programs have a loop over tiles."""
        work, summary, blocks = figures.work, figures.summary, figures.blocks
        if (launch := node.launch) is None or not launch.persistent:
            return work
        kept = kept_bytes(node, summary, blocks)
        if waits:
            return with_tile_loop(work, summary, self.device, kept)
        loops = replace(work.loops, loads_ahead=launch.specialize)
        return persistent_work(
            replace(work, loops=loops),
            summary,
            blocks,
            launch.persistent,
            self.device,
            stationary=launch.resident,
            tiles_ahead=loads_tiles_ahead(kernel),
            kept=kept,
        )

    def _is_intermediate(self, value: SSAValue) -> bool:
        """Whether one kernel stores the value for another, of any rank."""
        return any(map(self._is_stored, sources(value)))

    def _is_stored(self, source: SSAValue) -> bool:
        match source.owner:
            case SpatialOp():
                return not self._is_output(source)
            case ReadOp() | ArriveOp():
                return True
            case _:
                return isinstance(program_value(source).owner, KernelOp)

    def _is_output(self, result: SSAValue) -> bool:
        """Whether a node computes a result of the program."""
        outputs = [program_value(viewed(v)) for v in self.program.yielded]
        for use in (use for value in stored_values(result) for use in value.uses):
            kernel = use.operation.parent_op()
            if isinstance(kernel, KernelOp) and isinstance(use.operation, YieldOp):
                return kernel.results_[use.index] in outputs
        return False


def _in_one_kernel(nodes: Sequence[LaunchNode]) -> Iterator[LaunchNode]:
    """Give all nodes the registers and shared memory of the node with the most."""
    works = in_one_launch([node.work for node in nodes])
    for node, work in zip(nodes, works, strict=True):
        yield replace(node, work=work)


def _exchange(name: str, op: CollectiveOp) -> LibraryCollective:
    kind = op.name.partition(".")[2]
    read, written = bytes_of(op.operands[0]), bytes_of(op.results[0])
    whole = max(read, written)  # the other is a shard, or as large
    algorithm = None if op.algorithm is None else str(op.algorithm.data)
    return LibraryCollective(name, kind, whole, read + written, algorithm)


def message_bytes(channel: ChannelType) -> float:
    """Return the bytes that one rank sends to each peer."""
    return elements_of(channel.message) * bits_of(channel.message) / 8


def _channel_name(channel: SSAValue) -> str:
    """Return a name of the channel, the same in all kernels that use it."""
    value = program_value(channel)
    block = value.owner.parent if isinstance(value.owner, Operation) else None
    position = 0 if block is None else list(block.ops).index(_owner(value))
    return f"{value.name_hint or 'channel'} {position}"


def _owner(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation)
    return value.owner


def _is_signalled(kernel: KernelOp, channel: SSAValue) -> bool:
    value = program_value(channel)
    ops = (op for op in kernel.body.block.ops if isinstance(op, SignalOp))
    return any(program_value(op.channel) is value for op in ops)


def _wait_for(kernel: KernelOp, channel: SSAValue) -> WaitOp | None:
    ops = (op for op in kernel.body.block.ops if isinstance(op, WaitOp))
    return next(
        (op for op in ops if program_value(op.channel) is program_value(channel)), None
    )


def _signalled_inputs(kernel: KernelOp) -> Iterator[str]:
    """Yield the channels of inputs whose flags a kernel sets."""
    for op in kernel.body.block.ops:
        if isinstance(op, SignalOp) and input_of(op.channel) is not None:
            yield _channel_name(op.channel)


def _sends(kernel: KernelOp, node: SpatialOp) -> Iterator[Send]:
    for op in kernel.body.block.ops:
        if isinstance(op, PushOp | StageOp) and viewed(op.value).owner is node:
            yield Send(
                _channel_name(op.channel),
                message_bytes(op.channel_type),
                remote=isinstance(op, PushOp),
                signals=_is_signalled(kernel, op.channel),
                of_input=_from_input(node),
                blocks=prod(blocks_of(op.channel).values()),
            )


def _from_input(node: SpatialOp) -> bool:
    """Whether a node only reads inputs of the program."""
    read = (program_value(source) for value in node.ins for source in sources(value))
    return all(isinstance(source, BlockArgument) for source in read)


def _receives(
    kernel: KernelOp,
    node: SpatialOp,
    summary: KernelSummary,
    blocks: Blocks,
    ranks: int,
) -> Iterator[Receive]:
    by_source = source_dims(kernel, node)
    for value in dict.fromkeys(node.ins):
        seen = viewed(value)
        op = seen.owner
        if not isinstance(op, ReadOp | PullOp):
            continue
        wait = _wait_for(kernel, op.channel)
        signalled = op.channel if wait is None else awaited_channel(wait)
        called = dict(zip(names_of(seen), names_of(value), strict=True))
        lacking = (dim for dim in summary.nest.grid if dim not in names_of(value))
        tile, gather = node.tiles[node.ins.index(value)], called[op.channel_type.gather]
        waits_before = any(
            not waits_in_loop(loop.trips_inside)
            for loop in source_loops(tile, gather, ranks)
        )
        yield Receive(
            _channel_name(signalled),
            message_bytes(op.channel_type),
            remote=isinstance(op, PullOp),
            waits=wait is not None,
            by_source=gather in by_source and not waits_before,
            again=float(product(summary.trips(dim, blocks) for dim in lacking)),
            by_block=any(called[dim] in node.factors for dim in blocks_of(signalled)),
            in_turn=gather not in node.factors,
        )
