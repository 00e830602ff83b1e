"""
The search for factors on accelerators: coordinate descent over batches of mappings.

From the finest tiles, which fit if anything does, one factor, one pair of factors or
one loop order at a time takes its best value, until nothing improves. Equal latency is
decided by energy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import TypeAlias

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import CostError, Estimate, ModelName
from comet.cost.factors import Rows
from comet.cost.legality import check_tool
from comet.cost.model import price, price_many
from comet.dialects.arch import SystemOp
from comet.passes.capacity import Sizes, describe_overflow, overflow
from comet.passes.plan_string import PlanEntry, format_plan
from comet.passes.tile_template import (
    Candidates,
    Factor,
    Key,
    Template,
    Values,
    make_template,
)

CHOICES = 12
"""How many divisors of an extent the search tries."""

ROUNDS = 4
"""How often the search goes over all factors."""

Plan: TypeAlias = Mapping[Key, Rows]
"""The rows of each key, outermost first, those of factor 1 included."""


@dataclass(frozen=True)
class Choice:
    """The outcome of a search."""

    plan: Plan
    estimate: Estimate

    def text(self) -> str:
        """Return the plan string, without rows of factor 1."""
        entries = (
            PlanEntry(level, kind, tuple(row for row in rows if row[1] > 1))
            for (level, kind), rows in self.plan.items()
        )
        return format_plan([entry for entry in entries if entry.rows])


def choose(func: FuncOp, system: SystemOp) -> str:
    """
    Return the best plan that the search finds for the tile tree of `func`.

    Raises PassFailedException if no factors make the tiles fit.
    """
    return search(make_template(func, system)).text()


def search(template: Template, model: ModelName = "paper") -> Choice:
    """
    Return the best plan that coordinate descent finds.

    Raises PassFailedException if even the finest tiles do not fit, naming the level.
    """
    descent = _Descent(template, model)
    plan = finest(template)
    best = descent.estimate(plan)
    if best is None:
        raise _failure(template, plan)
    for _ in range(ROUNDS):
        before = best
        for trials in descent.moves(plan):
            plan, best = descent.improve(plan, best, trials)
        if best is before:
            break
    return Choice(plan, best)


def finest(template: Template) -> Plan:
    """Return the smallest tiles: each dimension is cut to 1 as far out as it can be."""
    cut: set[Factor] = set()
    plan: dict[Key, Rows] = {}
    for key, dims in template.loops.items():
        nodes = [node for node in template.nodes if template.keys[node] == key]
        above = {
            template.keys[n] for node in nodes for n in template.above[node.body.block]
        }
        plan[key] = tuple(
            (dim, 1 if cut & {(k, dim) for k in above} else template.extent((key, dim)))
            for dim in dims
        )
        cut |= {(key, dim) for dim in dims}
    return plan


def divisors(extent: int) -> list[int]:
    """Return divisors of an extent, both ends included, at most CHOICES of them."""
    found = [n for n in range(1, extent + 1) if extent % n == 0]
    if len(found) <= CHOICES:
        return found
    places = np.linspace(0, len(found) - 1, CHOICES).round().astype(int)
    return [found[place] for place in places]


Settings: TypeAlias = Mapping[Factor, Sequence[int]]
"""Factors that vary together: element i of each is trial i."""


@dataclass(frozen=True)
class _Descent:
    template: Template
    model: ModelName

    def moves(self, plan: Plan) -> Iterator[Settings | Key]:
        """Yield what may vary at a time: factors, or the loop order of a key."""
        factors = [(key, dim) for key, rows in plan.items() for dim, _ in rows]
        for one, other in combinations(factors, 2):
            if one[1] == other[1]:
                yield _joint(self.template, (one, other))
        for key, rows in plan.items():
            for one, other in combinations([dim for dim, _ in rows], 2):
                yield _joint(self.template, ((key, one), (key, other)))
        for factor in factors:
            yield _joint(self.template, (factor,))
        for key, rows in plan.items():
            if len(rows) > 1:
                yield key

    def improve(
        self, plan: Plan, best: Estimate, move: Settings | Key
    ) -> tuple[Plan, Estimate]:
        """Return the best of `plan` and its variants, with its estimate."""
        if isinstance(move, Mapping):
            variants = self.ranked(plan, best, move)
        else:
            variants = _orders(plan, move)
        for variant in variants:
            found = self.estimate(variant)
            if found is not None and _rank(found) < _rank(best):
                plan, best = variant, found
        return plan, best

    def ranked(self, plan: Plan, best: Estimate, settings: Settings) -> Iterator[Plan]:
        """Yield the variants that the model expects to beat `best`, best first."""
        values = _values(plan, settings)
        candidates = Candidates(self.template, values)
        legal = candidates.divide()
        if not legal.any():
            return
        kept = {factor: array[legal] for factor, array in values.items()}
        candidates = Candidates(self.template, kept)
        prices = price_many(candidates.mappings(), self.template.hardware, self.model)
        count = int(legal.sum())
        latency = np.broadcast_to(prices.latency, count)
        energy = np.broadcast_to(prices.energy, count)
        fits = np.broadcast_to(candidates.fit(), count)
        for index in np.lexsort((energy, latency)):
            if (float(latency[index]), float(energy[index])) >= _rank(best):
                return
            if fits[index]:
                yield _chosen(plan, kept, int(index))

    def estimate(self, plan: Plan) -> Estimate | None:
        """Return what a plan costs, None where it is not legal."""
        problem, hardware = self.template.problem_for(plan), self.template.hardware
        if not _fits(self.template, plan):
            return None
        try:
            check_tool(problem, hardware)
            return price(problem, hardware, self.model)
        except CostError:
            return None


def _joint(template: Template, factors: Sequence[Factor]) -> Settings:
    """Return all combinations of the divisors of some factors."""
    choices = product(*(divisors(template.extent(factor)) for factor in factors))
    return dict(zip(factors, zip(*choices, strict=True), strict=True))


def _orders(plan: Plan, key: Key) -> Iterator[Plan]:
    """Yield the plan with every order of the rows of `key` that turn."""
    rows = dict(plan[key])
    turning = [dim for dim, factor in rows.items() if factor > 1]
    if len(turning) < 2:
        return
    for order in permutations(turning):
        ordered = {dim: rows[dim] for dim in (*order, *rows)}
        yield {**plan, key: tuple(ordered.items())}


def _values(plan: Plan, settings: Settings) -> Values:
    """Return the factors of all rows: those of `settings`, the rest as in `plan`."""
    fixed = {(key, dim): f for key, rows in plan.items() for dim, f in rows}
    count = len(next(iter(settings.values())))
    return {
        factor: np.asarray(settings.get(factor, [value] * count), np.int64)
        for factor, value in fixed.items()
    }


def _chosen(plan: Plan, values: Values, index: int) -> Plan:
    return {
        key: tuple((dim, int(values[key, dim][index])) for dim, _ in rows)
        for key, rows in plan.items()
    }


def _fits(template: Template, plan: Plan) -> bool:
    return bool(_single(template, plan).fit().all())


def _single(template: Template, plan: Plan) -> Candidates:
    rows = ((key, dim, f) for key, rows in plan.items() for dim, f in rows)
    values = {(key, dim): np.asarray([factor]) for key, dim, factor in rows}
    return Candidates(template, values)


def _rank(estimate: Estimate) -> tuple[float, float]:
    return estimate.latency, estimate.energy


def _failure(template: Template, plan: Plan) -> PassFailedException:
    """Say why the finest tiles are not legal."""
    single = _single(template, plan)
    sizes = Sizes(
        lambda value: int(np.max(single.bytes_of(value))),
        lambda node: int(np.max(single.iterations(node))),
    )
    if (found := overflow(template.func, template.system, sizes)) is not None:
        return PassFailedException(
            "tile: no valid mapping; with the finest tiles, "
            f"{describe_overflow(found, template.system)}"
        )
    try:
        check_tool(template.problem_for(plan), template.hardware)
        price(template.problem_for(plan), template.hardware)
    except CostError as error:
        return PassFailedException(f"tile: no valid mapping; {error}")
    return PassFailedException("tile: no valid mapping")
