"""
Exact search for factors and loop orders: branch and bound.

Parts of the space whose lower bound is not below the best known cost, or whose final
tiles do not fit, are closed; the others are cut further, the most promising first.
Plans are priced as arrays. What stays open when the time is up has a bound too, so the
answer always has a lower bound.
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
from comet.passes.schedule.tile.accelerator import Factors, TilePlan
from comet.passes.schedule.tile.factor_space import FactorSpace, Parts
from comet.passes.schedule.tile.template import Candidates, Key
from comet.passes.search import Found, Goal

AT_ONCE = 50_000
"""About how many parts are made at once."""

AT_LEAST = 200
"""An array of parts takes about as long as this many more parts would."""

LOWER_BOUND = "lower bound of the tile tree"
CAPACITY = "capacity"
NO_MATRICES = "tiles that are no matrices"
"""Why parts are closed, besides their orders."""

CROSSED = 16
"""Bounding a part takes about as long as making this many and leaving them out."""

Floors: TypeAlias = tuple[tuple[frozenset[Key], float, float], ...]
"""For keys that are all open: by how much they raise latency and energy at least."""


@dataclass
class BranchAndBound(ABC):
    """A search for the least value of the plans of a space."""

    space: FactorSpace
    goal: Goal
    ceiling: float = inf
    """The least value found, or the value below which one is of use."""
    tolerance: float = 0.0
    """Parts are closed that cannot be better by more than this fraction."""
    deadline: float = inf
    """When to stop, on the monotonic clock."""
    patience: float = inf
    """The most `work`: unlike a deadline, it is the same on every machine."""
    floors: Floors = ()
    least: float = field(default=inf, init=False)
    """The least bound of the parts that were closed without being priced."""
    bounded: int = field(default=0, init=False)
    """Parts whose bound was computed."""
    work: int = field(default=0, init=False)
    """
    Parts that were bounded or priced, AT_LEAST for each array of them, and one for
    CROSSED that were made.
    """
    evaluated: int = field(default=0, init=False)
    """Plans that were priced."""
    pruned: Counter[str] = field(default_factory=Counter[str], init=False)
    """How many parts were closed without being priced, by the reason."""
    stopped: bool = field(default=False, init=False)
    """Whether the time or the patience was up before all was closed."""

    @property
    def lower_bound(self) -> float:
        """The least value that any plan has."""
        return min(self.least, self.ceiling)

    @property
    def nothing_fits(self) -> bool:
        """Whether no plan was priced, and no part is closed by its bound."""
        return not self.evaluated and self.least == inf

    @abstractmethod
    def leaf(self, parts: Parts) -> None:
        """Lower the ceiling to the least value of `parts`, which are plans."""

    def run(self) -> None:
        """Search until nothing is open, or the time or the patience is up."""
        whole = self.space.whole
        if self.space.is_plan(whole):
            self.leaf(whole)
        else:
            self._visit(whole, self.bounds(whole))

    def bounds(self, parts: Parts) -> NDArray[np.float64]:
        """Return a lower bound of the value for each part."""
        template, known = self.space.template, self.space.known(parts)
        latency, energy = completion_bound(
            self.space.mappings(parts),
            template.hardware,
            self.space.open_loops(parts),
            self.goal.model,
        )
        self.bounded += parts.count
        self.work += AT_LEAST + parts.count
        for keys, cycles, spent in self.floors:
            if not keys & known:
                latency, energy = latency + cycles, energy + spent
        return np.broadcast_to(self.goal.rank(latency, energy)[0], parts.count)

    def _visit(self, parts: Parts, bounds: NDArray[np.float64]) -> None:
        """Search in `parts`, whose bounds are known, the lowest bound first."""
        order = np.argsort(bounds, kind="stable")
        step = max(1, AT_ONCE // self.space.width(parts))
        for first in range(0, parts.count, step):
            chosen = order[first : first + step]
            chosen = chosen[self._open(bounds[chosen])]
            if not chosen.size:
                continue
            least = float(bounds[chosen].min())
            if self._is_late():
                self._stop(least)
                return
            below = list(self._cut(parts.where(chosen), least))
            below.sort(key=lambda item: float(item[1].min()))
            for child, child_bounds in below:
                self._visit(child, child_bounds)

    def _cut(
        self, parts: Parts, least: float
    ) -> Iterator[tuple[Parts, NDArray[np.float64]]]:
        """
        Yield the parts of `parts` that are open; take those that are plans.

        When the search has to stop, the others keep `least`, the lowest bound of
        `parts`.
        """
        self.work += parts.count * self.space.width(parts) // CROSSED
        for child in self.space.cut(parts, self.pruned):
            if self._is_late():
                self._stop(least)
                return
            if self.space.is_plan(child):
                self.leaf(child)
                continue
            bounds = self.bounds(child)
            open_ = self._open(bounds)
            if open_.any():
                left, bounds = child.where(open_), bounds[open_]
                room = self.space.room(left)
                self.pruned[CAPACITY] += int(np.count_nonzero(~room))
                if room.any():
                    yield left.where(room), bounds[room]

    def _is_late(self) -> bool:
        """Return whether the time or the patience is up."""
        return self.work > self.patience or monotonic() > self.deadline

    def _stop(self, least: float) -> None:
        """Leave parts with the lowest bound `least` open."""
        self.stopped = True
        self.least = min(self.least, least)

    def _open(self, bounds: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which bounds are below what is known; note the least of the others."""
        open_ = bounds < self.ceiling * (1 - self.tolerance)
        if not open_.all():
            self.pruned[LOWER_BOUND] += int(np.count_nonzero(~open_))
            self.least = min(self.least, float(bounds[~open_].min()))
        return open_


@dataclass
class Relaxed(BranchAndBound):
    """The least bound of any loops of some keys, while those of others are open."""

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
        """Search until nothing is open, or the time or the patience is up."""
        keys = tuple(key for nest in self.space.nests for key in nest.keys)
        self.space = replace(self.space, keys=keys)
        self._factors = Factors(self.space.template, self.goal)
        self.floors = self._floors()
        super().run()

    def _floors(self) -> Floors:
        """
        Return what each nest but the first adds at least to what is always there.

        Nests run one after the other, so what they add is a sum. If the root overlaps
        them there are no floors.
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
        """Return by how much the loops of one nest raise the bound at least."""
        if goal.objective != self.goal.objective and self.goal.objective != "edp":
            return 0.0
        left = self.patience - self.work
        search = Relaxed(nest, goal, deadline=self.deadline, patience=left)
        base = float(search.bounds(nest.whole)[0])
        search.run()
        self.bounded += search.bounded
        self.work += search.work
        raised = search.lower_bound - base
        return raised if 0 < raised < inf else 0.0

    def leaf(self, parts: Parts) -> None:
        """Price plans, and keep the best legal one that is below the ceiling."""
        candidates = Candidates(self.space.template, parts.factors)
        legal = np.broadcast_to(candidates.multiply(), parts.count)
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
        """Take the first of `parts`, which are in order of cost, that is legal."""
        room = Candidates(self.space.template, parts.factors).fit()
        hardware = self.space.template.hardware
        room = room & room_many(self.space.mappings(parts), hardware)
        for index in np.flatnonzero(np.broadcast_to(room, parts.count)):
            found = self._factors.priced(self.space.plan(parts, int(index)))
            if found is not None and self.goal.order(found.cost)[0] < self.ceiling:
                self.best, self.ceiling = found, self.goal.order(found.cost)[0]
                return
