"""
The search for factors on accelerators: sampling, then steepest descent.

It starts from the finest tiles, which fit if any do, or the best of many random plans.
Each step prices all plans that differ in one factor, in two related ones, or in one
loop order, and takes the best, until none is better. Equal latency is decided by
energy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, combinations, islice, permutations
from math import prod
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.utils.exceptions import PassFailedException

from comet.cost.accelerator.bounds import completion_bound
from comet.cost.accelerator.factors import Loops
from comet.cost.accelerator.legality import check_sizes, check_summed, check_tool
from comet.cost.accelerator.model import Prices, price, price_many, room_many
from comet.cost.estimate import CostError, Estimate, ModelName
from comet.cost.from_ir.capacity import Sizes, describe_overflow, overflow
from comet.dialects.compound.dims import extents_of, level_of
from comet.passes.analysis.levels import compute_block
from comet.passes.annotate_cost.accelerator import total_figures
from comet.passes.schedule.plan_string import PlanEntry
from comet.passes.schedule.tile.candidates import Candidates
from comet.passes.schedule.tile.factor_space import FactorSpace, divisors
from comet.passes.schedule.tile.template import (
    Factor,
    FrozenPlan,
    Key,
    Plan,
    Template,
    Values,
)
from comet.passes.search import LATENCY, Cost, Found, Goal, cost_of, descend

CHOICES = 12
"""How many divisors of an extent the search tries."""

SAMPLES = 8000
"""How many random plans the search prices before it descends."""

STARTS = 3
"""From how many random plans the search descends if several loops share a factor."""

TOOL_TRIES = 16
"""How many plans of a step `tool` prices, the cheapest under `paper` first."""

Numbers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class TilePlan:
    """TileSearch and loop orders, and their cost."""

    template: Template
    plan: Plan
    estimate: Estimate

    def entries(self) -> tuple[PlanEntry, ...]:
        """Return the plan of the nodes, without factors of 1."""
        return self.template.entries(self.plan)


def search(
    template: Template,
    goal: Goal = LATENCY,
    fixed: Mapping[Factor, int] = MappingProxyType({}),
) -> TilePlan:
    """
    Return the best plan with the `fixed` factors that the search finds.

    Raises PassFailedException, with the level, if even the finest tiles do not fit.
    """
    place, space = f"@{template.func.sym_name.data}", TileSearch(template, goal, fixed)
    made = descend("tile factors", place, space, goal).made
    if not space.is_legal(made.plan):
        raise _failure(template, made.plan, goal.model)
    return made


def finest(template: Template) -> Plan:
    """Return the smallest tiles: the outermost loop of each dimension cuts it to 1."""
    cut: set[Factor] = set()
    plan: dict[Key, Loops] = {}
    for key, dims in template.loops.items():
        nodes = [node for node in template.nodes if template.keys[node] == key]
        above = {
            template.keys[n] for node in nodes for n in template.above[node.body.block]
        }
        plan[key] = tuple(
            (dim, 1 if cut & {(k, dim) for k in above} else template.extent[key, dim])
            for dim in dims
        )
        cut |= {(key, dim) for dim in dims}
    return plan


def finest_with(template: Template, fixed: Mapping[Factor, int]) -> Plan:
    """
    Return the smallest tiles with the `fixed` factors.

    Raises PassFailedException if these do not divide the extents.
    """
    space, chosen = FactorSpace.of(template), dict(fixed)
    loops = [(key, dim) for key, dims in template.loops.items() for dim in dims]
    for key, dim in loops:
        if (key, dim) not in fixed:
            values = space.dividing_values((key, dim), chosen)
            if not values.size:
                raise PassFailedException(
                    f"tile: the fixed factors leave none for {dim}; they have to "
                    "divide the extents"
                )
            chosen[key, dim] = int(values.max())
    return {
        key: tuple((dim, chosen[key, dim]) for dim in dims)
        for key, dims in template.loops.items()
    }


@cache
def some_divisors(extent: int) -> tuple[int, ...]:
    """Return divisors of an extent, both ends included, at most CHOICES of them."""
    found = divisors(extent)
    if len(found) <= CHOICES:
        return found
    positions = np.linspace(0, len(found) - 1, CHOICES).round().astype(int)
    return tuple(found[int(place)] for place in positions)


@dataclass(frozen=True)
class TileSearch:
    """Prices plans of a template and their neighbours, for `descend`."""

    template: Template
    goal: Goal
    fixed: Mapping[Factor, int] = field(default_factory=dict[Factor, int])
    """The factors that are given, and not searched."""
    known: dict[FrozenPlan, Estimate | None] = field(
        default_factory=dict[FrozenPlan, Estimate | None]
    )
    """The results of `estimate`: every step tries the same loop orders again."""
    legal: dict[FrozenPlan, bool] = field(default_factory=dict[FrozenPlan, bool])
    """The results of `is_legal`."""

    def bound(self) -> Cost:
        """Return a lower bound for all plans: that of the tree without loops."""
        space = FactorSpace.of(self.template)
        mappings = space.mappings(space.whole)
        open_loops = space.open_loops(space.whole)
        hardware, model = self.template.hardware, self.goal.model
        latency, energy = completion_bound(mappings, hardware, open_loops, model)
        return Cost(float(latency), float(energy))

    def start(self) -> Found[TilePlan]:
        """
        Return the finest tiles; raises PassFailedException if these do not fit.

        They have the most iterations, which may be too many for the tool to count.
        """
        template, fixed = self.template, self.fixed
        plan = finest_with(template, fixed) if fixed else finest(template)
        fits = _fits(self.template, plan)
        if fits and (self.is_legal(plan) or self._check(plan, counts=False)):
            estimate = self.estimate(plan)
            if estimate is not None:
                return self._found(plan, estimate)
        raise _failure(self.template, plan, self.goal.model)

    def sample(self, current: Found[TilePlan]) -> Sequence[Found[TilePlan]]:
        """
        Return the best of many random plans, empty if none is better than `current`.

        Up to STARTS if several loops share a factor, as `neighbour` tries fewer then.
        """
        leaders = self.template.leaders
        trials = samples(self.template, current.made.plan, self.fixed)
        if all(factor == leader for factor, leader in leaders.items()):
            best = self.best(current, trials)
            return () if best is None else (best,)
        return tuple(islice(self.cheaper(current, trials), STARTS))

    def neighbour(self, current: Found[TilePlan]) -> Found[TilePlan] | None:
        """Return the best neighbour of `current`, None if none is better."""
        template, plan = self.template, current.made.plan
        trials = self._keeping(neighbours(template, plan, template.leaders))
        return self.best(current, trials) or self.reordered(current)

    def _keeping(self, trials: Values) -> Values:
        """Return those of `trials` that have the fixed factors."""
        kept = [trials[factor] == only for factor, only in self.fixed.items()]
        if not kept:
            return trials
        rows = np.logical_and.reduce(kept)
        return {factor: array[rows] for factor, array in trials.items()}

    def best(self, current: Found[TilePlan], trials: Values) -> Found[TilePlan] | None:
        """Return the best legal plan of `trials`, None if none is better."""
        found = self.cheaper(current, trials)
        if self.goal.model == "tool":
            return min(found, key=lambda each: self.goal.order(each.cost), default=None)
        return next(found, None)

    def cheaper(
        self, current: Found[TilePlan], trials: Values
    ) -> Iterator[Found[TilePlan]]:
        """
        Yield the legal plans of `trials` that are better than `current`.

        The cheapest comes first. Under `tool`, only the TOOL_TRIES plans that are the
        cheapest under `paper` are priced, in that order.
        """
        every = Candidates(self.template, trials)
        legal = every.factors_divide() & every.tiles_are_matrices()
        if not legal.any():
            return
        plan = current.made.plan
        kept = {factor: array[legal] for factor, array in trials.items()}
        better, prices = self.better(current, kept)
        fitting = np.flatnonzero(self.room(plan, better))
        for index in fitting[:TOOL_TRIES] if self.goal.model == "tool" else fitting:
            chosen, found = _chosen(plan, better, int(index)), None
            if self.goal.model == "tool":
                found = self.priced(chosen)
            elif self.is_legal(chosen):
                found = self._found(chosen, prices.estimate(index, self.goal.model))
            if found is not None and self.is_better(found, current):
                yield found

    def better(self, current: Found[TilePlan], trials: Values) -> tuple[Values, Prices]:
        """
        Return the plans of `trials` that cost less than `current`, and their prices.

        The cheapest is first. `tool` has no array form: for it all plans are returned,
        in the order of their prices under `paper`.
        """
        exact = self.goal.model != "tool"
        mappings = Candidates(self.template, trials).mappings(current.made.plan)
        hardware, model = self.template.hardware, self.goal.model if exact else "paper"
        prices = price_many(mappings, hardware, model)
        shape = next(iter(trials.values())).shape
        first, second = (
            np.broadcast_to(figure, shape)
            for figure in self.goal.rank(prices.latency, prices.energy)
        )
        most, then = self.goal.order(current.cost)
        less = (first < most) | ((first == most) & (second < then))
        order = np.lexsort((second, first))
        chosen = order[less[order]] if exact else order
        kept = {factor: array[chosen] for factor, array in trials.items()}
        return kept, prices.at(chosen)

    def room(self, plan: Plan, trials: Values) -> NDArray[np.bool_]:
        """Return which of `trials` fit, by liveness and by the COMET tool's count."""
        candidates = Candidates(self.template, trials)
        tool = room_many(candidates.mappings(plan), self.template.hardware)
        return np.broadcast_to(candidates.fits_levels(), tool.shape) & tool

    def reordered(self, current: Found[TilePlan]) -> Found[TilePlan] | None:
        """Return the best plan with another loop order, None if none is better."""
        best, plan = current, current.made.plan
        for ordered in _orders(plan, self.template.leaders):
            if (estimate := self.estimate(ordered)) is not None:
                found = self._found(ordered, estimate)
                if self.is_better(found, best) and self.is_legal(ordered):
                    best = found
        return None if best is current else best

    def is_better(self, found: Found[TilePlan], than: Found[TilePlan]) -> bool:
        """Return whether one plan costs less than another."""
        return self.goal.order(found.cost) < self.goal.order(than.cost)

    def priced(self, plan: Plan) -> Found[TilePlan] | None:
        """Return a plan that fits with its cost, None if the tool rejects it."""
        estimate = self.estimate(plan) if self.is_legal(plan) else None
        return None if estimate is None else self._found(plan, estimate)

    def estimate(self, plan: Plan) -> Estimate | None:
        """Return the cost of a plan that fits, None if the model cannot price it."""
        rows = tuple(plan.items())
        if rows not in self.known:
            self.known[rows] = self._price(plan)
        return self.known[rows]

    def is_legal(self, plan: Plan) -> bool:
        """Return whether the COMET tool and the model accept a plan that fits."""
        if self.goal.model == "tool":  # which checks it as well
            return self.estimate(plan) is not None
        rows = tuple(plan.items())
        if rows not in self.legal:
            self.legal[rows] = self._check(plan, counts=True)
        return self.legal[rows]

    def _found(self, plan: Plan, estimate: Estimate) -> Found[TilePlan]:
        made = TilePlan(self.template, plan, estimate)
        return Found(made, cost_of(estimate), total_figures(estimate).limit)

    def _check(self, plan: Plan, *, counts: bool) -> bool:
        hardware = self.template.hardware
        try:
            problem = self.template.problem_for(plan)
            extents = check_tool(problem, hardware, counts=counts)
            if self.goal.model == "paper":
                check_sizes(problem, hardware, extents)
        except CostError:
            return False
        return True

    def _price(self, plan: Plan) -> Estimate | None:
        try:
            problem = self.template.problem_for(plan)
            return price(problem, self.template.hardware, self.goal.model)
        except CostError:
            return None


