"""
The stalls of streams that share ports, as the COMET tool counts them.

Streams of one level and port run one after the other: each uses up the windows of the
others. The cycles beyond its window are a stall of that iteration; a stream that may
not overlap stalls for all its cycles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.tool.streams import Cycles, Stream, u32

PortUsage: TypeAlias = Mapping[tuple[str, int], int]
"""Cycles a level's port is busy with other transfers, by level and port."""


@dataclass
class PortRecord:
    """One port of one level during one execution of a node."""

    stalls: Cycles
    forced: Cycles
    """Stalls of streams that may not overlap."""
    compute: int = 0
    ramp_up: int = 0
    ramp_down: int = 0
    busy: int = 0


LevelRecords: TypeAlias = dict[str, tuple[PortRecord, PortRecord]]
"""Read and write port records by level, in level rank order."""


@dataclass(frozen=True)
class NodeTotals:
    """One execution of a node for one group of children."""

    ramp_up: int
    ramp_down: int
    compute: int
    stalls: Cycles

    @property
    def cycles(self) -> int:
        """The whole execution, modulo 2^32."""
        return u32(
            self.compute + self.ramp_up + self.ramp_down + int(self.stalls.sum())
        )


@dataclass
class _Slot:
    """A stream with what other streams leave of its windows."""

    stream: Stream
    windows: Cycles


def blank(iterations: int) -> tuple[PortRecord, PortRecord]:
    """Empty records of both ports."""

    def port() -> PortRecord:
        return PortRecord(
            np.zeros(iterations, dtype=np.int64), np.zeros(iterations, dtype=np.int64)
        )

    return port(), port()


def merge_streams(
    hardware: Hardware, streams: Sequence[Stream], iterations: int, usage: PortUsage
) -> LevelRecords:
    """
    Return the port records of a node, levels in rank order.

    `usage` has the cycles for which the ports of the levels are busy below.
    """
    rank = hardware.rank
    ordered = sorted(
        streams, key=lambda s: (rank[s.source], rank[s.destination], s.port)
    )
    slots = [_Slot(s, _windows(hardware, s, usage)) for s in ordered]
    records: LevelRecords = {}
    for slot in slots:
        stream = slot.stream
        if stream.source not in records:
            records[stream.source] = blank(iterations)
        record = records[stream.source][stream.port]
        record.ramp_up += stream.ramp_up
        record.ramp_down += stream.ramp_down
        record.compute = max(record.compute, stream.compute)
        record.busy += stream.busy
        others = [
            o
            for o in slots
            if o is not slot
            and (o.stream.source, o.stream.port) == (stream.source, stream.port)
        ]
        _charge(record, slot, others, iterations)
    return dict(sorted(records.items(), key=lambda item: rank[item[0]]))


def _windows(hardware: Hardware, stream: Stream, usage: PortUsage) -> Cycles:
    window = stream.window
    level = hardware.level(stream.destination)
    if usage and not level.is_unit and level.memory.shares_ports:
        window = max(0, window - usage.get((stream.destination, stream.port), 0))
    return np.full(stream.moves, window, dtype=np.int64)


def _charge(
    record: PortRecord, slot: _Slot, others: Sequence[_Slot], iterations: int
) -> None:
    """
    Add one stream's stalls to its port, and subtract its time from the windows of the
    port's other streams.
    """
    stream = slot.stream
    reuse, first = stream.reuse, stream.port
    count = min(iterations, stream.moves, len(stream.transfers))
    if count <= first:
        return
    times = stream.transfers[first:count]
    windows = slot.windows[first:count]
    part = times
    if reuse > 1:
        part, windows = times // reuse, windows // reuse
    excess = np.maximum(part - windows, 0)
    start, stop = first * reuse, min(count * reuse, iterations)
    spread = stop - start
    if not stream.hidden:
        record.forced[start:stop] += _repeat(times, reuse)[:spread]
    record.stalls[start:stop] += _repeat(excess, reuse)[:spread]
    if stream.hidden:
        for other in others:
            _take(other, start, _repeat(part, reuse))


def _repeat(values: Cycles, times: int) -> Cycles:
    return values if times == 1 else np.repeat(values, times)


def _take(other: _Slot, start: int, cycles: Cycles) -> None:
    """
    Subtract from the windows of `other` in consecutive iterations from `start`.
    """
    reuse = other.stream.reuse
    cycles = cycles[: max(0, len(other.windows) * reuse - start)]
    if not len(cycles):
        return
    first, last = start // reuse, (start + len(cycles) - 1) // reuse
    begins = np.maximum(np.arange(first, last + 1) * reuse - start, 0)
    windows = other.windows[first : last + 1]
    np.maximum(windows - np.add.reduceat(cycles, begins), 0, out=windows)


def fold_levels(records: LevelRecords, iterations: int) -> NodeTotals:
    """
    Return the totals of a node, given the records of its levels.

    Stalls of levels combine by maximum, but the write port of the first level replaces
    its read port (a defect of the tool: read stalls of single-level nodes disappear if
    there are writes).
    """
    stalls = np.zeros(iterations, dtype=np.int64)
    up = down = compute = 0
    for position, ports in enumerate(records.values()):
        for port, record in enumerate(ports):
            if record.compute == 0:
                continue
            up, down = max(up, record.ramp_up), max(down, record.ramp_down)
            compute = max(compute, record.compute)
            port_stalls = record.stalls[port:] + record.forced[port:]
            stalls[port:] = (
                port_stalls if position == 0 else np.maximum(stalls[port:], port_stalls)
            )
    return NodeTotals(up, down, compute, stalls)
