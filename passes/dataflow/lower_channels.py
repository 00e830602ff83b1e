"""
`lower-channels`: channels -> receive buffers, flags and epochs.

A channel becomes symmetric memory with two slots, which launches use in turn, and, if
it is signalled, flags that count the tiles of each block. A kernel counts its launches
on the device; slots and the values to wait for follow from that epoch, so nothing is
cleared between launches. Channels that one signal covers share flags. The caller writes
the channel of an input, and one program signals it. Rejects other channels without
exactly one producer, and waits for flags without signals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.dataflow import (
    ChannelOp,
    EpochOp,
    FlagsOp,
    FlagsType,
    KernelOp,
    ProgramOp,
    PullOp,
    PushOp,
    ReadOp,
    ReadTileOp,
    ReceiveBufferOp,
    SignalOp,
    StageOp,
    WaitOp,
    program_value,
)
from comet.dialects.dataflow.flags import FlagScope
from comet.dialects.dataflow.program import programs_in
from comet.dialects.dataflow.signals import (
    node_of,
    signalled_with,
    uses_inside,
    uses_of,
)
from comet.dialects.errors import OpError
from comet.passes.analysis.levels import IRLevel
from comet.passes.dataflow.kernels import inside, rebuild_kernel
from comet.passes.function_pass import FunctionPass

SLOTS = 2
"""While one slot is read, ranks that are ahead write to the other."""


@dataclass(frozen=True)
class LowerChannelsPass(FunctionPass):
    """Lower channels to symmetric memory, flags and epochs."""

    name = "lower-channels"

    LEVELS = (IRLevel.DATAFLOW,)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        for program in programs_in(function):
            lower(program, plan_flags(program))


@dataclass(frozen=True)
class FlagPlan:
    """The flags that signal to the consumers of a channel that a block has arrived."""

    channel: ChannelOp
    writers: int | None
    """The tiles of a block, each of which signals once; None: there are no signals."""
    signalled_with: ChannelOp | None = None
    """Another channel, whose signals also cover this one."""


def plan_flags(program: ProgramOp) -> tuple[FlagPlan, ...]:
    """
    Count the signals of every channel of a program.

    Raises `PassFailedException` for a channel without exactly one producer.
    """
    channels = [op for op in program.body.block.ops if isinstance(op, ChannelOp)]
    return tuple(_flag_plan(channel) for channel in channels)


def _flag_plan(channel: ChannelOp) -> FlagPlan:
    producers = [
        op for op in uses_of(channel.result) if isinstance(op, PushOp | StageOp)
    ]
    if channel.input is not None:
        return _flag_plan_of_input(channel, producers)
    if len(producers) != 1:
        raise OpError(
            channel,
            f"lower-channels: the channel {_name(channel)} is stored to "
            f"{len(producers)} times; push or stage one value to it",
        )
    signalled = signalled_with(channel)
    if signalled is channel:
        return FlagPlan(channel, tiles_per_block(producers[0], channel))
    return FlagPlan(channel, None, signalled)


def _flag_plan_of_input(
    channel: ChannelOp, producers: Sequence[PushOp | StageOp]
) -> FlagPlan:
    if producers:
        raise OpError(
            channel,
            f"lower-channels: a kernel stores to the channel {_name(channel)} of an "
            "input, which the caller has written there; use a channel of its own",
        )
    return FlagPlan(channel, None if signalled_with(channel) is None else 1)


def tiles_per_block(producer: PushOp | StageOp, channel: ChannelOp) -> int:
    """
    Return how many tiles of a grid belong to one block of a message.

    Each program computes one tile. Tiles for different ranks belong to different
    messages. The tiles of a group of programs belong to one block; a tile that all of
    them have is stored once, by the root. Along a dimension with unequal shards, some
    programs have no block.
    """
    node = node_of(producer)
    if node is None or node.mesh_name is not None:
        raise OpError(
            producer,
            f"lower-channels: what is stored to the channel {_name(channel)} is not "
            "made by a node on the launch grid; store what such a node makes",
        )
    if channel.in_one_memory:  # each program of a group adds one to the same flag
        return channel.ranks
    if isinstance(producer, PushOp) and producer.root is not None:
        return 1
    blocks, split = channel.blocks, producer.channel_type.split
    cuts = {loop.dim: loop.factor for loop in blocks}
    if split in node.factors:
        assert split is not None
        cuts[split] = channel.ranks * cuts.get(split, 1)
    counts = (count // cuts.get(dim, 1) for dim, count in node.factors.items())
    return prod(counts)


def _name(channel: ChannelOp) -> str:
    return f"%{channel.result.name_hint or 'channel'}"


def lower(program: ProgramOp, plans: Sequence[FlagPlan]) -> None:
    """Replace the channels of a program, and all ops on them."""
    lowered: dict[SSAValue, ChannelMemory] = {}
    for plan in plans:
        lowered[plan.channel.result] = _channel_memory(plan)
    for plan in plans:
        if plan.signalled_with is not None:
            flags = lowered[plan.signalled_with.result].flags
            memory = lowered[plan.channel.result]
            lowered[plan.channel.result] = replace(memory, flags=flags)
    for kernel in list(program.kernels()):
        if any(value in lowered for value in kernel.ins):
            _lower_kernel(kernel, lowered)
    for plan in plans:
        Rewriter.erase_op(plan.channel)


@dataclass(frozen=True)
class ChannelMemory:
    """The lowered form of a channel."""

    receive_buffer: SSAValue
    flags: FlagsOp | None


def _channel_memory(plan: FlagPlan) -> ChannelMemory:
    """Insert the receive buffer of a channel, with flags if there are signals."""
    channel = plan.channel
    axes, mesh = channel.axis_names, channel.mesh.string_value()
    shared = channel.in_one_memory
    slots = 1 if shared else SLOTS
    receive_buffer = ReceiveBufferOp(slots, mesh, axes, channel.type, channel.input)
    hint = (channel.result.name_hint or "channel").removesuffix("_channel")
    receive_buffer.result.name_hint = f"{hint}_recv"
    Rewriter.insert_op(receive_buffer, InsertPoint.before(channel))
    if plan.writers is None:
        return ChannelMemory(receive_buffer.result, None)
    type_ = FlagsType(1 if shared else channel.ranks, channel.blocks)
    flags = FlagsOp(receive_buffer.result, plan.writers, type_)
    flags.result.name_hint = f"{hint}_flags"
    Rewriter.insert_op(flags, InsertPoint.before(channel))
    return ChannelMemory(receive_buffer.result, flags)


def _lower_kernel(kernel: KernelOp, lowered: Mapping[SSAValue, ChannelMemory]) -> None:
    """Replace channels by memory in a kernel, and count its launches."""
    body = kernel.body.block
    epoch = EpochOp()
    epoch.result.name_hint = "epoch"
    Rewriter.insert_op(epoch, InsertPoint.at_start(body))
    ins = list(kernel.ins)
    for index, value in enumerate(kernel.ins):
        if value not in lowered:
            continue
        memory, argument = lowered[value], body.args[index]
        ins[index] = memory.receive_buffer
        uses = [op for op in uses_inside(argument) if not _covers(value, op)]
        flags = None
        if memory.flags and any(isinstance(op, SignalOp | WaitOp) for op in uses):
            flags_value = memory.flags.result
            if flags_value not in ins:
                body.insert_arg(flags_value.type, len(body.args)).name_hint = "flags"
                ins.append(flags_value)
            flags = body.args[ins.index(flags_value)]
        for op in uses:
            _lower_use(op, epoch.result, flags, memory)
    rebuild_kernel(kernel, ins, range(len(kernel.results_)))


def _covers(channel: SSAValue, op: Operation) -> bool:
    """Whether a use of a channel is a signal with the flags of another channel."""
    return isinstance(op, SignalOp) and program_value(op.channel) is not channel


def _lower_use(
    op: Operation, epoch: SSAValue, flags: SSAValue | None, memory: ChannelMemory
) -> None:
    """Give an operation on a channel the slot and the flags of an epoch."""
    assert op.parent is not None
    epoch = inside(epoch, op.parent)
    flags = None if flags is None else inside(flags, op.parent)
    buffer = memory.receive_buffer.owner
    assert isinstance(buffer, ReceiveBufferOp)
    scope = FlagScope.GPU if buffer.in_one_memory else FlagScope.SYSTEM
    match op:
        case PushOp() | StageOp():
            stored = op.stored and op.stored.type
            new: Operation = type(op)(op.value, op.channel, epoch, stored)
            if isinstance(op, PushOp) and isinstance(new, PushOp):
                new.root = op.root
        case ReadTileOp():
            new = ReadTileOp(op.channel, op.stored, epoch)
        case ReadOp() | PullOp():
            new = type(op)(op.channel, epoch)
        case SignalOp():
            new = SignalOp(
                op.channel,
                flags,
                epoch,
                scope=scope,
                covered=op.covered,
                root=op.root,
            )
        case WaitOp() if memory.flags is not None:
            arrivals = memory.flags.writers.value.data
            new = WaitOp(
                op.channel, flags, epoch, arrivals, scope=scope, views=op.views
            )
        case _:
            raise OpError(
                op,
                f"lower-channels: {op.name} waits without a signal; remove it, "
                "or signal in the kernel that stores to the channel",
            )
    Rewriter.replace_op(op, new)
