"""
Timelines as a trace for Perfetto and Chrome: a process for each program, with rows.

The format is the Trace Event Format: complete events with a start and a duration in
microseconds, by their start, and metadata events that name processes and rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from comet.cost.gpu.taxes import TIME_KIND
from comet.cost.gpu.timeline import Segment, Timeline

Details: TypeAlias = "Mapping[str, str | int | float]"

Event: TypeAlias = "dict[str, str | int | float | Details]"


@dataclass(frozen=True)
class Slice:
    """Something that takes time."""

    name: str
    kind: str
    start: float
    """Microseconds since the start of the run; or cycles, shown as microseconds."""
    length: float
    """In the same unit."""
    row: int
    """Slices of one row follow each other, or are nested."""
    details: Details = field(default_factory=dict[str, "str | int | float"])
    """Further details of the slice, which a viewer shows."""


@dataclass(frozen=True)
class Process:
    """The slices of one program."""

    name: str
    slices: Sequence[Slice]
    rows: Mapping[int, str] = field(default_factory=dict[int, str])
    """Names of rows."""


def process_of(name: str, timeline: Timeline) -> Process:
    """Return the timeline of a launch plan, with a row for each rank."""
    ranks = {rank: f"rank {rank}" for rank in range(timeline.ranks)}
    return Process(name, tuple(map(_slice, timeline.segments)), ranks)


def _slice(segment: Segment) -> Slice:
    what = segment.node or segment.step
    return Slice(
        what if segment.kind == "busy" else f"{what}: {segment.kind}",
        segment.kind,
        segment.start * 1e6,
        segment.seconds * 1e6,
        segment.rank,
        {"step": segment.step, "counts as": TIME_KIND[segment.kind]},
    )


def trace_of(processes: Sequence[Process]) -> dict[str, list[Event] | str]:
    """Return the trace of programs, ready to be written as JSON."""
    named: list[Event] = []
    timed: list[Event] = []
    for number, process in enumerate(processes):
        named.append(_name("process_name", number, 0, process.name))
        for row, name in process.rows.items():
            named.append(_name("thread_name", number, row, name))
        timed += _events(process, number)
    timed.sort(key=_by_start)
    return {"traceEvents": named + timed, "displayTimeUnit": "ns"}


def _by_start(event: Event) -> tuple[object, ...]:
    """
    Return a sort key: by start, and of slices with the same start the longest first.
    """
    length = event["dur"]
    assert isinstance(length, float)
    return event["ts"], -length


def _events(process: Process, number: int) -> Iterator[Event]:
    for slice_ in process.slices:
        start = _thousandths(slice_.start)
        end = _thousandths(slice_.start + slice_.length)
        if end > start:
            yield {
                "name": slice_.name,
                "cat": slice_.kind,
                "ph": "X",
                "ts": start / 1000,
                "dur": (end - start) / 1000,
                "pid": number,
                "tid": slice_.row,
                "args": slice_.details,
            }


def _name(kind: str, process: int, row: int, name: str) -> Event:
    return {"name": kind, "ph": "M", "pid": process, "tid": row, "args": {"name": name}}


def _thousandths(time: float) -> int:
    """Round, so that one event ends exactly where the next one starts."""
    return round(time * 1000)
