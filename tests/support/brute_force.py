"""The best plan of a space of factors, by pricing every plan in every loop order."""

from collections.abc import Iterator, Mapping
from itertools import permutations, product
from math import inf

import numpy as np
from numpy.typing import NDArray

from comet.cost.accelerator.model import price_many, room_many
from comet.cost.estimate import ModelName
from comet.passes.schedule.tile.accelerator import tile_search
from comet.passes.schedule.tile.candidates import Candidates
from comet.passes.schedule.tile.factor_space import FactorSpace, Plan
from comet.passes.schedule.tile.template import Key, Values
from comet.passes.search import Goal, Objective

Orders = Mapping[Key, tuple[str, ...]]


def every_factor(space: FactorSpace) -> Values:
    """Return all factors that divide, one array element for each choice."""
    template = space.template
    loops = [(key, dim) for key in space.keys for dim in template.loops[key]]
    choices: list[list[int]] = []
    for loop in loops:
        extent = template.extent[loop]
        divide = [n for n in range(1, extent + 1) if extent % n == 0]
        choices.append([space.fixed[loop]] if loop in space.fixed else divide)
    grid = np.meshgrid(*choices, indexing="ij")
    columns = {loop: axis.ravel() for loop, axis in zip(loops, grid, strict=True)}
    every = Candidates(template, columns)
    legal = np.broadcast_to(
        every.factors_divide() & every.tiles_are_matrices(), grid[0].size
    )
    return {loop: column[legal] for loop, column in columns.items()}


def every_order(
    space: FactorSpace, values: Values
) -> Iterator[tuple[Values, Iterator[Orders]]]:
    """Yield factors, with all orders of the loops that have several iterations."""
    loops = list(values)
    several = np.stack([values[loop] > 1 for loop in loops], axis=1)
    for pattern in np.unique(several, axis=0):
        rows = (several == pattern).all(axis=1)
        chosen = {loop: values[loop][rows] for loop in loops}
        every = [
            permutations(dim for (of, dim), turns in looped if turns and of == key)
            for key in space.keys
            for looped in [list(zip(loops, pattern, strict=True))]
        ]
        yield (
            chosen,
            (dict(zip(space.keys, orders, strict=True)) for orders in product(*every)),
        )


def least_costs(
    space: FactorSpace, model: ModelName, objectives: tuple[Objective, ...]
) -> list[float]:
    """Return the least legal value of each objective, infinity if there is none."""
    least = [inf for _ in objectives]
    hardware = space.template.hardware
    for values, every in every_order(space, every_factor(space)):
        count = next(iter(values.values())).size
        candidates = Candidates(space.template, values)
        fit = candidates.fits_levels()
        for orders in every:
            loops = {key: tuple((d, 1) for d in dims) for key, dims in orders.items()}
            mappings = candidates.mappings(loops)
            prices = price_many(mappings, hardware, model)
            fits = np.broadcast_to(fit & room_many(mappings, hardware), count)
            for index, objective in enumerate(objectives):
                goal = Goal(model, objective)
                cost = goal.rank(prices.latency, prices.energy)[0]
                cost = np.where(fits, np.broadcast_to(cost, count), inf)
                least[index] = _least_legal(
                    space, goal, orders, values, cost, least[index]
                )
    return least


def _least_legal(
    space: FactorSpace,
    goal: Goal,
    orders: Orders,
    values: Values,
    cost: NDArray[np.float64],
    least: float,
) -> float:
    """Return the cost of the cheapest plan that is legal, if it is below `least`."""
    pricer = tile_search(space.template, goal)
    for index in np.argsort(cost, kind="stable"):
        if cost[index] >= least:
            break
        found = pricer.priced(_plan(orders, values, int(index)))
        if found is not None and not found.cost.artifact:
            return goal.order(found.cost)[0]
    return least


def _plan(orders: Orders, values: Values, index: int) -> Plan:
    return {
        key: tuple((dim, int(values[key, dim][index])) for dim in dims)
        for key, dims in orders.items()
    }
