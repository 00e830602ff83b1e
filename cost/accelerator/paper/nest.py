"""
One execution of one node: transfers that overlap with the work below it.

Transfers that take longer than the work of their iteration stall it. The first read is
the fill, the last write the drain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from comet.cost.accelerator.flow import Flow
from comet.cost.accelerator.hardware import Hardware, Memory
from comet.cost.accelerator.noc import Crossing, hops_to, network_cycles
from comet.cost.accelerator.volume import Route, Transfer, memory_cycles, transfer_kind
from comet.cost.reals import Real, add_to, choose, larger, longest, times, total

Ports: TypeAlias = Mapping[tuple[str, int], Real]
"""Busy cycles by level and port; 0 reads, 1 writes; a unit is busy on port 0."""

READ, WRITE = 0, 1


@dataclass(frozen=True)
class Stream:
    """A flow with its times, in cycles."""

    flow: Flow
    hidden: bool
    """Whether transfers may overlap with the work below."""
    first: Real
    """One transfer, network included."""
    further: Real
    """Each further transfer; a contiguous DMA has the network latency only once."""

    @property
    def port(self) -> int:
        """The port of the source level."""
        return WRITE if self.flow.writes else READ

    @property
    def busy(self) -> Real:
        """Cycles of all transfers of one execution."""
        return self.first + (self.flow.moves - 1) * self.further


@dataclass(frozen=True)
class NestCost:
    """One execution of a node, in cycles."""

    work: Real
    """The work below, all iterations."""
    fill: Real
    """The first reads."""
    drain: Real
    """The last writes."""
    forced: Real
    """Stalls of streams that may not overlap."""
    stalls: Real
    """Stalls of streams that overlap but take longer than the work."""
    saved: Real = 0.0
    """First reads below that reuse saves; `work` is without them."""

    @property
    def cycles(self) -> Real:
        """The whole execution."""
        return self.work + self.fill + self.drain + self.forced + self.stalls


def stream_of(hardware: Hardware, flow: Flow, *, hidden: bool) -> Stream:
    """Return a flow with its times; raises `CostError` if no link joins its levels."""
    entry = flow.entry
    route = Route.of(hardware, entry.source, entry.destination)
    transfer = Transfer(
        flow.size,
        flow.unique,
        flow.spatial,
        flow.element_bytes,
        flow.writes,
        flow.accumulates,
    )
    memory = memory_cycles(route, transfer, ported=False)
    crossing = Crossing(
        transfer_kind(flow.writes, 2),
        hops_to(route.network, flow.spatial),
        flow.size,
        flow.spatial,
        flow.element_bytes,
    )
    cycles = network_cycles(route.network, crossing)
    network = choose(np.equal(flow.spatial, 1), 0.0, cycles)
    further = memory if route.source.contiguous else memory + network
    return Stream(flow, hidden, memory + network, further)


def nest_cost(
    hardware: Hardware,
    streams: Sequence[Stream],
    iterations: Real,
    work: Real,
    shared: Ports,
) -> NestCost:
    """
    Return the cost of one execution of a node whose iterations take `work` cycles.

    `shared` has the cycles per iteration for which the far ends of the streams are busy
    with other transfers on the same ports.
    """
    window = work / iterations
    gaps = larger(iterations - 1, 1)
    free = {key: larger(window - busy, 0.0) for key, busy in shared.items()}
    all_free = larger(window, 0.0)
    loads = [_Load.of(s, gaps, all_free, free) for s in streams]
    levels = [
        _phases([ld for ld in loads if ld.level == level], hardware.level(level).memory)
        for level in dict.fromkeys(ld.level for ld in loads)
    ]
    several = np.greater(iterations, 1)
    stalls = np.where(several, _over([p.whole for p in levels], iterations), 0.0)
    forced = np.where(several, _over([p.forced for p in levels], iterations), 0.0)
    fill = longest(total(s.first for s in group) for group in _by_level(streams, READ))
    drain = longest(
        total(s.first for s in group) for group in _by_level(streams, WRITE)
    )
    return NestCost(work, fill, drain, forced, stalls - forced)


Three: TypeAlias = tuple[Real, Real, Real]
"""Stalls of the first iteration, of one in the middle, and of the last."""


@dataclass(frozen=True)
class _Load:
    """The use of a port by one stream in one iteration, without fill and drain."""

    level: str
    port: int
    hidden: bool
    cycles: Real
    window: Real
    """Cycles of the iteration in which the far end of the stream is free."""

    @classmethod
    def of(cls, stream: Stream, gaps: Real, all_free: Real, free: Ports) -> _Load:
        """
        The load of a stream: all but one of its transfers, over the gaps.

        `free` has the windows of the ports that are busy, `all_free` is that of others.
        """
        entry = stream.flow.entry
        return cls(
            entry.source,
            stream.port,
            stream.hidden,
            (stream.flow.moves - 1) * stream.further / gaps,
            free.get((entry.destination, stream.port), all_free),
        )


@dataclass(frozen=True)
class _Phases:
    """Stalls at one level."""

    forced: Three
    whole: Three


def _phases(loads: Sequence[_Load], memory: Memory) -> _Phases:
    """
    Return the stalls at one level.

    The first iteration only reads ahead, the last one only writes back. In the others
    both ports work at the same time and the slower one counts; on one bus they add up.
    """
    reads = [load for load in loads if load.port == READ]
    writes = [load for load in loads if load.port == WRITE]
    forced_read, forced_write = _forced(reads), _forced(writes)
    read, write = forced_read + _excess(reads), forced_write + _excess(writes)
    if memory.one_bus:
        forced_middle = forced_read + forced_write
        middle = forced_middle + _excess(loads)
    else:
        forced_middle = larger(forced_read, forced_write)
        middle = larger(read, write)
    return _Phases((forced_read, forced_middle, forced_write), (read, middle, write))


def _over(levels: Sequence[Three], iterations: Real) -> Real:
    """Stalls of all iterations, each as long as at the slowest level."""
    first = longest(level[0] for level in levels)
    middle = longest(level[1] for level in levels)
    last = longest(level[2] for level in levels)
    return first + last + larger(iterations - 2, 0.0) * middle


def _by_level(streams: Sequence[Stream], port: int) -> list[list[Stream]]:
    """The streams of a port, level by level."""
    groups: dict[str, list[Stream]] = {}
    for stream in streams:
        if stream.port == port:
            groups.setdefault(stream.flow.entry.source, []).append(stream)
    return list(groups.values())


def _forced(loads: Sequence[_Load]) -> Real:
    return total(load.cycles for load in loads if not load.hidden)


def _excess(loads: Sequence[_Load]) -> Real:
    """
    Return by how much the transfers that may overlap exceed the iteration.

    Transfers with the shortest windows are first (earliest deadline first): each must
    finish in its window, together with all those of windows that are not longer.
    """
    hidden = [load for load in loads if load.hidden]
    windows = {id(load.window): load.window for load in hidden}
    return longest(
        total(
            load.cycles
            if load.window is window
            else load.cycles * np.less_equal(load.window, window)
            for load in hidden
        )
        - window
        for window in windows.values()
    )


def add_ports(parts: Sequence[tuple[Ports, Real]]) -> dict[tuple[str, int], Real]:
    """The sum of port uses, each times a count."""
    sums: dict[tuple[str, int], Real] = {}
    for ports, count in parts:
        for key, busy in ports.items():
            add_to(sums, key, times(busy, count))
    return sums


def used_ports(streams: Sequence[Stream]) -> dict[tuple[str, int], Real]:
    """Busy cycles of the source ports of a node's streams, one execution."""
    parts: list[tuple[Ports, Real]] = [
        ({(s.flow.entry.source, s.port): s.busy}, 1.0) for s in streams
    ]
    return add_ports(parts)
