"""Groups of candidates that are made lazily, the group with the lowest bound first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from typing import Generic, TypeVar

from comet.passes.search import Candidate, Cost, Found, Goal, NotCheaper, refuse

T = TypeVar("T")


@dataclass(frozen=True)
class Group(Generic[T]):
    """Candidates that are made only when needed, as making them takes time."""

    label: str
    bound: Cost
    """A lower bound of the cost of all of them."""
    rank: float
    """Of groups with equal bounds, the one with the lowest rank is first."""
    make: Callable[[], Sequence[Candidate[T]]]


def best_first(groups: Sequence[Group[T]], goal: Goal) -> Iterator[Candidate[T]]:
    """
    Yield the candidates of groups, the one with the lowest bound first.

    A group is made when no other has a lower bound. One whose bound is above the price
    of a candidate that was yielded is not made: it is a single candidate, which is
    refused.
    """
    waiting: list[tuple[tuple[float, ...], Group[T], Candidate[T] | None]] = []
    priced: list[Cost] = []

    def add(index: int, position: int, candidate: Candidate[T] | None) -> None:
        group = groups[index]
        bound = group.bound if candidate is None else candidate.bound
        key = (*goal.order(bound), group.rank, position, index)
        heappush(waiting, (key, group, candidate))

    for index in range(len(groups)):
        add(index, -1, None)
    while waiting:
        key, group, candidate = heappop(waiting)
        if candidate is not None:
            yield replace(candidate, price=partial(_noted, candidate, priced))
        elif priced and goal.order(group.bound) > min(map(goal.order, priced)):
            error = NotCheaper("its bound is above the price of another candidate")
            yield Candidate(group.label, partial(refuse, error), group.bound)
        else:
            for position, made in enumerate(group.make()):
                add(int(key[-1]), position, made)


def _noted(candidate: Candidate[T], priced: list[Cost]) -> Found[T]:
    """Price a candidate, and note the cost in `priced`."""
    found = candidate.price()
    priced.append(found.cost)
    return found