def factors_of(plan: Plan) -> dict[Factor, int]:
    """Return the factor of every loop of a plan."""
    return {(key, dim): factor for key, rows in plan.items() for dim, factor in rows}


def samples(template: Template, plan: Plan, fixed: Mapping[Factor, int]) -> Values:
    """
    Return random factors for the loops of a plan, the same at every call.

    Loops with one leader have the same factor, unless it is `fixed`.
    """
    random = np.random.default_rng(0)
    leaders, factors = template.leaders, factors_of(plan)
    chosen = {
        factor: random.choice(some_divisors(template.extent[factor]), SAMPLES)
        for factor in factors
        if leaders[factor] == factor
    }
    chosen |= {factor: np.full(SAMPLES, only) for factor, only in fixed.items()}
    return {factor: chosen.get(factor, chosen[leaders[factor]]) for factor in factors}


def neighbours(
    template: Template, plan: Plan, leaders: Mapping[Factor, Factor]
) -> Values:
    """
    Return the plans that differ from `plan` in one factor, or in two related ones.

    Factors are related if they are of one dimension or key. Loops with one leader count
    as one factor.
    """
    current = factors_of(plan)
    alike: dict[Factor, list[Factor]] = {}
    for factor in current:
        alike.setdefault(leaders[factor], []).append(factor)
    others = {
        leader: np.asarray([n for n in some_divisors(extent) if n != current[leader]])
        for leader, extent in ((each, template.extent[each]) for each in alike)
    }
    moves = [(leader,) for leader in alike] + [
        (second, first)
        for first, second in combinations(alike, 2)
        if _related(alike[first], alike[second])
    ]
    sizes = [prod(others[leader].size for leader in move) for move in moves]
    columns = {factor: np.full(sum(sizes), n) for factor, n in current.items()}
    for move, size, end in zip(moves, sizes, accumulate(sizes), strict=True):
        inner = size
        for leader in move:  # the last one changes from row to row
            inner //= max(others[leader].size, 1)
            values = np.resize(np.repeat(others[leader], inner), size)
            for factor in alike[leader]:
                columns[factor][end - size : end] = values
    return columns


