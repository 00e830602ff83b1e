"""
A launch plan as numbers: kernels, messages, waits and barriers of one rank.

All ranks run the same plan. `from_ir/program.py` reads it from a `dataflow.program`;
`timeline.py` simulates it. Sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from comet.cost.gpu.interconnect import Interconnect
from comet.cost.gpu.kernel import Device, KernelWork


@dataclass(frozen=True)
class Machine:
    """A node of GPUs, and how kernels are started on it."""

    device: Device
    net: Interconnect
    launch: float
    """Seconds to start one kernel: `device.launch`, or less in a replayed graph."""
    skew: float = 0.0
    """
    How much longer the slowest rank takes for a kernel, as a fraction of its time.
    """


def virtual_ranks(machine: Machine) -> Machine:
    """
    Return the machine that each of several ranks has if all share one GPU.

    Each has an equal part of the multiprocessors, rates and caches; peers are as far as
    device memory, whose cache all ranks share. Kernels of all ranks are one launch,
    whose end is a barrier.
    """
    device, ranks = machine.device, machine.net.ranks
    part = replace(
        device,
        multiprocessors=max(device.multiprocessors // ranks, 1),
        tensor={name: rate / ranks for name, rate in device.tensor.items()},
        vector={name: rate / ranks for name, rate in device.vector.items()},
        hbm_bandwidth=device.hbm_bandwidth / ranks,
        l2_bytes=device.l2_bytes // ranks,
        l2_bandwidth=device.l2_bandwidth / ranks,
    )
    net = Interconnect(
        ranks=ranks,
        bandwidth=part.hbm_bandwidth,
        links=1,
        latency=device.load_latency,
        load_latency=device.load_latency,
        signal=2 * device.load_latency,
        barrier=0.0,
        caches=1,
        flag_bytes=machine.net.flag_bytes,
    )
    return replace(machine, device=part, net=net, skew=0.0)


@dataclass(frozen=True)
class Send:
    """A kernel stores its tiles to a channel."""

    channel: str
    message: float
    """Bytes that each peer receives."""
    remote: bool
    """Whether tiles are stored at the peers (push) or on the own rank (pull)."""
    signals: bool
    """Whether each tile is signalled by a flag; otherwise only a barrier follows."""
    blocks: int = 1
    """Blocks of the message that peers can wait for separately."""
    of_input: bool = False
    """Whether the value is an input of the plan, which is only copied for the peers."""


@dataclass(frozen=True)
class Receive:
    """A kernel reads what all ranks stored to a channel."""

    channel: str
    """The channel of the flags: signal coalescing may give several values one."""
    message: float
    """What comes from each rank."""
    remote: bool
    """
    Whether it is loaded from the peers (pull) or from the own receive buffer (push).
    """
    waits: bool
    """Whether it waits for flags; otherwise a barrier came before."""
    by_source: bool
    """Whether a loop visits the sources, the own first; else all are needed at once."""
    again: float = 1
    """How many programs load the same bytes."""
    by_block: bool = False
    """Whether a program needs only the blocks of its own rows."""


@dataclass(frozen=True)
class Part:
    """One node on the launch grid: a kernel has one, a persistent kernel several."""

    name: str
    work: KernelWork
    intermediates: float = 0
    """Bytes of `work.device_bytes` that are between kernels."""
    copies: bool = False
    """Whether it moves data and computes nothing."""
    counts: bool = False
    """Whether it reads the epoch, which determines the slots of receive buffers."""
    merges: bool = False
    """Whether programs of the part before it run it, each the last one to arrive."""
    sends: tuple[Send, ...] = ()
    receives: tuple[Receive, ...] = ()


@dataclass(frozen=True)
class Launch:
    """One kernel."""

    name: str
    parts: tuple[Part, ...]
    signalled_inputs: tuple[str, ...] = ()
    """Channels of inputs in symmetric memory, which its first program signals."""


@dataclass(frozen=True)
class LibraryCollective:
    """A kernel of a library that executes one collective."""

    name: str
    kind: str
    """A key of `algorithms.TIMES`."""
    size: float
    """Bytes of the whole value, as `algorithms` counts."""
    intermediates: float = 0
    """Bytes that it reads and writes in its own memory."""
    algorithm: str | None = None
    """None is the fastest."""


@dataclass(frozen=True)
class Barrier:
    """All ranks meet; every earlier store has arrived."""

    name: str = "barrier"


Step: TypeAlias = "Launch | LibraryCollective | Barrier"

Plan: TypeAlias = "tuple[Step, ...]"

SegmentKind = Literal[
    "launch", "busy", "locality", "communication", "wait", "barrier", "signal"
]
"""What a rank spends time on."""


def in_place(plan: Plan) -> Plan:
    """
    Return the plan of a caller that keeps its inputs in symmetric memory.

    Kernels that only copy an input for peers to pull are removed, and so are its
    signals and waits: the caller's barrier came before the launch.
    """
    launches = [step for step in plan if isinstance(step, Launch)]
    staged = {
        send.channel
        for step in launches
        if _stages_inputs(step)
        for part in step.parts
        for send in part.sends
    }
    staged |= {channel for step in launches for channel in step.signalled_inputs}
    steps: list[Step] = []
    for step in plan:
        if not isinstance(step, Launch):
            steps.append(step)
        elif not _stages_inputs(step):
            parts = (_without_waits(part, staged) for part in step.parts)
            steps.append(replace(step, parts=tuple(parts), signalled_inputs=()))
    return tuple(steps)


def _stages_inputs(step: Launch) -> bool:
    return all(
        part.copies and part.sends and all(_lays_out(send) for send in part.sends)
        for part in step.parts
    )


def _lays_out(send: Send) -> bool:
    return send.of_input and not send.remote


def _without_waits(part: Part, channels: set[str]) -> Part:
    receives = (
        replace(r, waits=r.waits and r.channel not in channels) for r in part.receives
    )
    used = {each.channel for each in (*part.sends, *part.receives)}
    counts = part.counts and not used <= channels
    return replace(part, receives=tuple(receives), counts=counts)
