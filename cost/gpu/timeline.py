"""
Simulates a launch plan on all ranks: what each rank does, and when.

The kernels of a rank run one after another, each after its launch; the nodes of a
kernel, too, or side by side if none waits for another. No rank passes a
barrier before all have reached it. The programs of a consumer visit the source ranks,
their own first, and wait for tiles that have not arrived, while other programs of the
wave continue. Kernels take a little longer on one rank than on another: each rank is
the slowest in turn.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from comet.cost.collectives.algorithms import cheapest, collective_time
from comet.cost.estimate import CostError
from comet.cost.gpu.interconnect import (
    body_time,
    remote_traffic,
    send_time,
    source_waiting,
)
from comet.cost.gpu.kernel import (
    kernel_time,
    occupancy_of,
    waiting_time,
    wave_count,
)
from comet.cost.gpu.launch_plan import (
    Barrier,
    Clear,
    Launch,
    LaunchNode,
    LibraryCollective,
    Machine,
    Plan,
    Receive,
    SegmentKind,
    Send,
    Step,
)
from comet.cost.gpu.shared_launch import merging_time, running_time
from comet.recent import Recent

MAX_WAVES = 8
"""The most waves, and groups of rows, that are simulated; more are merged."""

MOST_TIMED = 512
"""Kernels whose times are remembered: the plans of a search have most in common."""

_TIMES = Recent[Hashable, Sequence["NodeTime"]](MOST_TIMED)
"""The times of the nodes of kernels, by the GPUs and the launch."""


@dataclass(frozen=True)
class Segment:
    """An activity of one rank over some time, in seconds."""

    rank: int
    step: str
    node: str
    """The node of a kernel; empty if it is not the work of one."""
    kind: SegmentKind
    start: float
    seconds: float


@dataclass(frozen=True)
class Timeline:
    """The segments of all ranks; those of a rank have no gaps between them."""

    ranks: int
    latency: float
    """Seconds until the last rank has finished."""
    segments: tuple[Segment, ...]


@dataclass(frozen=True)
class NodeTime:
    """The seconds of one node without waits, by what they are spent on."""

    busy: float
    communication: float
    """The seconds that loads from peers add; of a copy, all seconds of moving data."""
    locality: float
    """The seconds that loads and stores of intermediates add."""
    waves: int
    exchange: float = 0.0
    """Waiting for values of other programs of the same GPU."""

    @property
    def seconds(self) -> float:
        """The sum, without exchanges."""
        return self.busy + self.communication + self.locality

    def scaled(self, fraction: float) -> NodeTime:
        """Return a fraction of the time."""
        return replace(
            self,
            busy=fraction * self.busy,
            communication=fraction * self.communication,
            locality=fraction * self.locality,
            exchange=fraction * self.exchange,
        )


def node_time(node: LaunchNode, machine: Machine) -> NodeTime:
    """
    Return the time of a node, by what it is spent on.

    Intermediates and remote loads count by the time that they add: bytes that move
    while the kernel computes add none. Raises `CostError` if the device has no rate for
    the kernel, or if a program does not fit.
    """
    device, net = machine.device, machine.net
    work = node.work
    time = kernel_time(work, device)
    slots = device.multiprocessors * occupancy_of(work, device)
    waves = wave_count(work.programs, slots)
    near, link = waiting_time(work, device), 0.0
    if any(receive.visits_sources for receive in node.receives):
        near = source_waiting(work, device, net, remote=False)
    local = remote = kernel_time(work, device, near)
    for receive in node.receives:
        if not receive.remote or net.ranks == 1:
            continue
        away = waiting_time(work, device, net.load_latency)
        if receive.visits_sources:
            away = source_waiting(work, device, net, remote=True)
        remote = kernel_time(work, device, away)
        moved = remote_traffic(receive.message, receive.again, waves, net)
        link += float(moved) / net.rate(1 if receive.visits_sources else net.peers)
    if not np.all(np.greater(time.fits, 0)):
        raise CostError(
            f"a program of {node.name} does not fit a multiprocessor; choose smaller "
            "tiles"
        )
    device_bytes = work.moved.device - node.intermediates
    external = replace(work, moved=replace(work.moved, device=device_bytes))
    busy = float(body_time(kernel_time(external, device, near)))
    base, seconds = float(body_time(local)), float(body_time(remote, link))
    if node.copies:
        return NodeTime(0.0, seconds - (base - busy), base - busy, int(waves))
    exchange = float(time.exchange) + (device.times.exchange if node.merges else 0.0)
    return NodeTime(busy, seconds - base, base - busy, int(waves), exchange)


def node_times(step: Launch, machine: Machine) -> list[NodeTime]:
    """
    Return the times of the nodes of a kernel, which follow each other.

    Nodes of which none waits for others run side by side, and so do those that merge
    what these store: each then has its part of the time of all. Raises `CostError` as
    `node_time` does.
    """
    times = [node_time(node, machine) for node in step.nodes]
    if any(node.counts for node in step.nodes):
        return times
    for merges, price in ((False, running_time), (True, merging_time)):
        works = [node.work for node in step.nodes if node.merges is merges]
        if len(works) > 1:
            alone = sum(
                time.seconds + time.exchange
                for node, time in zip(step.nodes, times, strict=True)
                if node.merges is merges
            )
            fraction = float(price(works, machine.device)) / alone
            times = [
                time.scaled(fraction) if node.merges is merges else time
                for node, time in zip(step.nodes, times, strict=True)
            ]
    return times


def exchange_time(step: LibraryCollective, machine: Machine) -> float:
    """Return the seconds of a collective; raises `CostError` as `algorithms` does."""
    fabric = machine.net.fabric
    if step.algorithm is None:
        return cheapest(step.kind, fabric, step.size)[1]
    return float(collective_time(step.kind, step.algorithm, fabric, step.size))


@dataclass(frozen=True)
class _Arrival:
    """When the tiles of one sender are in its own memory, and at its peers."""

    start: float
    stored: float
    """Seconds from `start` until the sender has computed and stored all tiles."""
    sent: float
    """Seconds from `start` until the links have transferred them, at least `stored`."""
    blocks: int
    delay: float
    """Seconds until the last bytes, and their flag, are at a peer."""

    def at(self, share: float, *, local: bool) -> float:
        """Return when this fraction of the message has arrived and is signalled."""
        done = ceil(share * self.blocks) / self.blocks
        if local:
            return self.start + self.stored * done
        return self.start + self.sent * done + self.delay


class _Player:
    """The state of a simulation: a clock for each rank, and the arrivals so far."""

    def __init__(self, machine: Machine):
        self.machine, self._gpus = machine, str(machine)
        self.ranks = range(machine.net.ranks)
        self.clocks = [0.0 for _ in self.ranks]
        self.segments: list[Segment] = []
        self.arrivals: dict[str, list[_Arrival]] = {}
        self.links = [0.0 for _ in self.ranks]
        """When the links of each rank have transferred all that it sent so far."""
        self.step, self.node = "", ""
        self.kernels = 0

    def play(self, step: Step) -> None:
        """Simulate one step on all ranks."""
        self.step, self.node = step.name, ""
        match step:
            case Launch():
                self._launch(step)
            case LibraryCollective():
                self._exchange(step)
            case Clear():
                self._all_spend("launch", self.machine.launch)
                self._all_spend(
                    "busy", step.size / self.machine.device.memory.hbm_bandwidth
                )
            case Barrier():
                self.meet()
                self._all_spend("barrier", self.machine.net.barrier)

    def meet(self) -> None:
        """Let all ranks wait for the last one, as at a barrier."""
        last = max(self.clocks)
        for rank in self.ranks:
            self.wait(rank, last)

    def wait(self, rank: int, until: float) -> None:
        """Let a rank wait until a time."""
        self.spend(rank, "wait", until - self.clocks[rank])

    def spend(self, rank: int, kind: SegmentKind, seconds: float) -> None:
        """Advance the clock of a rank, and record on what it spent the time."""
        if seconds > 0:
            start = self.clocks[rank]
            found = Segment(rank, self.step, self.node, kind, start, seconds)
            self.segments.append(found)
            self.clocks[rank] = start + seconds

    def _all_spend(self, kind: SegmentKind, seconds: float) -> None:
        for rank in self.ranks:
            self.spend(rank, kind, seconds)

    def _exchange(self, step: LibraryCollective) -> None:
        """Simulate a library's collective, which starts when all ranks have arrived."""
        self._all_spend("launch", self.machine.launch)
        self.meet()
        sent = exchange_time(step, self.machine)
        copied = step.intermediates / self.machine.device.memory.hbm_bandwidth
        self._all_spend("locality", copied)
        self._all_spend("communication", sent - copied)

    def _launch(self, step: Launch) -> None:
        """Simulate a kernel; it ends when its stores have arrived."""
        self._all_spend("launch", self.machine.launch)
        for channel in step.signalled_inputs:
            self._signal_input(channel)
        drained = list(self.clocks)
        times = self._node_times(step)
        for node, time in zip(step.nodes, times, strict=True):
            self.node = node.name
            for rank in self.ranks:
                begin = self.clocks[rank]
                self._run(node, time, rank)
                sent = self._send(node, time, rank, begin)
                drained[rank] = max(drained[rank], sent)
            self.kernels += 1
        for rank in self.ranks:
            self.spend(rank, "communication", drained[rank] - self.clocks[rank])

    def _node_times(self, step: Launch) -> Sequence[NodeTime]:
        """Return `node_times` of a kernel, which are computed once for equal ones."""
        if (known := _TIMES.get((self._gpus, step))) is not None:
            return known
        return _TIMES.keep((self._gpus, step), node_times(step, self.machine))

    def _slowness(self, rank: int) -> float:
        """Return the time of the current kernel on a rank, over that on the fastest."""
        ranks = len(self.ranks)
        position = (rank + self.kernels) % ranks / max(ranks - 1, 1)
        return 1 + self.machine.skew * position

    def _run(self, node: LaunchNode, time: NodeTime, rank: int) -> None:
        """Simulate a node on one rank, wave by wave; those that are ready run first."""
        waves = max(1, min(time.waves, MAX_WAVES))
        task = _Task(self, rank)
        if node.counts:
            task.add("signal", time.waves * self.machine.device.times.flag_latency)
        task.add("signal", time.exchange)
        for wave in range(waves):
            chunks = sorted(self._chunks(node, rank, wave, waves))
            share = self._slowness(rank) / (waves * len(chunks))
            for release, polling in chunks:
                task.wait(release)
                task.add("signal", polling)
                task.add("busy", share * time.busy)
                task.add("communication", share * time.communication)
                task.add("locality", share * time.locality)
        task.flush()

    def _chunks(
        self, node: LaunchNode, rank: int, wave: int, waves: int
    ) -> Iterator[tuple[float, float]]:
        """
        Yield the equal chunks of a wave's work: one for each source and group of rows.

        Each has the time when it may start, and the seconds that programs read flags.
        """
        waited = list(_waited(node))
        by_source = any(receive.by_source for receive in node.receives)
        turns = len(self.ranks) if by_source else 1
        blocks = max((self._blocks(r) for r in waited if r.by_block), default=1)
        groups = ceil(min(blocks, MAX_WAVES) / waves)
        for turn in range(turns):
            for group in range(groups):
                rows = (wave + (group + 1) / groups) / waves
                releases = [self._release(r, rank, turn, rows) for r in waited]
                flags = sum(turn == 0 or receive.by_source for receive in waited)
                polling = flags * self.machine.device.times.flag_latency / groups
                yield max(releases, default=0.0), polling

    def _blocks(self, receive: Receive) -> int:
        return max(arrival.blocks for arrival in self._arrivals(receive))

    def _release(self, receive: Receive, rank: int, turn: int, rows: float) -> float:
        """Return when the needed tiles of one source, or of all, have arrived."""
        arrivals = self._arrivals(receive)
        needed = rows if receive.by_block else 1.0
        ranks = len(self.ranks)
        sources = [(rank + turn) % ranks] if receive.by_source else list(self.ranks)
        return max(arrivals[s].at(needed, local=s == rank) for s in sources)

    def _arrivals(self, receive: Receive) -> list[_Arrival]:
        if (arrivals := self.arrivals.get(receive.channel)) is None:
            raise CostError(
                f"{self.step} waits for channel {receive.channel}, to which no earlier "
                "kernel sends; launch the producer first"
            )
        return arrivals

    def _send(self, node: LaunchNode, time: NodeTime, rank: int, begin: float) -> float:
        """Record when a node's messages arrive; return when its last store arrives."""
        done, net = self.clocks[rank], self.machine.net
        link = sum(_link_time(send, node, self.machine) for send in node.sends)
        if link > 0:  # behind what an earlier node of the kernel sent
            self.links[rank] = max(self.links[rank], begin) + link
            link = self.links[rank] - begin
        for send in node.sends:
            stored = self.clocks[rank] - begin
            flight = net.latency if send.remote else 0.0
            sent = max(stored, link)
            signalled = net.signal if send.signals else 0.0
            arrival = _Arrival(begin, stored, sent, send.blocks, flight + signalled)
            self.arrivals.setdefault(send.channel, []).append(arrival)
            done = max(done, begin + sent + flight)
        for send in node.sends:
            if send.signals:
                self._signal(send, time, rank)
        return done

    def _signal_input(self, channel: str) -> None:
        """
        Record when the flags of an input are set that peers load in place.

        One program reads the epoch and sets the flags of all ranks, its own first.
        """
        net, device = self.machine.net, self.machine.device
        begun = 2 * device.times.flag_latency
        first, last = (begun + n * device.times.iteration for n in (1, net.ranks))
        self.arrivals[channel] = [
            _Arrival(clock, first, last, 1, net.signal) for clock in self.clocks
        ]

    def _signal(self, send: Send, time: NodeTime, rank: int) -> None:
        """Spend the sender's time for the fence after its stores, and for the flags."""
        net, device = self.machine.net, self.machine.device
        fence = net.latency if send.remote else device.times.flag_latency
        seconds = fence + net.peers * device.times.iteration
        self.spend(rank, "signal", time.waves * seconds)


