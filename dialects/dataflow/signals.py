"""
Signal coalescing: which channels one signal covers.

Every program on a launch grid makes a tile of each result of its node. If these are
stored to several channels, one signal after the last store, for one set of flags, can
cover them all.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, OpResult, SSAValue

from comet.dialects.compound.dims import extents_of
from comet.dialects.dataflow.channel import (
    ChannelOp,
    ChannelType,
    ReceiveBufferOp,
    program_value,
)
from comet.dialects.dataflow.flags import FlagsOp
from comet.dialects.dataflow.program import KernelOp
from comet.dialects.dataflow.transfer import PushOp, SignalOp, StageOp, WaitOp
from comet.dialects.schedule import CopyOp, SpatialOp
from comet.dialects.schedule.node import NodeOp


def blocks_of(channel: SSAValue) -> dict[str, int]:
    """Return how many blocks with a flag each dimension is cut into."""
    value = program_value(channel)
    if isinstance(value.owner, ChannelOp):
        return {loop.dim: loop.factor for loop in value.owner.blocks}
    for use in value.uses:
        if isinstance(use.operation, FlagsOp):
            return {loop.dim: loop.factor for loop in use.operation.type.blocks}
    return {}


def node_of(producer: PushOp | StageOp) -> SpatialOp | None:
    """Return the node on the launch grid whose tiles are stored, None if of none."""
    parent = producer.parent_op()
    node = parent.outermost if isinstance(parent, NodeOp) else producer.value.owner
    return node if isinstance(node, SpatialOp) else None


def producers_in(kernel: KernelOp, node: SpatialOp) -> Iterator[PushOp | StageOp]:
    """Yield the pushes and stages of tiles of a node, at its border or inside."""
    for op in kernel.walk():
        if isinstance(op, PushOp | StageOp) and node_of(op) is node:
            yield op


def store_of(value: SSAValue) -> CopyOp | PushOp | StageOp | None:
    """Return the op that stores a yielded value, also in an inner node, or None."""
    while isinstance(value, OpResult) and isinstance(inner := value.op, NodeOp):
        value = inner.yielded[value.index]
    return value.owner if isinstance(value.owner, CopyOp | PushOp | StageOp) else None


def sent_with(value: SSAValue) -> Iterator[PushOp | StageOp]:
    """Yield the pushes and stages of the tile that a node yields as `value`."""
    store = store_of(value)
    op = store.next_op if isinstance(store, CopyOp) else store
    while store is not None and isinstance(op, PushOp | StageOp):
        if op.value is not store.operands[0]:
            return
        yield op
        op = op.next_op


def covers(signal: SignalOp, channel: SSAValue) -> bool:
    """Whether a signal covers a channel."""
    listed = program_value(channel) in map(program_value, signal.channels)
    return listed and (not in_node(signal) or any(_producers(signal, channel)))


def in_node(signal: SignalOp) -> bool:
    """Whether a signal is inside a node, not at the border of its kernel."""
    return isinstance(signal.parent_op(), NodeOp)


def can_cover(signal: SignalOp, channel: SSAValue) -> bool:
    """
    Whether a signal can cover another channel.

    It can if the signalling programs have stored to the channel before, for the same
    ranks.
    """
    signalled = next(iter(_producers(signal, signal.channel)), None)
    covered = list(_producers(signal, channel))
    return (
        signalled is not None
        and bool(covered)
        and all(_same_programs(signalled, producer) for producer in covered)
        and (
            in_node(signal)
            or all(
                producer.is_before_in_block(signal)
                for producer in (signalled, *covered)
            )
        )
    )


def signalled_with(channel: ChannelOp) -> ChannelOp | None:
    """
    Return the channel whose signals cover this one.

    That is the channel itself, another one, or None if no kernel signals it.
    """
    signals = [op for op in uses_of(channel.result) if isinstance(op, SignalOp)]
    owners = [program_value(op.channel).owner for op in signals]
    found = channel if channel in owners else next(iter(owners), None)
    assert found is None or isinstance(found, ChannelOp)
    return found


def uses_of(channel: SSAValue) -> Iterator[Operation]:
    """Yield the ops of kernels on a channel, also those in nodes."""
    for use in channel.uses:
        if isinstance(kernel := use.operation, KernelOp):
            yield from uses_inside(kernel.body.block.args[use.index])


def uses_inside(argument: SSAValue) -> Iterator[Operation]:
    """Yield the ops that use a block argument of a kernel, also inside its nodes."""
    for use in argument.uses:
        op = use.operation
        if isinstance(op, NodeOp):
            yield from uses_inside(op.body.block.args[use.index])
        else:
            yield op


def awaited_channel(wait: WaitOp) -> SSAValue:
    """
    Return the channel whose flags a wait reads: its own, or the one whose signals cover
    it.
    """
    if wait.flags is not None:
        flags = program_value(wait.flags).owner
        assert isinstance(flags, FlagsOp)
        return flags.buffer
    channel = program_value(wait.channel).owner
    covering = signalled_with(channel) if isinstance(channel, ChannelOp) else None
    return program_value(wait.channel) if covering is None else covering.result


def _producers(signal: SignalOp, channel: SSAValue) -> Iterator[PushOp | StageOp]:
    """Yield the producers of a channel that a signal follows."""
    block = signal.parent
    assert block is not None
    sends = [op for op in block.ops if isinstance(op, PushOp | StageOp)]
    if in_node(signal):
        sends = [op for value in signal.covered for op in sent_with(value)]
    for op in sends:
        if program_value(op.channel) is program_value(channel):
            yield op


def _same_programs(first: PushOp | StageOp, second: PushOp | StageOp) -> bool:
    """Whether the same programs produce both, for the same ranks."""
    node = node_of(first)
    return (
        node is not None
        and node_of(second) is node
        and first.channel_type.split == second.channel_type.split
        and _group(first.channel) == _group(second.channel)
    )


def _group(channel: SSAValue) -> object:
    """Return the ranks of a channel."""
    owner = program_value(channel).owner
    assert isinstance(owner, ChannelOp | ReceiveBufferOp)
    return owner.mesh, owner.axes


def cuts(flags: FlagsOp, channel: SSAValue) -> bool:
    """Whether the blocks of flags are also blocks of another channel's messages."""
    signalled, extents = (_extents(value) for value in (flags.buffer, channel))
    return all(
        extents.get(loop.dim) == signalled[loop.dim] for loop in flags.type.blocks
    )


def _extents(channel: SSAValue) -> dict[str, int]:
    """Return the extents of what one rank sends to one other."""
    type_ = program_value(channel).type
    assert isinstance(type_, ChannelType)
    return extents_of(type_.message)
