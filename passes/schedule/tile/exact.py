"""
Exact search for factors and loop orders: branch and bound.

A part of the space is pruned if its lower bound is not below the best known cost, or if
tiles that are final in it do not fit. The other parts are cut further, the one with the
lowest bound first. Plans are priced as arrays. If the search stops early, the lowest
bound of the parts that are left is a lower bound of the answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import inf
from time import monotonic
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from comet.cost.accelerator.bindings import lanes_of
from comet.cost.accelerator.bounds import completion_bound
from comet.cost.accelerator.model import price_many, room_many
from comet.passes.schedule.tile.accelerator import TilePlan, tile_search
from comet.passes.schedule.tile.candidates import Candidates
from comet.passes.schedule.tile.factor_space import FactorSpace, Parts
from comet.passes.schedule.tile.template import Key
from comet.passes.search import Found, Goal

AT_ONCE = 50_000
"""About how many parts one array has."""

AT_LEAST = 200
"""The fixed cost of one array operation, as a number of parts."""

LOWER_BOUND = "lower bound of the tile tree"
CAPACITY = "capacity"
NO_MATRICES = "tiles that are no matrices"
"""Why parts are pruned; `factor_space` has the reasons that are about orders."""

CROSSED = 16
"""Bounding a part takes about as long as making this many and dropping them."""

Floors: TypeAlias = tuple[tuple[frozenset[Key], float, float], ...]
"""
Sets of keys; while the loops of a whole set are open, they raise latency (cycles) and
energy (pJ) by at least this much.
"""


@dataclass
class BranchAndBound(ABC):
    """A search for the least value (of the objective) of the plans of a space."""

    space: FactorSpace
    goal: Goal
    ceiling: float = inf
    """The least value found so far; at first, the value that a plan has to beat."""
    tolerance: float = 0.0
    """Parts are pruned that cannot be better by more than this fraction."""
    deadline: float = inf
    """When to stop, on the monotonic clock."""
    patience: float = inf
    """The most `work`: unlike a deadline, a limit that no machine's speed changes."""
    floors: Floors = ()
    lowest: float = field(default=inf, init=False)
    """The least bound of the parts that were pruned, or left at the end."""
    bounded: int = field(default=0, init=False)
    """Parts whose bound was computed."""
    work: int = field(default=0, init=False)
    """
    Parts that were bounded or priced, plus AT_LEAST for each array of them, plus one
    for each CROSSED parts that were made.
    """
    evaluated: int = field(default=0, init=False)
    """Plans that were priced."""
    pruned: Counter[str] = field(default_factory=Counter[str], init=False)
    """How many parts were pruned, by the reason."""
    stopped: bool = field(default=False, init=False)
    """Whether the search ended at its deadline or patience, with parts left."""

    @property
    def lower_bound(self) -> float:
        """A lower bound of the values of all plans."""
        return min(self.lowest, self.ceiling)

    @property
    def nothing_fits(self) -> bool:
        """Whether no plan fits: none was priced, and no part pruned by its bound."""
        return not self.evaluated and self.lowest == inf

    @abstractmethod
    def leaf(self, parts: Parts) -> None:
        """Lower the ceiling to the least value of `parts`, which are plans."""

    def run(self) -> None:
        """Search until no part is left, or the deadline or the patience is reached."""
        whole = self.space.whole
        if self.space.is_plan(whole):
            self.leaf(whole)
        else:
            self._visit(whole, self.bounds(whole))

    def bounds(self, parts: Parts) -> NDArray[np.float64]:
        """Return a lower bound of the value for each part."""
        template, looped = self.space.template, self.space.looped_keys(parts)
        latency, energy = completion_bound(
            self.space.mappings(parts),
            template.hardware,
            self.space.open_loops(parts),
            self.goal.model,
        )
        self.bounded += parts.count
        self.work += AT_LEAST + parts.count
        for keys, cycles, spent in self.floors:
            if not keys & looped:
                latency, energy = latency + cycles, energy + spent
        return np.broadcast_to(self.goal.rank(latency, energy)[0], parts.count)

    def _visit(self, parts: Parts, bounds: NDArray[np.float64]) -> None:
        """Search in `parts`, given the bound of each, the lowest bound first."""
        order = np.argsort(bounds, kind="stable")
        step = max(1, AT_ONCE // self.space.width(parts))
        for first in range(0, parts.count, step):
            chosen = order[first : first + step]
            chosen = chosen[self._below_ceiling(bounds[chosen])]
            if not chosen.size:
                continue
            lowest = float(bounds[chosen].min())
            if self._is_late():
                self._stop(lowest)
                return
            below = list(self._cut(parts.where(chosen), lowest))
            below.sort(key=lambda item: float(item[1].min()))
            for child, child_bounds in below:
                self._visit(child, child_bounds)

    def _cut(
        self, parts: Parts, lowest: float
    ) -> Iterator[tuple[Parts, NDArray[np.float64]]]:
        """
        Cut each part; yield the new parts that are not pruned, with their bounds.

        Those that are plans go to `leaf` instead. `lowest` is the lowest bound of
        `parts`, which those have that are left when the search stops.
        """
        self.work += parts.count * self.space.width(parts) // CROSSED
        for child in self.space.cut(parts, self.pruned):
            if self._is_late():
                self._stop(lowest)
                return
            if self.space.is_plan(child):
                self.leaf(child)
                continue
            bounds = self.bounds(child)
            below = self._below_ceiling(bounds)
            if below.any():
                child_parts, bounds = child.where(below), bounds[below]
                room = self.space.room(child_parts)
                self.pruned[CAPACITY] += int(np.count_nonzero(~room))
                if room.any():
                    yield child_parts.where(room), bounds[room]

    def _is_late(self) -> bool:
        """Return whether the deadline or the patience is reached."""
        return self.work > self.patience or monotonic() > self.deadline

    def _stop(self, lowest: float) -> None:
        """Stop the search, with parts left whose lowest bound is `lowest`."""
        self.stopped = True
        self.lowest = min(self.lowest, lowest)

    def _below_ceiling(self, bounds: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which parts stay by their bounds, and count the others as pruned."""
        below = bounds < self.ceiling * (1 - self.tolerance)
        if not below.all():
            self.pruned[LOWER_BOUND] += int(np.count_nonzero(~below))
            self.lowest = min(self.lowest, float(bounds[~below].min()))
        return below


@dataclass
class Relaxed(BranchAndBound):
    """The least bound over all loops of some keys, while those of others stay open."""

    def leaf(self, parts: Parts) -> None:
        """Lower the ceiling to the least bound of the parts that fit."""
        fitting = parts.where(self.space.room(parts))
        if fitting.count:
            self.ceiling = min(self.ceiling, float(self.bounds(fitting).min()))


@dataclass
class Exact(BranchAndBound):
    """The best plan of a template."""

    best: Found[TilePlan] | None = None

    def run(self) -> None:
        """Search until no part is left, or the deadline or the patience is reached."""
        keys = tuple(key for nest in self.space.nests for key in nest.keys)
        self.space = replace(self.space, keys=keys)
        self._factors = tile_search(self.space.template, self.goal)
        self.floors = self._floors()
        super().run()

    def _floors(self) -> Floors:
        """
        Return lower bounds of what the loops of each nest but the first add to a bound.

        Nests run one after the other, so what they add is a sum. There are no floors if
        the root overlaps the nests.
        """
        nests = self.space.nests
        lanes = lanes_of(self.space.template.problem.root)
        if len(nests) < 2 or sum(map(len, lanes)) > 1:
            return ()
        return tuple(
            (
                frozenset(nest.keys),
                self._raised(nest, Goal(self.goal.model, "latency")),
                self._raised(nest, Goal(self.goal.model, "energy")),
            )
            for nest in nests[1:]
        )

    def _raised(self, nest: FactorSpace, goal: Goal) -> float:
        """Return by how much the loops of one nest raise the bound at least, or 0."""
        if goal.objective != self.goal.objective and self.goal.objective != "edp":
            return 0.0
        patience_left = self.patience - self.work
        search = Relaxed(nest, goal, deadline=self.deadline, patience=patience_left)
        base = float(search.bounds(nest.whole)[0])
        search.run()
        self.bounded += search.bounded
        self.work += search.work
        raised = search.lower_bound - base
        return raised if 0 < raised < inf else 0.0

    def leaf(self, parts: Parts) -> None:
        """Price plans, and keep the best legal one that is below the ceiling."""
        candidates = Candidates(self.space.template, parts.factors)
        legal = np.broadcast_to(candidates.tiles_are_matrices(), parts.count)
        self.pruned[NO_MATRICES] += int(np.count_nonzero(~legal))
        if not legal.any():
            return
        parts = parts.where(legal)
        hardware, mappings = self.space.template.hardware, self.space.mappings(parts)
        prices = price_many(mappings, hardware, self.goal.model)
        self.evaluated += parts.count
        self.work += AT_LEAST + parts.count
        first, second = (
            np.broadcast_to(figure, parts.count)
            for figure in self.goal.rank(prices.latency, prices.energy)
        )
        order = np.lexsort((second, first))
        order = order[first[order] < self.ceiling]
        if order.size:
            self._take(parts.where(order))

    def _take(self, parts: Parts) -> None:
        """Keep the first legal plan of `parts`, which are in the order of cost."""
        room = Candidates(self.space.template, parts.factors).fits_levels()
        hardware = self.space.template.hardware
        room = room & room_many(self.space.mappings(parts), hardware)
        for index in np.flatnonzero(np.broadcast_to(room, parts.count)):
            found = self._factors.priced(self.space.plan(parts, int(index)))
            if found is not None and self.goal.order(found.cost)[0] < self.ceiling:
                self.best, self.ceiling = found, self.goal.order(found.cost)[0]
                return