def _related(first: Sequence[Factor], second: Sequence[Factor]) -> bool:
    """Return whether a loop of each has the same dimension or the same key."""
    keys, dims = ({*part} for part in zip(*first, strict=True))
    return any(key in keys or dim in dims for key, dim in second)


def _orders(plan: Plan, leaders: Mapping[Factor, Factor]) -> Iterator[Plan]:
    """
    Yield the plan with every other order of the loops of a key.

    Loops of factor 1 stay innermost. Loops with one leader stay adjacent, and keys with
    the same leaders get the same order.
    """
    alike: dict[tuple[Factor, ...], list[Key]] = {}
    for key, rows in plan.items():
        roles = dict.fromkeys(leaders[key, dim] for dim, n in rows if n > 1)
        alike.setdefault(tuple(roles), []).append(key)
    for roles, keys in alike.items():
        for order in islice(permutations(roles), 1, None):
            yield {**plan, **{key: _ordered(plan, key, order, leaders) for key in keys}}


def _ordered(
    plan: Plan, key: Key, order: Sequence[Factor], leaders: Mapping[Factor, Factor]
) -> Loops:
    """Return the loops of a key in an order of leaders, loops of factor 1 innermost."""
    rank = {role: position for position, role in enumerate(order)}
    last = len(order)
    return tuple(
        sorted(
            plan[key],
            key=lambda loop: rank[leaders[key, loop[0]]] if loop[1] > 1 else last,
        )
    )


