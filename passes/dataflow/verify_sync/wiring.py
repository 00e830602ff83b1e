"""Who uses a receive buffer, in which order: what `verify-sync` reasons about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from comet.dialects.dataflow import (
    BarrierOp,
    FlagsOp,
    KernelOp,
    ProgramOp,
    PullOp,
    PushOp,
    ReadOp,
    ReceiveBufferOp,
    SignalOp,
    StageOp,
    WaitOp,
    program_value,
)
from comet.dialects.dataflow.signals import covers, cuts

Producer: TypeAlias = PushOp | StageOp
Consumer: TypeAlias = ReadOp | PullOp
Use: TypeAlias = Producer | Consumer | SignalOp | WaitOp
"""What kernels do with receive buffers."""


def uses_of_channels(program: ProgramOp) -> Iterator[Use]:
    """Yield what the kernels of a program do with channels, in order."""
    for kernel in program.kernels():
        for op in kernel.body.block.ops:
            if isinstance(op, Use):
                yield op


@dataclass(frozen=True)
class ProgramPoint:
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
    """All that a program does with one receive buffer."""

    receive_buffer: ReceiveBufferOp
    flags: tuple[FlagsOp, ...]
    """
    Its own, or those of another receive buffer whose signals speak for this one as
    well.
    """
    producers: tuple[Producer, ...]
    consumers: tuple[Consumer, ...]
    signals: tuple[SignalOp, ...]
    """On its flags."""
    waits: tuple[WaitOp, ...]
    points: Mapping[Operation, ProgramPoint]
    barriers: int
    """The number of barriers of all ranks in the program."""

    @property
    def name(self) -> str:
        """The receive buffer, as users see it."""
        return shown(self.receive_buffer.result)

    @property
    def of_input(self) -> bool:
        """Whether the caller writes an input of the program there."""
        return self.receive_buffer.input is not None

    @property
    def uses(self) -> tuple[Use, ...]:
        """All uses, grouped by what they do."""
        return (*self.producers, *self.signals, *self.waits, *self.consumers)

    def before(self, one: Operation, other: Operation) -> bool:
        """Whether a rank does `one` before `other` in every launch."""
        first, second = self.points[one], self.points[other]
        return (first.launch, first.step) < (second.launch, second.step)

    def barrier_between(self, one: Operation, other: Operation) -> bool:
        """Whether all ranks have done `one` before any does `other`."""
        return self.points[one].barriers < self.points[other].barriers


def shown(value: SSAValue) -> str:
    """Return a value as text shows it."""
    return f"%{value.name_hint or 'inbox'}"


def kernel_of(op: Operation) -> str:
    """Return the name, with @, of the kernel that an operation is in."""
    kernel = op.parent_op()
    assert isinstance(kernel, KernelOp)
    return f"@{kernel.sym_name.data}"


def wiring_of(receive_buffer: ReceiveBufferOp, program: ProgramOp) -> Wiring:
    """Return what a program does with one of its receive buffers."""
    points, barriers = _program_points(program)
    uses = list(uses_of_channels(program))
    used = [op for op in uses if program_value(op.channel) is receive_buffer.result]
    signals = [op for op in uses if isinstance(op, SignalOp)]
    flags = _flags_of_buffer(program, receive_buffer) or _shared_flags(
        signals, receive_buffer, used
    )
    return Wiring(
        receive_buffer,
        flags,
        tuple(op for op in used if isinstance(op, Producer)),
        tuple(op for op in used if isinstance(op, Consumer)),
        tuple(op for op in signals if op in used or _flags_of(op) in flags),
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
    signals: Sequence[SignalOp], receive_buffer: ReceiveBufferOp, used: Sequence[Use]
) -> tuple[FlagsOp, ...]:
    """
    Return flags that are waited for, whose signals speak for a receive buffer as well.
    """
    waited = {_flags_of(op) for op in used if isinstance(op, WaitOp)}
    found = (_flags_of(op) for op in signals if covers(op, receive_buffer.result))
    return tuple(
        flags
        for flags in dict.fromkeys(found)
        if flags in waited and flags is not None and cuts(flags, receive_buffer.result)
    )


def _flags_of(op: SignalOp | WaitOp) -> FlagsOp | None:
    owner = None if op.flags is None else program_value(op.flags).owner
    return owner if isinstance(owner, FlagsOp) else None


def _program_points(program: ProgramOp) -> tuple[dict[Operation, ProgramPoint], int]:
    """
    Return the program points of the ops of all kernels, and the number of barriers.
    """
    points: dict[Operation, ProgramPoint] = {}
    launch, barriers = 0, 0
    for op in program.body.block.ops:
        if isinstance(op, BarrierOp) and op.local is None:
            barriers += 1
        if isinstance(op, KernelOp):
            for step, inner in enumerate(op.body.block.ops):
                points[inner] = ProgramPoint(launch, step, barriers)
            launch += 1
    return points, barriers
