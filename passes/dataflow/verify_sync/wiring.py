"""The uses of a receive buffer and their order, for the rules of `verify-sync`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import View
from comet.dialects.compound.rename import viewed
from comet.dialects.dataflow import (
    BarrierOp,
    FlagsOp,
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
from comet.dialects.dataflow.signals import covers, cuts
from comet.dialects.parents import enclosing
from comet.dialects.schedule.node import NodeOp, group_around, outside

Producer: TypeAlias = PushOp | StageOp
Consumer: TypeAlias = ReadOp | ReadTileOp | PullOp
ChannelUse: TypeAlias = Producer | Consumer | SignalOp | WaitOp
"""The uses of receive buffers in kernels."""


def uses_of_channels(program: ProgramOp) -> Iterator[ChannelUse]:
    """Yield the uses of channels in the kernels of a program, in order."""
    for kernel in program.kernels():
        for op in kernel.walk():
            if isinstance(op, ChannelUse):
                yield op


@dataclass(frozen=True)
class PlanPoint:
    """
    The program point of an operation: ranks run kernels, and kernels their ops, in
    order.
    """

    launch: int
    """The number of the kernel in its program."""
    step: int
    """The number of the operation in its kernel."""
    barriers: int
    """The number of barriers of all ranks before the kernel."""


@dataclass(frozen=True)
class Wiring:
    """All uses of one receive buffer in a program."""

    receive_buffer: ReceiveBufferOp
    flags: tuple[FlagsOp, ...]
    """
    Its own, or those of another receive buffer whose signals cover this one.
    """
    producers: tuple[Producer, ...]
    consumers: tuple[Consumer, ...]
    signals: tuple[SignalOp, ...]
    """On its flags."""
    waits: tuple[WaitOp, ...]
    points: Mapping[Operation, PlanPoint]
    barriers: int
    """The number of barriers of all ranks in the program."""

    @property
    def name(self) -> str:
        """The name of the receive buffer in messages."""
        return shown(self.receive_buffer.result)

    @property
    def of_input(self) -> bool:
        """Whether the caller writes an input of the program to it."""
        return self.receive_buffer.input is not None

    @property
    def in_group(self) -> bool:
        """Whether programs store to it in the node of a group."""
        return any(group_around(op) is not None for op in self.producers)

    @property
    def uses(self) -> tuple[ChannelUse, ...]:
        """All uses, grouped by kind."""
        return (*self.producers, *self.signals, *self.waits, *self.consumers)

    def before(self, one: Operation, other: Operation) -> bool:
        """Whether a rank does `one` before `other` in every launch."""
        first, second = self.points[one], self.points[other]
        return (first.launch, first.step) < (second.launch, second.step)

    def barrier_between(self, one: Operation, other: Operation) -> bool:
        """Whether all ranks have done `one` before any does `other`."""
        return self.points[one].barriers < self.points[other].barriers


def shown(value: SSAValue) -> str:
    """Return the name of a value in messages."""
    return f"%{value.name_hint or 'recv'}"


def kernel_of(op: Operation) -> str:
    """Return the name, with @, of the kernel that an operation is in."""
    return f"@{kernel_op(op).sym_name.data}"


def kernel_op(op: Operation) -> KernelOp:
    """Return the kernel that an operation is in."""
    kernel = enclosing(op, KernelOp)
    assert kernel is not None
    return kernel


def channels_of(op: ChannelUse) -> tuple[SSAValue, ...]:
    """Return the program's channels of a use; of a wait, those of its views."""
    channels = dict.fromkeys([program_value(op.channel)])
    if isinstance(op, WaitOp) and op.own is None:
        reads = (origin_of(view).owner for view in op.views)
        others = (read.channel for read in reads if isinstance(read, Consumer))
        channels |= dict.fromkeys(program_value(channel) for channel in others)
    return tuple(channels)


def origin_of(view: SSAValue) -> SSAValue:
    """Return the value that a view is of, in the body of its kernel or the program."""
    value = viewed(outside(view))
    if isinstance(value.owner, WaitOp):
        return origin_of(value.owner.views[value.owner.awaited.index(value)])
    return value


def loads_before(
    view: SSAValue, is_awaited: Callable[[WaitOp], bool]
) -> Iterator[Operation]:
    """Yield the uses of a view, or of its tiles, without a wait of this kind."""
    for use in view.uses:
        op = use.operation
        if isinstance(op, WaitOp):
            if not is_awaited(op):
                yield from loads_before(op.awaited[use.index], is_awaited)
        elif isinstance(op, View):
            yield from loads_before(op.result, is_awaited)
        elif isinstance(op, NodeOp):
            yield from loads_before(op.body.block.args[use.index], is_awaited)
        else:
            yield op


def wiring_of(receive_buffer: ReceiveBufferOp, program: ProgramOp) -> Wiring:
    """Return the uses of a receive buffer in a program."""
    points, barriers = _plan_points(program)
    uses = list(uses_of_channels(program))
    used = [op for op in uses if receive_buffer.result in channels_of(op)]
    signals = [op for op in uses if isinstance(op, SignalOp)]
    flags = _flags_of_buffer(program, receive_buffer) or _shared_flags(
        signals, receive_buffer, used
    )
    return Wiring(
        receive_buffer,
        flags,
        tuple(op for op in used if isinstance(op, Producer)),
        tuple(op for op in used if isinstance(op, Consumer)),
        tuple(op for op in signals if op in used or flags_of(op) in flags),
        tuple(op for op in used if isinstance(op, WaitOp)),
        points,
        barriers,
    )


def _flags_of_buffer(
    program: ProgramOp, receive_buffer: ReceiveBufferOp
) -> tuple[FlagsOp, ...]:
    flags = (op for op in program.body.block.ops if isinstance(op, FlagsOp))
    return tuple(op for op in flags if op.buffer is receive_buffer.result)


def _shared_flags(
    signals: Sequence[SignalOp],
    receive_buffer: ReceiveBufferOp,
    used: Sequence[ChannelUse],
) -> tuple[FlagsOp, ...]:
    """
    Return flags with waits, whose signals also cover a receive buffer.
    """
    waited = {flags_of(op) for op in used if isinstance(op, WaitOp)}
    found = (flags_of(op) for op in signals if covers(op, receive_buffer.result))
    return tuple(
        flags
        for flags in dict.fromkeys(found)
        if flags in waited and flags is not None and cuts(flags, receive_buffer.result)
    )


def flags_of(op: SignalOp | WaitOp) -> FlagsOp | None:
    """Return the flags of an operation, None before channels are lowered."""
    owner = None if op.flags is None else program_value(op.flags).owner
    return owner if isinstance(owner, FlagsOp) else None


def _plan_points(program: ProgramOp) -> tuple[dict[Operation, PlanPoint], int]:
    """
    Return the program points of the ops of all kernels, and the number of barriers.
    """
    points: dict[Operation, PlanPoint] = {}
    launch, barriers = 0, 0
    for op in program.body.block.ops:
        if isinstance(op, BarrierOp) and op.local is None:
            barriers += 1
        if isinstance(op, KernelOp):
            for step, inner in enumerate(op.body.walk()):
                points[inner] = PlanPoint(launch, step, barriers)
            launch += 1
    return points, barriers
