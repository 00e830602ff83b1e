"""
The search for factors on accelerators: sampling, then steepest descent.

It starts from the best of many random plans, or the finest tiles, which fit if any do.
Each step prices all plans that differ in one factor, in two related ones, or in one
loop order, and takes the best, until none is better. Equal latency is decided by
energy. The model `tool` prices one plan at a time, so its descent starts from the
result of `paper`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from math import inf
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from comet.cost.accelerator.bindings import is_pipeline
from comet.cost.accelerator.bounds import completion_bound
from comet.cost.accelerator.legality import (
    check_bindings,
    check_factors,
    check_sizes,
    check_structure,
)
from comet.cost.accelerator.model import Prices, price, room_many
from comet.cost.accelerator.problem import walk_tiles
from comet.cost.estimate import CostError, Estimate
from comet.passes.annotate_cost.accelerator import total_figures
from comet.passes.schedule.plan_string import PlanEntry
from comet.passes.schedule.tile.candidates import Candidates, single
from comet.passes.schedule.tile.factor_space import FactorSpace
from comet.passes.schedule.tile.finest import finest, finest_with, in_one_order
from comet.passes.schedule.tile.formulas import Formulas
from comet.passes.schedule.tile.misfit import misfit_error
from comet.passes.schedule.tile.moves import neighbours, orders_of, reorderings, samples
from comet.passes.schedule.tile.template import (
    Factor,
    FrozenPlan,
    Plan,
    Template,
    Values,
    factors_of,
    select,
)
from comet.passes.search import LATENCY, Cost, Found, Goal, cost_of, descend, session

STARTS = 3
"""From how many random plans the search descends at most."""

TOOL_TRIES = 16
"""How many plans of a step `tool` prices, the cheapest under `paper` first."""

TOOL_NEAR = 4 / 3
"""
A descent under `tool` ends at a plan that costs more than this many times the best
candidate of an outer choice, or the result of `paper`.
"""


@dataclass(frozen=True)
class TilePlan:
    """The factors and loop orders of a template, and their cost."""

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
    place, space = f"@{template.func.sym_name.data}", tile_search(template, goal, fixed)
    best = descend("tile factors", place, space, goal).result
    if not space.is_legal(best.plan):
        raise misfit_error(template, best.plan, goal.model)
    return best


@dataclass(frozen=True)
class TileSearch:
    """Prices plans of a template and their neighbours as arrays, for `descend`."""

    template: Template
    goal: Goal
    fixed: Mapping[Factor, int] = field(default_factory=dict[Factor, int])
    """The factors that are given, and not searched."""
    estimates: dict[FrozenPlan, Estimate | None] = field(
        default_factory=dict[FrozenPlan, Estimate | None]
    )
    """The results of `estimate`: every step tries the same loop orders again."""
    legal: dict[FrozenPlan, bool] = field(default_factory=dict[FrozenPlan, bool])
    """The results of `is_legal`."""

    def bound(self) -> Cost:
        """Return `floor` of a bound for all plans: that of the tree without loops."""
        whole = self.space.whole
        mappings, open_loops = self.space.mappings(whole), self.space.open_loops(whole)
        hardware, model = self.template.hardware, self.goal.guide
        latency, energy = completion_bound(mappings, hardware, open_loops, model)
        return self.goal.floor(Cost(float(latency), float(energy)))

    def start(self) -> Found[TilePlan]:
        """
        Return the finest tiles; raises PassFailedException if these do not fit.

        Nodes that the COMET files merge need one order of loops, which is tried last.
        """
        plan = self._finest()
        ordered = in_one_order(plan)
        for tried in (plan, ordered):
            if (found := self._priced_if_legal(tried)) is not None:
                return found
        raise misfit_error(self.template, ordered, self.goal.model)

    def _priced_if_legal(self, plan: Plan) -> Found[TilePlan] | None:
        """Return a plan with its cost, None if it is not legal."""
        if (found := self._by_sizes(plan)) is not None:
            return found
        fits = _fits(self.template, plan)
        if fits and (self.is_legal(plan) or self._check(plan, counts=False)):
            estimate = self.estimate(plan)
            if estimate is not None:
                return self._found(plan, estimate)
        return None

    def _by_sizes(self, plan: Plan) -> Found[TilePlan] | None:
        """Return a plan with its cost if sizes alone show that it is legal."""
        if not self._is_legal_by_sizes(plan):
            return None
        values = {factor: np.asarray([n]) for factor, n in factors_of(plan).items()}
        legal = self.formulas.are_tiles(values) & self._are_legal(plan, values)
        if not legal.all():
            return None
        prices = self.formulas.prices(plan, values)
        return self._found(plan, prices.estimate(0, self.goal.model))

    def sample(self, current: Found[TilePlan]) -> Sequence[Found[TilePlan]]:
        """Return the best of many random plans that are better, at most STARTS."""
        trials = samples(self.template, current.result.plan, self.fixed)
        (found,) = self.cheaper([current], [trials])
        return tuple(islice(found, STARTS))

    def _finest(self) -> Plan:
        """Return the finest tiles with the fixed factors."""
        if self.fixed:
            return finest_with(self.template, self.fixed)
        return finest(self.template)

    def neighbours(
        self, currents: Sequence[Found[TilePlan]]
    ) -> Sequence[Found[TilePlan] | None]:
        """Return the best neighbour of each plan, None where none is better."""
        trials = [self._around(current.result.plan) for current in currents]
        found = zip(currents, self.cheaper(currents, trials), strict=True)
        return [self.first(several) or self.reordered(plan) for plan, several in found]

    def _around(self, plan: Plan) -> Values:
        """Return the neighbours of a plan that have the fixed factors."""
        trials = neighbours(self.template, plan)
        matches = [trials[factor] == only for factor, only in self.fixed.items()]
        if not matches:
            return trials
        return select(trials, np.logical_and.reduce(matches))

    def first(self, found: Iterator[Found[TilePlan]]) -> Found[TilePlan] | None:
        """Return the best one of what `cheaper` found, None if there is none."""
        return next(found, None)

    def cheaper(
        self, currents: Sequence[Found[TilePlan]], trials: Sequence[Values]
    ) -> Sequence[Iterator[Found[TilePlan]]]:
        """
        Return for each of `currents` the legal ones of its `trials` that are better.

        The cheapest is the first; `tool` tries some, the cheapest under `paper` first.
        Trials with the same orders of loops are priced together.
        """
        by_orders: dict[tuple[tuple[str, ...], ...], list[int]] = {}
        for index, current in enumerate(currents):
            by_orders.setdefault(orders_of(current.result.plan), []).append(index)
        found: dict[int, Iterator[Found[TilePlan]]] = {}
        for members in by_orders.values():
            better = self._cheaper(
                [currents[index] for index in members],
                [trials[index] for index in members],
            )
            found |= zip(members, better, strict=True)
        return [found[index] for index in range(len(currents))]

    def _cheaper(
        self, currents: Sequence[Found[TilePlan]], trials: Sequence[Values]
    ) -> Sequence[Iterator[Found[TilePlan]]]:
        """Return the result of `cheaper` for plans with the same orders of loops."""
        plan = currents[0].result.plan
        joined = {f: np.concatenate([trial[f] for trial in trials]) for f in trials[0]}
        sizes = [next(iter(trial.values())).size for trial in trials]
        owner = np.repeat(np.arange(len(currents)), sizes)
        legal = self.formulas.are_tiles(joined)
        if not legal.any():
            return [iter(()) for _ in currents]
        joined, owner = select(joined, legal), owner[legal]
        better, prices = self.better(currents, joined, owner)
        joined, owner = select(joined, better), owner[better]
        if at_once := self._is_legal_by_sizes(plan):
            legal = self._are_legal(plan, joined)
        else:
            legal = self.room(plan, Candidates(self.template, joined))
        return [
            self._legal(
                current,
                joined,
                prices,
                np.flatnonzero(legal & (owner == index)),
                checked=at_once,
            )
            for index, current in enumerate(currents)
        ]

    def _is_legal_by_sizes(self, plan: Plan) -> bool:
        """
        Return whether sizes alone decide which plans with these loop orders are legal.

        They do if loops agree in order, and nothing is a pipeline with stages.
        """
        problem = self.template.problem
        return (
            self._is_legal_tree
            and not any(map(is_pipeline, walk_tiles(problem.root)))
            and self.template.agrees(plan)
        )

    def _are_legal(self, plan: Plan, values: Values) -> NDArray[np.bool_]:
        """Return which of `values` are legal, if sizes alone decide that."""
        live = self.goal.model == "paper"
        return self.formulas.are_legal(plan, values, live=live)

    def _legal(
        self,
        current: Found[TilePlan],
        trials: Values,
        prices: Prices,
        rows: NDArray[np.intp],
        *,
        checked: bool,
    ) -> Iterator[Found[TilePlan]]:
        """
        Yield those of some rows of `trials` that are legal and below `current`.

        Of `checked` rows it is known that they are legal.
        """
        for index in rows:
            plan = _chosen(current.result.plan, trials, int(index))
            if checked or self.is_legal(plan):
                found = self._found(plan, prices.estimate(index, self.goal.model))
                if self.is_better(found, current):
                    yield found

    def better(
        self,
        currents: Sequence[Found[TilePlan]],
        trials: Values,
        owner: NDArray[np.intp],
    ) -> tuple[NDArray[np.intp], Prices]:
        """
        Return which of `trials` cost less than their owner, one of `currents`, and
        their prices, cheapest first.
        """
        prices = self.formulas.prices(currents[0].result.plan, trials)
        first, second = self.goal.rank(prices.latency, prices.energy)
        orders = np.asarray([self.goal.order(current.cost) for current in currents])
        limit, then = orders[owner].T
        less = (first < limit) | ((first == limit) & (second < then))
        order = np.lexsort((second, first))
        chosen = self._below(order, less)
        return chosen, prices.at(chosen)

    def _below(
        self, order: NDArray[np.intp], less: NDArray[np.bool_]
    ) -> NDArray[np.intp]:
        """Return those of `order` that cost `less`."""
        return order[less[order]]

    def room(self, plan: Plan, candidates: Candidates) -> NDArray[np.bool_]:
        """Return which candidates fit, by liveness and by the COMET tool's count."""
        tool = room_many(candidates.mappings(plan), self.template.hardware)
        return np.broadcast_to(candidates.fits_levels(), tool.shape) & tool

    def reordered(self, current: Found[TilePlan]) -> Found[TilePlan] | None:
        """Return the best plan with another loop order, None if none is better."""
        best, plan = current, current.result.plan
        seen = {self.space.reuse_of(plan)}
        for ordered in reorderings(plan, self.template.leaders):
            if (reuse := self.space.reuse_of(ordered)) in seen:
                continue
            seen.add(reuse)
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
        frozen = tuple(plan.items())
        if frozen not in self.estimates:
            self.estimates[frozen] = self._price(plan)
        return self.estimates[frozen]

    def is_legal(self, plan: Plan) -> bool:
        """Return whether the COMET tool and the model accept a plan that fits."""
        frozen = tuple(plan.items())
        if frozen not in self.legal:
            self.legal[frozen] = self._check(plan, counts=True)
        return self.legal[frozen]

    def _found(self, plan: Plan, estimate: Estimate) -> Found[TilePlan]:
        result = TilePlan(self.template, plan, estimate)
        return Found(result, cost_of(estimate), total_figures(estimate).limit)

    @cached_property
    def space(self) -> FactorSpace:
        """All plans, of which the search tries some."""
        return FactorSpace.of(self.template)

    @cached_property
    def formulas(self) -> Formulas:
        """The formulas that price many plans at once."""
        return Formulas(self.template, self.goal.guide)

    @cached_property
    def _is_legal_tree(self) -> bool:
        """Whether the COMET tool accepts the tree, whatever its factors are."""
        try:
            check_structure(self.template.problem, self.template.hardware)
            check_bindings(self.template.problem)
        except CostError:
            return False
        return True

    def _check(self, plan: Plan, *, counts: bool) -> bool:
        hardware = self.template.hardware
        if not self._is_legal_tree:
            return False
        try:
            problem = self.template.problem_for(plan)
            extents = check_factors(problem, hardware, counts=counts)
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


