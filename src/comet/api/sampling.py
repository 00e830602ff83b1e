"""
A search by the samplers of Optuna, for spaces that are too large for an exact one.

A sample is a point in the unit cube. One coordinate chooses the structure, one per
factor chooses among the remaining divisors, and one per loop its place in the order.
The bounds are those with which the exact search starts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Protocol, cast

from comet.api.question import Sampler, Sampling
from comet.cost.accelerator.factors import Loops
from comet.cost.estimate import CostError
from comet.passes.explore.certificate import key_text
from comet.passes.explore.state import Item, State
from comet.passes.schedule.tile.accelerator import TilePlan, tile_search
from comet.passes.schedule.tile.candidates import single
from comet.passes.schedule.tile.factor_space import FactorSpace
from comet.passes.schedule.tile.template import Factor, Key, Plan
from comet.passes.search import Found, Goal
from comet.tools.extras import loaded

PENALTY = 1e300
"""The value of an illegal sample; the samplers compare values only."""


class Trial(Protocol):
    """A sample of Optuna."""

    def suggest_float(self, name: str, low: float, high: float, /) -> float: ...


class Study(Protocol):
    """A search of Optuna."""

    def ask(self) -> Trial: ...

    def tell(self, trial: Trial, values: float, /) -> object: ...


def new_study(sampling: Sampling) -> Study:
    """Return a study; raises UsageError if Optuna is not installed."""
    optuna = loaded("optuna", "search", "a sampler")
    if sampling.sampler == "cmaes":
        loaded("cmaes", "search", "the sampler cmaes")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    samplers: dict[Sampler, object] = {
        "tpe": optuna.samplers.TPESampler(seed=sampling.seed),
        "cmaes": optuna.samplers.CmaEsSampler(
            seed=sampling.seed, warn_independent_sampling=False
        ),
        "nsga2": optuna.samplers.NSGAIISampler(seed=sampling.seed),
    }
    return cast(Study, optuna.create_study(sampler=samplers[sampling.sampler]))


@dataclass(frozen=True)
class Samples:
    """A walk that prices samples instead of pruning the search space."""

    sampling: Sampling

    def __call__(self, state: State, end: float) -> None:
        """Take samples until all are taken, the gap is closed, or the time is `end`."""
        study = new_study(self.sampling)
        state.start()
        if not state.is_above(state.rest):
            _realize_all(state, end)
        if items := state.open_items():
            names = [*dict.fromkeys(name for item in items for name in _names(item))]
            for _ in range(self.sampling.samples):
                if monotonic() >= end or not state.open_items():
                    break
                trial = study.ask()
                if self.sampling.sampler == "cmaes":  # which needs all coordinates
                    for name in names:
                        trial.suggest_float(name, 0, 1)
                item = items[_place(trial, "structure", len(items))]
                study.tell(trial, _value(state, item, trial))


def _realize_all(state: State, end: float) -> None:
    """Realize the structures, which gives each a bound, until the time is up."""
    for structure in state.space.structures(state.closes):
        item = state.noted(structure)
        if not state.is_closed(item):
            state.realized(item)
        state.notify(state)
        if monotonic() >= end:
            return
    state.rest = inf


def _value(state: State, item: Item, trial: Trial) -> float:
    """Price a sample, keep it if it is the best, and return its value."""
    assert item.space is not None
    if (plan := sampled_plan(item.space, trial)) is None:
        return PENALTY
    if (found := priced(item.space, state.goal, plan)) is None:
        return PENALTY
    item.evaluated += 1
    if state.is_better(found.cost):
        state.take(item, found)
        state.notify(state)
    return min(PENALTY, state.goal.order(found.cost)[0])


def _place(trial: Trial, name: str, count: int) -> int:
    """Return the position of a sample's choice, below `count`."""
    return min(int(trial.suggest_float(name, 0, 1) * count), count - 1)


def _names(item: Item) -> Iterator[str]:
    """Yield the names of the coordinates that determine a mapping of `item`."""
    assert item.space is not None
    for key in item.space.keys:
        for dim in item.space.template.loops[key]:
            yield _factor_name(key, dim)
            yield _order_name(key, dim)


def _factor_name(key: Key, dim: str) -> str:
    return f"{key_text(key)} {dim}"


def _order_name(key: Key, dim: str) -> str:
    return f"{key_text(key)} place of {dim}"


def sampled_plan(space: FactorSpace, trial: Trial) -> Plan | None:
    """Return the loops that a sample chooses; None if a fixed factor is illegal."""
    chosen: dict[Factor, int] = {}
    plan: dict[Key, Loops] = {}
    for key in space.keys:
        dims = space.template.loops[key]
        for dim in dims:
            values = space.dividing_values((key, dim), chosen)
            if not values.size:
                return None
            place = _place(trial, _factor_name(key, dim), values.size)
            chosen[key, dim] = int(values[place])
        places = {dim: trial.suggest_float(_order_name(key, dim), 0, 1) for dim in dims}
        plan[key] = tuple(
            (dim, chosen[key, dim]) for dim in sorted(dims, key=lambda dim: places[dim])
        )
    return plan


def priced(space: FactorSpace, goal: Goal, plan: Plan) -> Found[TilePlan] | None:
    """Return a plan with its cost, None if it is illegal."""
    only, search = single(space.template, plan), tile_search(space.template, goal)
    try:
        legal = only.tiles_are_matrices() & search.room(plan, only)
    except CostError:
        return None
    return search.priced(plan) if legal.all() else None
