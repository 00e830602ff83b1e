"""
Timelines as a trace for Perfetto and Chrome: a process for each plan, a row for each
rank.

The format is the Trace Event Format: complete events with a start and a duration in
microseconds, and metadata events that name processes and rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from comet.cost.gpu.taxes import TIME_KIND
from comet.cost.gpu.timeline import Segment, Timeline

Event: TypeAlias = "dict[str, str | int | float | dict[str, str]]"


def trace_of(timelines: Mapping[str, Timeline]) -> dict[str, list[Event] | str]:
    """Return the trace of plans by name, ready to be written as JSON."""
    events: list[Event] = []
    for process, (name, timeline) in enumerate(timelines.items()):
        events.append(_name("process_name", process, 0, name))
        for rank in range(timeline.ranks):
            events.append(_name("thread_name", process, rank, f"rank {rank}"))
        events += _events(timeline, process)
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _events(timeline: Timeline, process: int) -> Iterator[Event]:
    for segment in timeline.segments:
        start = _nanoseconds(segment.start)
        end = _nanoseconds(segment.start + segment.seconds)
        if end > start:
            yield _event(segment, process, start, end)


def _event(segment: Segment, process: int, start: int, end: int) -> Event:
    what = segment.part or segment.step
    if segment.kind != "busy":
        what = f"{what}: {segment.kind}"
    return {
        "name": what,
        "cat": segment.kind,
        "ph": "X",
        "ts": start / 1000,
        "dur": (end - start) / 1000,
        "pid": process,
        "tid": segment.rank,
        "args": {"step": segment.step, "counts as": TIME_KIND[segment.kind]},
    }


def _name(kind: str, process: int, row: int, name: str) -> Event:
    return {
        "name": kind,
        "ph": "M",
        "pid": process,
        "tid": row,
        "args": {"name": name},
    }


def _nanoseconds(seconds: float) -> int:
    """Round, so that one event ends exactly where the next one starts."""
    return round(seconds * 1e9)