@dataclass(frozen=True)
class ToolSearch(TileSearch):
    """
    The same under `tool`, which prices one plan at a time.

    The guide, `paper`, ranks the plans of a step, and finds where the descent starts.
    """

    @cached_property
    def guided(self) -> Found[TilePlan] | None:
        """The best plan by the guide, None if the tool cannot price it."""
        guide = Goal(self.goal.guide, self.goal.objective)
        with session() as current, current.under(guide.model):
            return self.priced(search(self.template, guide, self.fixed).plan)

    def start(self) -> Found[TilePlan]:
        """
        Return `guided`, or the finest tiles; raises PassFailedException without any.

        These have the most iterations, which may be too many for the tool to count.
        """
        return self.guided or super().start()

    def sample(self, current: Found[TilePlan]) -> Sequence[Found[TilePlan]]:
        """Return the best random plan and this one, none if this one is far."""
        if self._is_far(current):
            return ()
        plan = self._finest()
        anything = replace(
            current, result=replace(current.result, plan=plan), cost=Cost(inf)
        )
        trials = samples(self.template, plan, self.fixed)
        best = self.first(self.cheaper([anything], [trials])[0])
        return () if best is None else (best, current)

    def neighbours(
        self, currents: Sequence[Found[TilePlan]]
    ) -> Sequence[Found[TilePlan] | None]:
        """Return the best neighbour of each plan that is not far, None for others."""
        far = [self._is_far(current) for current in currents]
        near = [plan for plan, is_far in zip(currents, far, strict=True) if not is_far]
        better = iter(super().neighbours(near))
        return [None if is_far else next(better) for is_far in far]

    def _is_far(self, current: Found[TilePlan]) -> bool:
        """Return whether a plan costs more than TOOL_NEAR times a known one."""
        with session() as opened:
            costs = list(opened.ceilings)
        if self.guided is not None:
            costs.append(self.guided.cost)
        value, _ = self.goal.rank(current.cost.latency, current.cost.energy)
        values = (self.goal.order(cost)[0] for cost in costs)
        return value > TOOL_NEAR * min(values, default=inf)

    def first(self, found: Iterator[Found[TilePlan]]) -> Found[TilePlan] | None:
        """Return the cheapest of what `cheaper` found, None if there is none."""
        return min(found, key=lambda each: self.goal.order(each.cost), default=None)

    def _legal(
        self,
        current: Found[TilePlan],
        trials: Values,
        prices: Prices,
        rows: NDArray[np.intp],
        *,
        checked: bool,
    ) -> Iterator[Found[TilePlan]]:
        """Yield the legal ones of the first rows that are below `current`."""
        del prices, checked
        for index in rows[:TOOL_TRIES]:
            found = self.priced(_chosen(current.result.plan, trials, int(index)))
            if found is not None and self.is_better(found, current):
                yield found

    def _below(
        self, order: NDArray[np.intp], less: NDArray[np.bool_]
    ) -> NDArray[np.intp]:
        """Return all: what the guide prices higher may be cheaper."""
        return order

    def _is_legal_by_sizes(self, plan: Plan) -> bool:
        """Return False: whether the tool prices a plan says whether it is legal."""
        return False

    def is_legal(self, plan: Plan) -> bool:
        """Return whether the tool accepts a plan, which it does if it prices it."""
        return self.estimate(plan) is not None


def tile_search(
    template: Template,
    goal: Goal,
    fixed: Mapping[Factor, int] = MappingProxyType({}),
) -> TileSearch:
    """Return the search under the model of `goal`."""
    kind = ToolSearch if goal.model == "tool" else TileSearch
    return kind(template, goal, fixed)


def _chosen(plan: Plan, values: Values, index: int) -> Plan:
    return {
        key: tuple((dim, int(values[key, dim][index])) for dim, _ in loops)
        for key, loops in plan.items()
    }


def _fits(template: Template, plan: Plan) -> bool:
    only = single(template, plan)
    return bool((only.fits_levels() & only.tiles_are_matrices()).all())
