"""
The exact way through the structures of a program: best-first search.

Structures are realized and searched, the lowest bound first, each for a short time,
with the best known cost as the ceiling; then what is unfinished gets more time. Within
a structure the search is branch and bound (`passes/schedule/tile/exact.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from time import monotonic

from comet.passes.explore.state import Item, State
from comet.passes.explore.structure import REJECTED, Structure
from comet.passes.schedule.tile.accelerator import search
from comet.passes.schedule.tile.enumerate_plans import Enumeration
from comet.passes.schedule.tile.exact import CAPACITY, Exact
from comet.passes.schedule.tile.factor_space import FactorSpace
from comet.passes.search import Found, cost_of, session

SEARCHED = "search of parts"
"""The reason, besides bounds, why a structure is closed."""

FIRST_PATIENCE = 50_000
"""
The work, as `patience` of `Exact`, that each structure gets in the first round.

It takes about a second. A limit in seconds would make the answer depend on the load of
the machine.
"""

AHEAD = 200
"""The most structures that are collected before the first of them is searched."""


@dataclass
class BestFirst:
    """A best-first walk through the structures, which another call continues."""

    _coming: Iterator[Structure] | None = field(default=None, init=False)
    """The structures that are not among the items yet."""
    _ahead: int = field(default=1, init=False)
    """How many structures are collected before the first of them is searched."""

    def __call__(self, state: State, end: float) -> None:
        """Search until the gap is closed, or the time is `end`."""
        if self._coming is None:
            self._coming = state.space.structures(state.closes)
            state.start()
            self._ahead = 1 if state.best is None else AHEAD
        while monotonic() < end and not state.is_above(state.rest):
            _search_first(state, self._reached(state, self._coming, end), end)
        patience = FIRST_PATIENCE
        while (open_items := state.open_items()) and monotonic() < end:
            patience *= 4
            for item in open_items:
                _explore(state, item, patience, end)

    def _reached(
        self, state: State, coming: Iterator[Structure], end: float
    ) -> list[Item]:
        """
        Return the items of the next structures.

        Without a mapping to start from these are few at first, as their mappings close
        groups of other structures.
        """
        found: list[Item] = []
        while monotonic() < end and len(found) < self._ahead:
            if (structure := next(coming, None)) is None:
                state.rest = inf
                break
            found.append(state.noted(structure))
        self._ahead = min(AHEAD, 2 * self._ahead)
        return found


def _search_first(state: State, items: list[Item], end: float) -> None:
    """Realize items, and search a little in each, the lowest bound first."""
    while items and monotonic() < end:
        item = min(items, key=lambda item: item.bound)
        if state.is_closed(item) or item.space is not None:
            items.remove(item)
            _explore(state, item, FIRST_PATIENCE, end)
        else:
            state.realized(item)


def _explore(state: State, item: Item, patience: int, end: float) -> None:
    """Search one structure, up to the work `patience` or the time `end`."""
    if state.is_closed(item) or monotonic() >= end:
        return
    if (space := state.realized(item)) is None or state.is_closed(item):
        return
    if state.best is None:
        _sample(state, item, space, end)
    exact = _exact(state, space, patience, end)
    try:
        exact.run()
    finally:
        item.evaluated = max(item.evaluated, exact.evaluated)
        item.pruned = exact.pruned
        if exact.best is not None:
            state.take(item, exact.best)
    item.finished = not exact.stopped
    if exact.lower_bound > item.bound:
        item.bound, item.floors = exact.lower_bound, exact.floors
        item.counted = SEARCHED
    if item.finished:
        item.counted = CAPACITY if exact.nothing_fits else SEARCHED
    if not item.finished:
        _sample(state, item, space, end)
    state.notify(state)


def _exact(state: State, space: FactorSpace, patience: int, end: float) -> Exact:
    """Return the search of one structure for a better mapping than the best."""
    if state.goal.model == "tool":
        best_cost = None if state.best is None else state.best.cost
        return Enumeration(
            space,
            state.goal,
            ceiling=state.objective,
            deadline=end,
            patience=patience,
            best_cost=best_cost,
        )
    return Exact(
        space,
        state.goal,
        ceiling=state.objective,
        tolerance=state.tolerance,
        deadline=end,
        patience=patience,
    )


def _sample(state: State, item: Item, space: FactorSpace, end: float) -> None:
    """Look for a better mapping in a structure by samples and descent, once."""
    if item.sampled or monotonic() >= end:
        return
    item.sampled = True
    best_cost = None if state.best is None else state.best.cost
    with session() as current, current.until(end), suppress(*REJECTED):
        with current.trying(item.label, best_cost):
            plan = search(space.template, state.goal, space.fixed)
        found = Found(plan, cost_of(plan.estimate))
        if state.is_better(found.cost):
            state.take(item, found)
