"""The Pareto front of the mappings that searches have found, by latency and energy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from comet.api.answer import Answer
from comet.api.question import Question
from comet.passes.explore.certificate import OBJECTIVES
from comet.tools.diagnostics import CometError

MOST_SECONDS = 10.0
"""The time limit of each further search."""


@dataclass(frozen=True)
class Point:
    """One mapping."""

    label: str
    """The objective that was minimized."""
    latency: float
    """Cycles."""
    energy: float
    """pJ."""
    chosen: bool
    """Whether it is the mapping of the report."""


def front_of(
    question: Question, answer: Answer, search: Callable[[Question], Answer]
) -> tuple[Point, ...]:
    """
    Return the best mapping for each objective, without those that another dominates.

    Those of other objectives are searched, each for at most `MOST_SECONDS`; if the
    search for `answer` was interrupted, there are none. An objective without a mapping
    after that time, or when Ctrl-C ends these searches, has no point. The whole front
    may have more points between these.
    """
    if answer.interrupted:
        return ()
    answers = {question.objective: answer}
    for other in _others(question):
        try:
            found = search(other)
        except CometError:
            continue
        except KeyboardInterrupt:
            break
        answers[other.objective] = found
        if found.interrupted:
            break
    points = [
        Point(name, best.latency_cycles, best.energy_pj, best is answer)
        for name, best in answers.items()
    ]
    return not_beaten(points)


def _others(question: Question) -> Iterator[Question]:
    """Yield the same question for each of the other objectives."""
    seconds = min(question.time_limit, MOST_SECONDS)
    for objective in OBJECTIVES:
        if objective != question.objective:
            yield replace(question, objective=objective, time_limit=seconds)


def not_beaten(points: list[Point]) -> tuple[Point, ...]:
    """
    Return the points that no other dominates, ordered by latency.

    Equal points become one, with the labels of all; the chosen point is always kept.
    """
    merged: dict[tuple[float, float], Point] = {}
    for point in points:
        key = point.latency, point.energy
        previous = merged.get(key, replace(point, label=""))
        label = ", ".join(filter(None, (previous.label, point.label)))
        merged[key] = replace(
            point, label=label, chosen=previous.chosen or point.chosen
        )
    left = [
        point
        for key, point in merged.items()
        if point.chosen
        or not any(
            other != key and other[0] <= key[0] and other[1] <= key[1]
            for other in merged
        )
    ]
    return tuple(sorted(left, key=lambda point: (point.latency, point.energy)))
