"""
The one search: candidates are priced, the cheapest is taken, and all is noted.

A *structural* choice (a strategy, a dimension, a pattern) is realised by running passes
on a copy; `cheapest` tries one candidate after the other. A *numeric* choice (factors,
block sizes) is priced as arrays on what was realised; `descend` goes from one plan to
better ones. They nest: the price of a structural candidate is what an inner search
finds. A lower bound, of a candidate or of a whole numeric space, spares the work where
the best one so far is cheaper. Other methods take the same candidates and spaces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import CostError
from comet.passes.search.goal import FREE, LATENCY, Cost, Goal, Objective
from comet.passes.search.record import Choice, Row, session

__all__ = [
    "FREE",
    "LATENCY",
    "Candidate",
    "Cost",
    "Found",
    "Goal",
    "NumericSpace",
    "Objective",
    "cheapest",
    "descend",
    "session",
]

T = TypeVar("T")


@dataclass(frozen=True)
class Found(Generic[T]):
    """What a candidate was realised as, and its price."""

    made: T
    cost: Cost
    limit: str = ""
    """The resource that bounds the price."""


@dataclass(frozen=True)
class Candidate(Generic[T]):
    """One structural choice."""

    label: str
    price: Callable[[], Found[T]]
    """
    Realises and prices the candidate.

    Raises PassFailedException or CostError where it is refused.
    """
    bound: Cost = FREE
    """What it costs at least, known without realising it."""


class NotCheaper(PassFailedException):
    """A candidate whose lower bound is above the price of one that is known."""


def cheapest(
    name: str, place: str, candidates: Iterable[Candidate[T]], goal: Goal = LATENCY
) -> Found[T]:
    """
    Return the cheapest of `candidates`, the first of equals.

    `name` is what is chosen, `place` for which function or op. A single candidate is
    realised all the same. Raises PassFailedException with the reason of the last one
    if all are refused.
    """
    with session() as current:
        outer, within = current.ceiling, current.within
        rows: list[Row] = []
        best: Found[T] | None = None
        chosen: int | None = None
        failure: Exception | None = None
        try:
            for candidate in candidates:
                current.within = (*within, f"{name}={candidate.label}")
                try:
                    _check_bound(candidate.bound, current.ceiling, goal)
                    found = candidate.price()
                except (PassFailedException, CostError) as error:
                    failure = error
                    rows.append(Row(candidate.label, None, str(error)))
                    continue
                rows.append(Row(candidate.label, found.cost, found.limit))
                if best is None or goal.order(found.cost) < goal.order(best.cost):
                    best, chosen = found, len(rows) - 1
                    current.ceiling = _lower(outer, found.cost, goal)
        finally:
            current.ceiling, current.within = outer, within
        current.choices.append(Choice(name, place, within, tuple(rows), chosen))
    if best is not None:
        return best
    if isinstance(failure, PassFailedException):
        raise failure
    raise PassFailedException(f"{place}: {failure or 'there is no candidate'}")


def _lower(first: Cost | None, second: Cost, goal: Goal) -> Cost:
    """Return the lower of two costs."""
    if first is None or goal.order(second) < goal.order(first):
        return second
    return first


def _check_bound(bound: Cost, ceiling: Cost | None, goal: Goal) -> None:
    """Raise NotCheaper if what costs at least `bound` cannot be the cheapest."""
    if ceiling is not None and goal.order(bound) > goal.order(ceiling):
        raise NotCheaper(
            f"costs at least {bound.latency:,.0f} cycles, more than the "
            f"{ceiling.latency:,.0f} of another candidate"
        )


class NumericSpace(Protocol[T]):
    """Plans of numbers for one realised candidate, many of which are priced at once."""

    def bound(self) -> Cost:
        """Return what every plan costs at least."""
        ...

    def start(self) -> Found[T]:
        """Return a plan that fits if any does; raises PassFailedException if none."""
        ...

    def sample(self, current: Found[T]) -> Found[T] | None:
        """Return the best of many random plans, None if none is below `current`."""
        ...

    def neighbour(self, current: Found[T]) -> Found[T] | None:
        """Return the best plan one step away, None if none is below `current`."""
        ...


def descend(
    name: str, place: str, space: NumericSpace[T], goal: Goal = LATENCY
) -> Found[T]:
    """
    Return the plan that sampling and then steepest descent find; no optimum is proven.

    Raises PassFailedException if no plan fits, and NotCheaper if none can be below the
    price of another candidate.
    """
    with session() as current:
        _check_bound(space.bound(), current.ceiling, goal)
        best = space.start()
        rows = [Row("finest tiles", best.cost, best.limit)]
        if (sampled := space.sample(best)) is not None:
            best = sampled
            rows.append(Row("best random plan", best.cost, best.limit))
        steps = 0
        while (better := space.neighbour(best)) is not None:
            best, steps = better, steps + 1
        rows.append(Row(f"after {steps} steps", best.cost, best.limit))
        within, chosen = current.within, len(rows) - 1
        current.choices.append(Choice(name, place, within, tuple(rows), chosen))
    return best
