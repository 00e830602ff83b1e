"""
A search for mappings under the COMET tool's own model.

Its integer arithmetic is priced one mapping at a time, so the search is small: the best
mapping under `paper` and random ones that fit, then steps to the first better
neighbour, until there is none or the budget is spent.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from comet.cost.accelerator.legality import check_tool
from comet.cost.accelerator.model import price
from comet.cost.estimate import CostError, Estimate
from comet.passes.schedule.tile.accelerator import TilePlan
from comet.passes.schedule.tile.candidates import Candidates
from comet.passes.schedule.tile.moves import neighbours, samples
from comet.passes.schedule.tile.template import Plan, Template, Values


def search_tool(template: Template, start: TilePlan, budget: int) -> TilePlan:
    """Return the best mapping under `tool` among `budget` ones, half of them random."""
    first = tool_price(template, start.plan) or start.estimate
    found = TilePlan(template, start.plan, first)
    trials = samples(template, start.plan, fixed={})
    for plan in _take(fitting(template, trials), budget // 2):
        found = _better(template, found, plan)
    left = budget - budget // 2
    while left > 0:
        improved = found
        trials = neighbours(template, found.plan)
        for plan in _take(fitting(template, trials), left):
            left -= 1
            improved = _better(template, found, plan)
            if improved is not found:
                break
        if improved is found:
            break
        found = improved
    return found


def tool_price(template: Template, plan: Plan) -> Estimate | None:
    """Return the price of a plan under `tool`, None where the tool has none."""
    problem = template.problem_for(plan)
    try:
        check_tool(problem, template.hardware)
        return price(problem, template.hardware, "tool")
    except CostError:
        return None


def fitting(template: Template, values: Values) -> Iterator[Plan]:
    """Yield, in random order, the plans whose factors divide and whose tiles fit."""
    every = Candidates(template, values)
    legal = every.factors_divide() & every.tiles_are_matrices()
    kept = {factor: array[legal] for factor, array in values.items()}
    if not legal.any():
        return
    fits = np.broadcast_to(Candidates(template, kept).fits_levels(), int(legal.sum()))
    order = np.random.default_rng(0).permutation(np.flatnonzero(fits))
    for index in order:
        yield {
            key: tuple((dim, int(kept[key, dim][index])) for dim in dims)
            for key, dims in template.loops.items()
        }


def _better(template: Template, found: TilePlan, plan: Plan) -> TilePlan:
    estimate = tool_price(template, plan)
    if estimate is not None and _rank(estimate) < _rank(found.estimate):
        return TilePlan(template, plan, estimate)
    return found


def _rank(estimate: Estimate) -> tuple[float, float]:
    return estimate.latency, estimate.energy


def _take(plans: Iterator[Plan], count: int) -> Iterator[Plan]:
    for _, plan in zip(range(count), plans, strict=False):
        yield plan