def _chosen(plan: Plan, values: Values, index: int) -> Plan:
    return {
        key: tuple((dim, int(values[key, dim][index])) for dim, _ in rows)
        for key, rows in plan.items()
    }


def _fits(template: Template, plan: Plan) -> bool:
    single = _single(template, plan)
    return bool((single.fits_levels() & single.tiles_are_matrices()).all())


def _single(template: Template, plan: Plan) -> Candidates:
    rows = ((key, dim, f) for key, rows in plan.items() for dim, f in rows)
    values = {(key, dim): np.asarray([factor]) for key, dim, factor in rows}
    return Candidates(template, values)


class NothingFits(PassFailedException):
    """No tiles of a tile tree fit the memory levels, not even the finest."""


def _failure(template: Template, plan: Plan, model: ModelName) -> PassFailedException:
    """Return the error that says why the finest tiles are not legal."""
    single = _single(template, plan)
    sizes = Sizes(
        lambda value: int(np.max(single.bytes_of(value))),
        lambda node: int(np.max(single.iterations(node))),
    )
    block = compute_block(template.func)
    if (found := overflow(block, template.system, sizes)) is not None:
        return NothingFits(
            "tile: no valid mapping; with the finest tiles, "
            f"{describe_overflow(found, template.system)}"
            f"{_uncut(single, found.level)}: fuse less, give products loops of their "
            "own (loops=separate), shard another dimension, or stream"
        )
    problem = template.problem_for(plan)
    try:
        check_summed(problem, template.hardware)
        check_tool(problem, template.hardware)
        price(problem, template.hardware, model)
    except CostError as error:
        return PassFailedException(f"tile: no valid mapping; {error}")
    return PassFailedException("tile: no valid mapping")


def _uncut(single: Candidates, level: str) -> str:
    """
    Return the part of an error about the largest tile at a level.

    It names the dimensions that no loop around the tile may cut, empty if there are
    none.
    """
    template = single.template
    tiles = [
        (int(np.max(single.bytes_of(value))), block, value)
        for block in template.above
        for value in (*block.args, *(r for op in block.ops for r in op.results))
        if level_of(value) == level
    ]
    _, block, largest = max(tiles, key=lambda tile: tile[0])
    around = {template.keys[node] for node in template.above[block]}
    looped = {dim for key in around for dim in template.loops[key]}
    whole = [
        f"{dim} = {extent}"
        for dim, extent in extents_of(largest).items()
        if extent > 1 and dim not in looped
    ]
    if not whole:
        return ""
    return (
        f"; no loop around it may cut {' and '.join(whole)}, as ops of the same nest "
        "need whole reductions over them"
    )