def _waited(node: LaunchNode) -> Iterator[Receive]:
    """Yield the messages that a node waits for, once for each set of flags."""
    seen: set[tuple[str, bool, bool]] = set()
    for receive in node.receives:
        key = (receive.channel, receive.by_source, receive.by_block)
        if receive.waits and key not in seen:
            seen.add(key)
            yield receive


def _link_time(send: Send, node: LaunchNode, machine: Machine) -> float:
    """Return the seconds that the links transfer a node's tiles and flags."""
    flags = float(node.work.programs) * machine.net.flag_bytes if send.signals else 0.0
    tiles = send.message if send.remote else 0.0
    return float(send_time(tiles + flags, machine.net))


class _Task:
    """The work of a node on one rank; between two waits, one segment for each kind."""

    def __init__(self, player: _Player, rank: int):
        self.player, self.rank = player, rank
        self.pending: dict[SegmentKind, float] = {}

    def add(self, kind: SegmentKind, seconds: float) -> None:
        """Add work, which is recorded at the next wait."""
        self.pending[kind] = self.pending.get(kind, 0.0) + seconds

    def wait(self, until: float) -> None:
        """Wait until a time, unless the work so far takes longer."""
        if until > self.player.clocks[self.rank] + sum(self.pending.values()):
            self.flush()
            self.player.wait(self.rank, until)

    def flush(self) -> None:
        """Record the work since the last wait."""
        for kind, seconds in self.pending.items():
            self.player.spend(self.rank, kind, seconds)
        self.pending.clear()


def play(plan: Plan, machine: Machine) -> Timeline:
    """
    Simulate a plan on all ranks.

    Raises `CostError` if the device has no rate for a kernel, a program does not fit,
    or a kernel waits for a channel to which no earlier kernel sends.
    """
    player = _Player(machine)
    for step in plan:
        player.play(step)
    player.meet()
    segments = tuple(_merged(player.segments))
    return Timeline(machine.net.ranks, max(player.clocks), segments)


def _merged(segments: Sequence[Segment]) -> Iterator[Segment]:
    """Join successive segments of one kind on a rank."""
    by_rank: Mapping[int, list[Segment]] = {s.rank: [] for s in segments}
    for segment in segments:
        row = by_rank[segment.rank]
        last = row[-1] if row else None
        if last is not None and _continues(segment, last):
            row[-1] = replace(last, seconds=last.seconds + segment.seconds)
        else:
            row.append(segment)
    for row in by_rank.values():
        yield from row


def _continues(segment: Segment, last: Segment) -> bool:
    what, before = ((s.step, s.node, s.kind) for s in (segment, last))
    return what == before
