"""
A launch plan as numbers: kernels, messages, waits and barriers of one rank.

All ranks run the same plan. `from_ir/program.py` reads it from a `dataflow.program`;
`timeline.py` simulates it. Sizes are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from comet.cost.gpu.device import Device
from comet.cost.gpu.interconnect import Interconnect
from comet.cost.gpu.work import KernelWork


@dataclass(frozen=True)
class Machine:
    """A node of GPUs, and how kernels are started on it."""

    device: Device
    net: Interconnect
    launch: float
    """Seconds to start one kernel: `device.launch`, or less in a replayed graph."""
    skew: float = 0.0
    """
    How much longer the slowest rank takes for a kernel than the fastest, as a fraction.
    """


def shared_device(device: Device, ranks: int) -> Device:
    """
    Return the part of a GPU that each of `ranks` ranks has if all share it.

    It has an equal part of the multiprocessors and of the rates. The programs of one
    rank follow those of another: each has the whole L2 in its turn.
    """
    units, memory = device.units, device.memory
    return replace(
        device,
        multiprocessors=max(device.multiprocessors // ranks, 1),
        units=replace(
            units,
            tensor={name: rate / ranks for name, rate in units.tensor.items()},
            vector={name: rate / ranks for name, rate in units.vector.items()},
        ),
        memory=replace(
            memory,
            hbm_bandwidth=memory.hbm_bandwidth / ranks,
            l2_bandwidth=memory.l2_bandwidth / ranks,
        ),
        sharing=ranks,
    )


def shared_memory_net(device: Device, ranks: int, flag_bytes: int) -> Interconnect:
    """
    Return the links between ranks on one GPU, each with a part of it, `device`.

    A peer's memory is the same device memory, with its latencies; a flag is set, then
    read. The kernels of all ranks share a launch, whose end is a barrier.
    """
    return Interconnect(
        ranks=ranks,
        bandwidth=device.memory.hbm_bandwidth,
        links=1,
        latency=device.times.flag_latency,
        load_latency=device.times.load_latency,
        signal=2 * device.times.flag_latency,
        barrier=0.0,
        caches=1,
        flag_bytes=flag_bytes,
    )


@dataclass(frozen=True)
class Send:
    """A kernel stores its tiles to a channel."""

    channel: str
    message: float
    """Bytes that each peer receives."""
    remote: bool
    """Whether tiles are stored at the peers (push), else on the own rank (pull)."""
    signals: bool
    """Whether a flag signals each tile; otherwise a barrier follows."""
    blocks: int = 1
    """The blocks of the message, each of which peers can wait for."""
    of_input: bool = False
    """Whether the value is an input of the plan, copied only for the peers."""


@dataclass(frozen=True)
class Receive:
    """A kernel reads what all ranks stored to a channel."""

    channel: str
    """The channel whose flags it waits for, which several values may share."""
    message: float
    """Bytes from each rank."""
    remote: bool
    """Whether it is loaded from the peers (pull), else from a receive buffer (push)."""
    waits: bool
    """Whether it waits for flags; otherwise a barrier came before."""
    by_source: bool
    """Whether a loop is over the ranks, the own first; else all are needed at once."""
    again: float = 1
    """How many programs load the same bytes."""
    by_block: bool = False
    """Whether a program needs only the blocks of its own rows."""
    in_turn: bool = True
    """Whether a program visits all ranks of that loop; on the grid each visits one."""

    @property
    def visits_sources(self) -> bool:
        """Whether a program reads from one source after another."""
        return self.by_source and self.in_turn


@dataclass(frozen=True)
class LaunchNode:
    """One node on the launch grid: a kernel has one, a persistent kernel several."""

    name: str
    work: KernelWork
    intermediates: float = 0
    """Those of `work.moved.device` that are values between kernels."""
    copies: bool = False
    """Whether it moves data and computes nothing."""
    counts: bool = False
    """Whether it reads the epoch, which determines the slots of receive buffers."""
    merges: bool = False
    """Whether the last programs of the previous node to arrive run it."""
    sends: tuple[Send, ...] = ()
    receives: tuple[Receive, ...] = ()


@dataclass(frozen=True)
class Launch:
    """One kernel."""

    name: str
    nodes: tuple[LaunchNode, ...]
    signalled_inputs: tuple[str, ...] = ()
    """Channels of inputs in symmetric memory whose flags its first program sets."""


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
    """None for the fastest."""


@dataclass(frozen=True)
class Clear:
    """Memory is made 0, for a kernel that adds to it."""

    name: str
    size: float
    """Bytes."""


@dataclass(frozen=True)
class Barrier:
    """A barrier of all ranks, after which all earlier stores have arrived."""

    name: str = "barrier"


Step: TypeAlias = "Launch | LibraryCollective | Clear | Barrier"

Plan: TypeAlias = "tuple[Step, ...]"

SegmentKind = Literal[
    "launch", "busy", "locality", "communication", "wait", "barrier", "signal"
]
"""The kind of a segment in the timeline of a rank."""


def in_place(plan: Plan) -> Plan:
    """
    Return the plan if the caller keeps its inputs in symmetric memory.

    Without the kernels that only copy an input for peers to pull, and without the
    signals and waits of inputs: the caller has a barrier before the launch.
    """
    launches = [step for step in plan if isinstance(step, Launch)]
    staged = {
        send.channel
        for step in launches
        if _stages_inputs(step)
        for node in step.nodes
        for send in node.sends
    }
    staged |= {channel for step in launches for channel in step.signalled_inputs}
    steps: list[Step] = []
    for step in plan:
        if not isinstance(step, Launch):
            steps.append(step)
        elif not _stages_inputs(step):
            nodes = (_without_waits(node, staged) for node in step.nodes)
            steps.append(replace(step, nodes=tuple(nodes), signalled_inputs=()))
    return tuple(steps)


def _stages_inputs(step: Launch) -> bool:
    """Whether a kernel only copies inputs for peers to pull."""
    return all(
        node.copies
        and node.sends
        and all(send.of_input and not send.remote for send in node.sends)
        for node in step.nodes
    )


def _without_waits(node: LaunchNode, channels: set[str]) -> LaunchNode:
    receives = (
        replace(r, waits=r.waits and r.channel not in channels) for r in node.receives
    )
    used = {message.channel for message in (*node.sends, *node.receives)}
    counts = node.counts and not used <= channels
    return replace(node, receives=tuple(receives), counts=counts)
