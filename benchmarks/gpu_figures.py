"""Reads figures off results, for tables and plots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gpu_run.case import OURS, Case, Group
from gpu_run.results import Alternative, Result, Results

BASE = "bsp"
"""The pattern that others are compared with."""

Condition: TypeAlias = Literal["cold", "warm", "eager", "graph"]


@dataclass(frozen=True)
class Ratio:
    """How much faster comet, or a pattern, is than something else in one case."""

    name: str
    """Of the alternative, or of the pattern."""
    case: Case
    value: float


def done_of(results: Results, group: Group) -> Iterator[tuple[Case, Result]]:
    """Yield the cases of a group of which something is known, in their order."""
    for case in results.manifest.cases:
        if case.group == group and case.id in results.done:
            yield case, results.done[case.id]


def median(found: Alternative, condition: Condition) -> float | None:
    """Return the median time in a condition, in seconds; None of a wrong result."""
    times = found.get("times", {})
    right = found.get("ok", True)
    return times[condition]["median"] if right and condition in times else None


def ratio_of(
    slower: Alternative, faster: Alternative, condition: Condition
) -> float | None:
    """Return how much longer one alternative takes than another."""
    first, second = median(slower, condition), median(faster, condition)
    return None if first is None or second is None else first / second


def one(found: Alternative, condition: Condition) -> str:
    """Return the median in a condition, in microseconds, or that it is missing."""
    time = median(found, condition)
    return _absent(found) if time is None else f"{time * 1e6:.1f}"


def _absent(found: Alternative) -> str:
    """Return why there is no time, in a word."""
    if not found.get("ok", True):
        return "wrong"
    return "missing" if "missing" in found else "-"


def both(found: Alternative, first: Condition, second: Condition) -> str:
    """Return the medians in two conditions, in microseconds, or that it is missing."""
    times = [median(found, condition) for condition in (first, second)]
    shown = [f"{time * 1e6:.1f}" for time in times if time is not None]
    return " / ".join(shown) or _absent(found)


def others(results: Results) -> Iterator[Ratio]:
    """Yield how much faster comet is than each alternative on one rank, L2 cold."""
    for case, result in done_of(results, "speed"):
        found = result.get("alternatives", {})
        for name, other in found.items():
            value = ratio_of(other, found.get(OURS, Alternative()), "cold")
            if name != OURS and value is not None:
                yield Ratio(name, case, value)


def rungs(results: Results, condition: Condition) -> Iterator[Ratio]:
    """Yield how much faster each pattern is than `bsp`."""
    for case, result in done_of(results, "ladder"):
        found = result.get("alternatives", {})
        for name in case.modules:
            base, own = (found.get(each, Alternative()) for each in (BASE, name))
            value = ratio_of(base, own, condition)
            if name != BASE and value is not None:
                yield Ratio(name, case, value)
