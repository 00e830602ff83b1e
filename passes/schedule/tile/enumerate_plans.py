"""
The best plan of a template under a model without lower bounds: every plan is priced.

The model `tool` wraps at 32 bits and loses stalls, so it has no lower bounds: plans are
priced one after the other. Only those that do not fit are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from comet.cost.accelerator.model import price
from comet.cost.estimate import CostError
from comet.passes.schedule.tile.accelerator import TilePlan
from comet.passes.schedule.tile.exact import CAPACITY, Exact, Floors
from comet.passes.schedule.tile.factor_space import Parts
from comet.passes.search import Cost, Found, cost_of

ONE_PRICE = 250
"""Pricing one plan takes about as long as bounding this many parts."""


@dataclass
class Enumeration(Exact):
    """The best plan of a template, by pricing all that fit one after the other."""

    best_cost: Cost | None = None
    """The cost of the best known mapping."""

    def leaf(self, parts: Parts) -> None:
        """Price the plans that fit, until the deadline or the patience is reached."""
        fitting = np.flatnonzero(self.space.legal(parts))
        self.pruned[CAPACITY] += parts.count - fitting.size
        for index in fitting:
            if self._is_late():
                self._stop(0.0)
                return
            self.evaluated += 1
            self.work += ONE_PRICE
            found = self._priced(parts, int(index))
            if found is not None and self._is_better(found.cost):
                self.best, self.best_cost = found, found.cost
                self.ceiling = self.goal.order(found.cost)[0]

    def _priced(self, parts: Parts, index: int) -> Found[TilePlan] | None:
        """Return one plan with its cost, None if the model cannot price it."""
        template, plan = self.space.template, self.space.plan(parts, index)
        try:
            problem = template.problem_for(plan)
            estimate = price(problem, template.hardware, self.goal.model)
        except CostError:
            return None
        return Found(TilePlan(template, plan, estimate), cost_of(estimate))

    def _is_better(self, cost: Cost) -> bool:
        """Return whether a cost is below the best one; artifacts come last."""
        order = self.goal.order
        return self.best_cost is None or order(cost) < order(self.best_cost)

    def _floors(self) -> Floors:
        """Return no floors: the model has no lower bounds."""
        return ()
