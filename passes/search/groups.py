"""Groups of candidates that are made when their turn comes, the lowest bound first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from itertools import count, islice
from typing import Generic, TypeVar

from xdsl.utils.exceptions import PassFailedException

from comet.passes.search import (
    Candidate,
    Cost,
    Found,
    Goal,
    NotCheaper,
    refuse,
)
from comet.passes.search.ahead import MOST_TASKS, ahead

T = TypeVar("T")


@dataclass(frozen=True)
class Group(Generic[T]):
    """Candidates that are made late, as making them takes time, too."""

    label: str
    bound: Cost
    """A lower bound of the cost of all of them."""
    rank: float
    """Of equal bounds, the one of the group with the lowest rank goes first."""
    make: Callable[[], Sequence[Candidate[T]]]


def best_first(
    groups: Sequence[Group[T]], goal: Goal, *, shared: bool = False
) -> Iterator[Candidate[T]]:
    """
    Yield the candidates of groups, the one with the lowest bound first.

    A group is made when no other has a lower bound. One whose bound is above the price
    of a candidate that was yielded is not made: it is a single candidate, which is
    refused. If they are `shared`, all processes of the session price candidates, ahead
    of their turns; prices must not depend on the ceilings then.
    """
    turns = _Turns(groups, goal)
    tasks = [partial(turns.price, turn) for turn in range(MOST_TASKS if shared else 0)]
    with ahead(tasks) as done:
        for turn in count():
            if (found := turns.candidate(turn)) is None:
                break
            price = partial(done.result, turn) if turn < len(tasks) else found.price
            yield replace(found, price=partial(turns.noted, price))


class _Turns(Generic[T]):
    """
    The candidates of groups by their turns.

    They have the same turns in all processes, up to a group that one of them does not
    make. It knows a price that later bounds are above, so it prices none of those; nor
    does one that asks for them, as it knows all prices of earlier turns then.
    """

    def __init__(self, groups: Sequence[Group[T]], goal: Goal):
        self._goal = goal
        self._coming = self._in_order(groups)
        self._known: list[Candidate[T]] = []
        self._priced: list[Cost] = []

    def candidate(self, turn: int) -> Candidate[T] | None:
        """Return the candidate of a turn, None if there are fewer."""
        self._known.extend(islice(self._coming, max(0, turn + 1 - len(self._known))))
        return self._known[turn] if turn < len(self._known) else None

    def price(self, turn: int) -> Found[T]:
        """Price the candidate of a turn. Raises PassFailedException without one."""
        if (found := self.candidate(turn)) is None:
            raise PassFailedException(f"there are {len(self._known)} candidates")
        self._check(found.bound)
        return self.noted(found.price)

    def noted(self, price: Callable[[], Found[T]]) -> Found[T]:
        """Return what `price` finds, and know its cost from then on."""
        found = price()
        self._priced.append(found.cost)
        return found

    def _check(self, bound: Cost) -> None:
        """Raise NotCheaper if a bound is above a known price."""
        order = self._goal.order
        if self._priced and order(bound) > min(map(order, self._priced)):
            raise NotCheaper("its bound is above the price of another candidate")

    def _in_order(self, groups: Sequence[Group[T]]) -> Iterator[Candidate[T]]:
        """Yield the candidates, without those of groups whose bound is too high."""
        waiting: list[tuple[tuple[float, ...], Group[T], Candidate[T] | None]] = []

        def add(index: int, position: int, candidate: Candidate[T] | None) -> None:
            group = groups[index]
            bound = group.bound if candidate is None else candidate.bound
            key = (*self._goal.order(bound), group.rank, position, index)
            heappush(waiting, (key, group, candidate))

        for index in range(len(groups)):
            add(index, -1, None)
        while waiting:
            key, group, candidate = heappop(waiting)
            if candidate is not None:
                yield candidate
                continue
            try:
                self._check(group.bound)
            except NotCheaper as error:
                yield Candidate(group.label, partial(refuse, error), group.bound)
                continue
            for position, made in enumerate(group.make()):
                add(int(key[-1]), position, made)
