"""
One execution of one node: transfers that overlap with the work below it.

Per iteration a port moves each flow's data once per reuse; what exceeds the work of
that iteration is a stall. The first read fills, the last write drains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from comet.cost.flow import Flow
from comet.cost.hardware import Hardware
from comet.cost.noc import hops_to, network_cycles
from comet.cost.reals import Real
from comet.cost.volume import Route, Transfer, memory_cycles, transfer_kind

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
    """One further transfer: a contiguous engine pays the network once."""

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
    drain: Real
    forced: Real
    """Stalls of streams that must not overlap."""
    stalls: Real
    """Stalls of streams that overlap but take longer than the work."""

    @property
    def cycles(self) -> Real:
        """The whole execution."""
        return self.work + self.fill + self.drain + self.forced + self.stalls


def stream_of(hardware: Hardware, flow: Flow, *, hidden: bool) -> Stream:
    """A flow with its times; raises `CostError` where no link joins its levels."""
    entry = flow.entry
    route = Route.of(hardware, entry.source, entry.destination)
    transfer = Transfer(
        flow.size,
        flow.unique,
        flow.spatial,
        flow.element_bytes,
        flow.writes,
        entry.accumulates,
    )
    memory = memory_cycles(route, transfer, ported=False)
    kind = transfer_kind(flow.writes, 2)
    hops = hops_to(route.network, flow.spatial)
    network = network_cycles(
        kind,
        route.network,
        hops,
        flow.size,
        flow.spatial,
        flow.element_bytes,
        real=np.float64,
    )
    network = np.where(np.equal(flow.spatial, 1), 0.0, network)
    further = memory if route.source.contiguous else memory + network
    return Stream(flow, hidden, memory + network, further)


def nest_cost(
    streams: Sequence[Stream],
    iterations: Real,
    work: Real,
    shared: Ports,
) -> NestCost:
    """
    One execution of a node whose iterations take `work` cycles in all.

    `shared` tells how long, per iteration, the far ends of the streams are busy with
    other transfers on ports they share.
    """
    window = work / iterations
    gaps = np.maximum(iterations - 1, 1)
    loads = [(s.flow.moves - 1) * s.further / gaps for s in streams]
    forced = {port: _forced(streams, loads, port) for port in (READ, WRITE)}
    extra = {
        port: _excess(streams, loads, port, window, shared) for port in (READ, WRITE)
    }
    whole = {port: forced[port] + extra[port] for port in (READ, WRITE)}
    several = np.greater(iterations, 1)
    stalls = np.where(several, _over(whole, iterations), 0.0)
    charged = np.minimum(np.where(several, _over(forced, iterations), 0.0), stalls)
    return NestCost(
        work,
        _ramp(streams, READ),
        _ramp(streams, WRITE),
        charged,
        stalls - charged,
    )


def _over(per_iteration: Mapping[int, Real], iterations: Real) -> Real:
    """
    Stalls of all iterations: reads stall in all but the last, writes in all but the
    first, and where both do the longer one counts.
    """
    read, write = per_iteration[READ], per_iteration[WRITE]
    return read + write + np.maximum(iterations - 2, 0) * np.maximum(read, write)


def _levels(streams: Sequence[Stream], port: int) -> tuple[str, ...]:
    sources = (s.flow.entry.source for s in streams if s.port == port)
    return tuple(dict.fromkeys(sources))


def _ramp(streams: Sequence[Stream], port: int) -> Real:
    """The first (or last) transfers of the level where they add up to most."""
    longest: Real = 0.0
    for level in _levels(streams, port):
        total: Real = 0.0
        for s in streams:
            if s.port == port and s.flow.entry.source == level:
                total = total + s.first
        longest = np.maximum(longest, total)
    return longest


def _forced(streams: Sequence[Stream], loads: Sequence[Real], port: int) -> Real:
    longest: Real = 0.0
    for level in _levels(streams, port):
        total: Real = 0.0
        for s, load in zip(streams, loads, strict=True):
            if s.port == port and s.flow.entry.source == level and not s.hidden:
                total = total + load
        longest = np.maximum(longest, total)
    return longest


def _excess(
    streams: Sequence[Stream],
    loads: Sequence[Real],
    port: int,
    window: Real,
    shared: Ports,
) -> Real:
    """
    What one iteration's transfers of a port exceed its window by, at the worst level.

    Streams with the shortest windows go first: for each stream, all that have no longer
    a window than it must be done within it.
    """
    worst: Real = 0.0
    for level in _levels(streams, port):
        own = [
            (
                load,
                np.maximum(
                    window - shared.get((s.flow.entry.destination, port), 0.0), 0.0
                ),
            )
            for s, load in zip(streams, loads, strict=True)
            if s.port == port and s.flow.entry.source == level and s.hidden
        ]
        for _, limit in own:
            due: Real = 0.0
            for load, other in own:
                due = due + load * np.less_equal(other, limit)
            worst = np.maximum(worst, due - limit)
    return worst


def add_ports(parts: Sequence[tuple[Ports, Real]]) -> dict[tuple[str, int], Real]:
    """The sum of port uses, each times a count."""
    total: dict[tuple[str, int], Real] = {}
    for ports, count in parts:
        for key, busy in ports.items():
            total[key] = total.get(key, 0.0) + busy * count
    return total


def used_ports(streams: Sequence[Stream]) -> dict[tuple[str, int], Real]:
    """Busy cycles of the source ports of a node's streams, one execution."""
    parts: list[tuple[Ports, Real]] = [
        ({(s.flow.entry.source, s.port): s.busy}, 1.0) for s in streams
    ]
    return add_ports(parts)
