"""
The three taxes of a launch plan: time that is not spent on computing.

* launch: starting kernels;
* synchronization: barriers, waiting for other ranks, flags, and communication that
  computation does not hide (the bulk-synchronous tax);
* locality: storing intermediates to device memory and loading them.

Source: arXiv 2511.02168. Every moment of every rank is exactly one of these or
computing, so they add up to the latency. Times are seconds, means over the ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from comet.cost.gpu.launch_plan import Machine, Plan, SegmentKind
from comet.cost.gpu.timeline import Segment, Timeline, play

TimeKind: TypeAlias = Literal["busy", "launch", "synchronization", "locality"]
"""The kinds of time that taxes distinguish."""

TIME_KIND: Mapping[SegmentKind, TimeKind] = {
    "launch": "launch",
    "busy": "busy",
    "locality": "locality",
    "communication": "synchronization",
    "wait": "synchronization",
    "barrier": "synchronization",
    "signal": "synchronization",
}
"""The kind of time of each kind of segment."""


@dataclass(frozen=True)
class Taxes:
    """The time of a plan, or of one step of it, divided into computing and taxes."""

    busy: float = 0.0
    launch: float = 0.0
    synchronization: float = 0.0
    locality: float = 0.0

    @property
    def taxes(self) -> float:
        """The sum of the three."""
        return self.launch + self.synchronization + self.locality

    @property
    def total(self) -> float:
        """Computing and taxes: of a whole plan, its latency."""
        return self.busy + self.taxes

    @property
    def bound(self) -> str:
        """The name of the largest part, computing included, as tables print it."""
        parts = {
            "kernels": self.busy,
            "launch": self.launch,
            "synchronization": self.synchronization,
            "intermediates": self.locality,
        }
        return max(parts, key=lambda name: parts[name])


@dataclass(frozen=True)
class PlanTime:
    """The time of launch plans."""

    seconds: float
    bound: str = ""
    """The name of its largest part, empty if that is not known."""

    def __float__(self) -> float:
        return self.seconds


def taxes_of(segments: Iterable[Segment], ranks: int) -> Taxes:
    """Return the sums over segments, divided by the number of ranks."""
    sums: dict[TimeKind, float] = dict.fromkeys(TIME_KIND.values(), 0.0)
    for segment in segments:
        sums[TIME_KIND[segment.kind]] += segment.seconds / ranks
    return Taxes(**sums)


def taxes_by_step(timeline: Timeline) -> dict[str, Taxes]:
    """Return the taxes of each step by name, in order of first appearance."""
    steps: dict[str, list[Segment]] = {}
    for segment in timeline.segments:
        steps.setdefault(segment.step, []).append(segment)
    return {
        name: taxes_of(segments, timeline.ranks) for name, segments in steps.items()
    }


def price_plan(plan: Plan, machine: Machine) -> Taxes:
    """
    Return the taxes of a plan.

    Raises `CostError` as `play` does.
    """
    timeline = play(plan, machine)
    return taxes_of(timeline.segments, timeline.ranks)
