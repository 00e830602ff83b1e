"""Who uses an inbox, in which order: what `verify-sync` reasons about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from comet.dialects.dataflow import (
    BarrierOp,
    FlagsOp,
    InboxOp,
    KernelOp,
    ProgramOp,
    PullOp,
    PushOp,
    ReadOp,
    SignalOp,
    StageOp,
    WaitOp,
    behind,
)
from comet.dialects.dataflow.signals import covers, cuts

Giver: TypeAlias = PushOp | StageOp
Reader: TypeAlias = ReadOp | PullOp
Use: TypeAlias = Giver | Reader | SignalOp | WaitOp
"""What kernels do with inboxes."""


def uses_of_channels(program: ProgramOp) -> Iterator[Use]:
    """Yield what the kernels of a program do with channels, in order."""
    for kernel in program.kernels():
        for op in kernel.body.block.ops:
            if isinstance(op, Use):
                yield op


@dataclass(frozen=True)
class Place:
    """Where an operation stands: ranks run kernels, and kernels their ops, in order."""

    launch: int
    """The number of the kernel in its program."""
    step: int
    """The number of the operation in its kernel."""
    barriers: int
    """The number of barriers of all ranks before the kernel."""


@dataclass(frozen=True)
class Wiring:
    """All that a program does with one inbox."""

    inbox: InboxOp
    flags: tuple[FlagsOp, ...]
    """Its own, or those of another inbox whose signals speak for this one as well."""
    givers: tuple[Giver, ...]
    readers: tuple[Reader, ...]
    signals: tuple[SignalOp, ...]
    """On its flags."""
    waits: tuple[WaitOp, ...]
    places: Mapping[Operation, Place]
    barriers: int
    """The number of barriers of all ranks in the program."""

    @property
    def name(self) -> str:
        """The inbox, as users see it."""
        return shown(self.inbox.result)

    @property
    def of_input(self) -> bool:
        """Whether the caller writes an input of the program there."""
        return self.inbox.input is not None

    @property
    def uses(self) -> tuple[Use, ...]:
        """All uses, grouped by what they do."""
        return (*self.givers, *self.signals, *self.waits, *self.readers)

    def before(self, one: Operation, other: Operation) -> bool:
        """Whether a rank does `one` before `other` in every launch."""
        first, second = self.places[one], self.places[other]
        return (first.launch, first.step) < (second.launch, second.step)

    def barrier_between(self, one: Operation, other: Operation) -> bool:
        """Whether all ranks have done `one` before any does `other`."""
        return self.places[one].barriers < self.places[other].barriers


def shown(value: SSAValue) -> str:
    """Return a value as text shows it."""
    return f"%{value.name_hint or 'inbox'}"


def kernel_of(op: Operation) -> str:
    """Return the name, with @, of the kernel that an operation stands in."""
    kernel = op.parent_op()
    assert isinstance(kernel, KernelOp)
    return f"@{kernel.sym_name.data}"


def wiring_of(inbox: InboxOp, program: ProgramOp) -> Wiring:
    """Return what a program does with one of its inboxes."""
    places, barriers = _places(program)
    uses = list(uses_of_channels(program))
    used = [op for op in uses if behind(op.channel) is inbox.result]
    signals = [op for op in uses if isinstance(op, SignalOp)]
    flags = _own_flags(program, inbox) or _shared_flags(signals, inbox, used)
    return Wiring(
        inbox,
        flags,
        tuple(op for op in used if isinstance(op, Giver)),
        tuple(op for op in used if isinstance(op, Reader)),
        tuple(op for op in signals if op in used or _flags_of(op) in flags),
        tuple(op for op in used if isinstance(op, WaitOp)),
        places,
        barriers,
    )


def _own_flags(program: ProgramOp, inbox: InboxOp) -> tuple[FlagsOp, ...]:
    flags = (op for op in program.body.block.ops if isinstance(op, FlagsOp))
    return tuple(op for op in flags if op.box is inbox.result)


def _shared_flags(
    signals: Sequence[SignalOp], inbox: InboxOp, used: Sequence[Use]
) -> tuple[FlagsOp, ...]:
    """Return flags that are waited for, whose signals speak for an inbox as well."""
    waited = {_flags_of(op) for op in used if isinstance(op, WaitOp)}
    found = (_flags_of(op) for op in signals if covers(op, inbox.result))
    return tuple(
        flags
        for flags in dict.fromkeys(found)
        if flags in waited and flags is not None and cuts(flags, inbox.result)
    )


def _flags_of(op: SignalOp | WaitOp) -> FlagsOp | None:
    owner = None if op.flags is None else behind(op.flags).owner
    return owner if isinstance(owner, FlagsOp) else None


def _places(program: ProgramOp) -> tuple[dict[Operation, Place], int]:
    """Return where the ops of all kernels stand, and the number of barriers."""
    places: dict[Operation, Place] = {}
    launch, barriers = 0, 0
    for op in program.body.block.ops:
        if isinstance(op, BarrierOp) and op.local is None:
            barriers += 1
        if isinstance(op, KernelOp):
            for step, inner in enumerate(op.body.block.ops):
                places[inner] = Place(launch, step, barriers)
            launch += 1
    return places, barriers
