"""
The search of all passes: candidates are priced, the cheapest is taken and recorded.

A *structural* choice (a strategy, a dimension, a pattern) runs passes on a copy;
`cheapest` tries one candidate after the other. A *numeric* choice (factors, block
sizes) is priced as arrays on the result: either the whole space, of which `cheapest`
gets the best plans, or the plans that `descend` visits. They nest: the price of a
structural candidate is the result of an inner search. A candidate or a numeric space
whose lower bound is above a known price is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import inf
from typing import (
    Generic,
    NoReturn,
    Protocol,
    SupportsFloat,
    TypeVar,
    runtime_checkable,
)

from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import CostError
from comet.passes.search.goal import FREE, LATENCY, Cost, Goal, Objective, higher
from comet.passes.search.record import Choice, Missed, Row, Session, session

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
    "cost_of",
    "descend",
    "higher",
    "is_above_ceiling",
    "ranked",
    "refuse",
    "session",
    "timed",
    "vary",
]

FAR = 1.25
"""
A rejected candidate is reported if the lower bound of the chosen one is at least this
many times its own.
"""

T = TypeVar("T")


@dataclass(frozen=True)
class Found(Generic[T]):
    """The result of a candidate, and its price."""

    result: T
    cost: Cost
    limit: str = ""
    """The resource that bounds the price."""
    rank: float | None = None
    """A sort key instead of the cost: smaller is better. Set for all or for none."""

    def order(self, goal: Goal) -> tuple[float, ...]:
        """Return the sort key of candidates."""
        return goal.order(self.cost) if self.rank is None else (self.rank,)


class Priced(Protocol):
    """The figures of a mapping."""

    @property
    def latency(self) -> float: ...

    @property
    def energy(self) -> float | None: ...

    @property
    def is_artifact(self) -> bool: ...


@dataclass(frozen=True)
class Candidate(Generic[T]):
    """One structural choice."""

    label: str
    price: Callable[[], Found[T]]
    """
    Makes and prices the candidate.

    Raises PassFailedException or CostError if it is rejected.
    """
    bound: Cost = FREE
    """A lower bound of its cost, known before it is priced."""


@runtime_checkable
class Bounded(Protocol):
    """A time that knows what bounds it."""

    @property
    def bound(self) -> str: ...


def timed(label: str, result: T, time: Callable[[], SupportsFloat]) -> Candidate[T]:
    """Return a candidate whose cost is what `time` computes, in seconds."""

    def price() -> Found[T]:
        found = time()
        limit = found.bound if isinstance(found, Bounded) else ""
        return Found(result, Cost(float(found)), limit)

    return Candidate(label, price)


def refuse(error: Exception) -> NoReturn:
    """Raise `error`: the `price` of a candidate that is known to be rejected."""
    raise error


def cost_of(figures: Priced) -> Cost:
    """Return the cost of a mapping, an artifact unless the session allows artifacts."""
    with session() as current:
        artifact = figures.is_artifact and not current.allow_artifacts
    return Cost(figures.latency, figures.energy or 0.0, artifact)


class NotCheaper(PassFailedException):
    """Raised for a candidate whose lower bound is above a known price."""


def cheapest(
    name: str,
    place: str,
    candidates: Iterable[Candidate[T]],
    goal: Goal = LATENCY,
    confirm: Callable[[T], Found[T] | None] | None = None,
) -> Found[T]:
    """
    Return the cheapest of `candidates`, the first of equals.

    `name` is the choice, `place` its function or op. `confirm` is a check that is too
    expensive for all candidates. It is called for the cheapest one: it returns None to
    accept it, returns another form of it to be compared again, or raises to reject it.
    Raises PassFailedException with the last reason if all candidates are rejected.
    """
    with session() as current:
        table = _Table[T](goal)
        for index, candidate in enumerate(candidates):
            if current.is_late and table.priced:
                break
            best = table.best() if confirm is None else None
            ceiling = None if best is None else table.priced[best].cost
            with current.trying(f"{name} {candidate.label}", ceiling):
                try:
                    price = partial(_price, candidate, goal)
                    table.note(index, candidate.label, price, candidate.bound)
                except KeyboardInterrupt as error:
                    current.interrupt(error, known=bool(table.priced))
        chosen = table.best()
        while confirm is not None and chosen is not None:
            found = table.priced[chosen]
            confirmed = partial(_confirmed, confirm, found)
            table.note(chosen, table.rows[chosen].label, confirmed)
            if table.priced.get(chosen) is found:
                break
            chosen = table.best()
        current.choices.append(table.choice(name, place, current.within, chosen))
    if chosen is not None:
        return table.priced[chosen]
    if isinstance(table.failure, PassFailedException):
        raise table.failure
    raise PassFailedException(f"{place}: {table.failure or 'there is no candidate'}")


def ranked(
    name: str, place: str, candidates: Iterable[Candidate[T]]
) -> tuple[Found[T], ...]:
    """Return all candidates that are not rejected, the one of least latency first."""
    with session() as current:
        table = _Table[T](LATENCY)
        for index, candidate in enumerate(candidates):
            table.note(index, candidate.label, candidate.price)
        current.choices.append(table.choice(name, place, current.within, None))
    return tuple(
        sorted(table.priced.values(), key=lambda found: LATENCY.order(found.cost))
    )


class _Table(Generic[T]):
    """The results for the candidates of one choice."""

    def __init__(self, goal: Goal):
        self._goal = goal
        self.rows: dict[int, Row] = {}
        self.priced: dict[int, Found[T]] = {}
        """The priced candidates, by row."""
        self.failure: Exception | None = None
        """The last rejection."""
        self._bounds: dict[int, Cost] = {}
        """The lower bounds of candidates, by row, except of those not cheaper."""

    def note(
        self,
        index: int,
        label: str,
        price: Callable[[], Found[T]],
        bound: Cost = FREE,
    ) -> None:
        """Record in a row what `price` returns or raises."""
        try:
            found = self.priced[index] = price()
            self.rows[index] = Row(label, found.cost, found.limit, found.rank)
        except (PassFailedException, CostError) as error:
            self.failure = error
            self.priced.pop(index, None)
            self.rows[index] = Row(label, None, str(error))
            if isinstance(error, NotCheaper):
                self._bounds.pop(index, None)
                return
        self._bounds[index] = bound

    def best(self) -> int | None:
        """Return the row of the lowest price, the first of equals, None without one."""
        orders = {row: found.order(self._goal) for row, found in self.priced.items()}
        return min(orders, key=lambda row: orders[row], default=None)

    def choice(
        self, name: str, place: str, within: tuple[str, ...], chosen: int | None
    ) -> Choice:
        """Return the record of the choice, with the row `chosen`."""
        rows, missed = tuple(self.rows.values()), self._missed(chosen)
        return Choice(name, place, within, rows, chosen, missed)

    def _missed(self, chosen: int | None) -> Missed | None:
        """
        Return the rejected candidate with the lowest bound, if that is far lower.

        It is compared with the bound of the chosen candidate, as prices may be far
        above any bound.
        """
        bounds = {
            row: self._goal.order(bound)[0] for row, bound in self._bounds.items()
        }
        rejected = [row for row in bounds if row not in self.priced and bounds[row] > 0]
        best = min(rejected, key=lambda row: bounds[row], default=None)
        if chosen is None or best is None or bounds[chosen] < FAR * bounds[best]:
            return None
        row, price = self.rows[best], self._goal.order(self.priced[chosen].cost)[0]
        return Missed(row.label, bounds[best], price, self._goal.unit, row.limit)


def _price(candidate: Candidate[T], goal: Goal) -> Found[T]:
    _check_bound(candidate.bound, goal)
    return candidate.price()


def _confirmed(confirm: Callable[[T], Found[T] | None], found: Found[T]) -> Found[T]:
    """Return the candidate, or the form of it that `confirm` returns instead."""
    return confirm(found.result) or found


def _check_bound(bound: Cost, goal: Goal) -> None:
    """Raise NotCheaper if a lower bound is above the price of another candidate."""
    with session() as current:
        for ceiling in current.ceilings:
            if goal.order(bound) > goal.order(ceiling):
                word = "probably costs" if goal.model == "tool" else "costs"
                raise NotCheaper(
                    f"{word} at least {bound.latency:,.0f} cycles, more than the "
                    f"{ceiling.latency:,.0f} of another candidate"
                )


def is_above_ceiling(cost: Cost, goal: Goal) -> bool:
    """Return whether a cost is above the price of another candidate."""
    with session() as current:
        return any(goal.order(cost) > goal.order(found) for found in current.ceilings)


def vary(
    starts: Iterable[T],
    variations: Sequence[Callable[[T], Iterable[T]]],
    price: Callable[[T], float],
    tries: int,
    bound: Callable[[T], float],
) -> tuple[T, ...]:
    """
    Return the candidates that coordinate descent tries, one variation at a time.

    All of `starts` are priced. Then, from the cheapest candidate with variations left,
    the candidates of its next variation are priced, and the cheapest is kept; up to
    `tries` candidates are priced besides the starts. `price` is infinite for a rejected
    candidate. A candidate with a `bound` above a known price is not priced.
    """
    tried: dict[T, float] = {}

    def cost(candidate: T) -> float:
        if candidate not in tried:
            best = min(tried.values(), default=inf)
            tried[candidate] = inf if bound(candidate) > best else price(candidate)
        return tried[candidate]

    remaining = {start: variations for start in starts if cost(start) < inf}
    tries += len(tried)
    while going := [candidate for candidate, todo in remaining.items() if todo]:
        current = min(going, key=cost)
        first, *todo = remaining.pop(current)
        better = min((current, *islice(first(current), tries - len(tried))), key=cost)
        remaining[better] = todo
    return tuple(tried)


class NumericSpace(Protocol[T]):
    """The plans of a numeric choice, which are priced many at a time."""

    def bound(self) -> Cost:
        """Return a lower bound for every plan."""
        ...

    def start(self) -> Found[T]:
        """Return a plan that fits if any does; raises PassFailedException if none."""
        ...

    def sample(self, current: Found[T]) -> Sequence[Found[T]]:
        """Return the best of many random plans, those that are below `current`."""
        ...

    def neighbours(self, currents: Sequence[Found[T]]) -> Sequence[Found[T] | None]:
        """Return the best plan one step from each, None if none is below that one."""
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
        if current.ceilings:  # else no price is known that a bound may be above
            _check_bound(space.bound(), goal)
        first = space.start()
        rows = [Row("start", first.cost, first.limit)]
        sampled = space.sample(first)
        rows += [Row("best random plan", s.cost, s.limit) for s in sampled[:1]]
        best, steps = _descended(space, sampled or (first,), current, goal)
        rows.append(Row(f"after {steps} steps", best.cost, best.limit))
        within, chosen = current.within, len(rows) - 1
        current.choices.append(Choice(name, place, within, tuple(rows), chosen))
    return best


def _descended(
    space: NumericSpace[T], starts: Sequence[Found[T]], current: Session, goal: Goal
) -> tuple[Found[T], int]:
    """
    Return the best end of steepest descent from `starts`, and the number of its steps.

    All take a step at a time, so that a space can price these steps together. Most of
    them end at one plan: if one reaches the cost of another, the later one is dropped.
    """
    going, seen, steps = dict(enumerate(starts)), set[tuple[float, float]](), 0
    ends: dict[int, tuple[Found[T], int]] = {}
    while going and not current.is_late:
        stepped: dict[int, Found[T]] = {}
        better = space.neighbours([*going.values()])
        for (start, plan), step in zip(going.items(), better, strict=True):
            if step is None:
                ends[start] = plan, steps
            elif start == 0 or goal.order(step.cost) not in seen:
                stepped[start] = step
                seen.add(goal.order(step.cost))
        going, steps = stepped, steps + 1
    ends |= {start: (plan, steps) for start, plan in going.items()}
    best = min(sorted(ends), key=lambda start: goal.order(ends[start][0].cost))
    return ends[best]
