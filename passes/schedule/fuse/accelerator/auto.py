"""The choice between fusion strategies on accelerators, by cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Literal, get_args

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp
from comet.dialects.compound import FoldOp
from comet.dialects.cost import annotate
from comet.passes.analysis.functions import in_copy
from comet.passes.annotate_cost.accelerator import total_figures
from comet.passes.schedule.fuse.accelerator.plan import Fusible, fuse_function
from comet.passes.schedule.fuse.rewrite import FusionPlan
from comet.passes.schedule.fuse.strategy import (
    CHUNKS,
    LOOPS,
    STRATEGIES,
    STRATEGY,
    Chunks,
    Loops,
    Name,
    Strategy,
)
from comet.passes.schedule.plan_string import PLAN, format_plan
from comet.passes.schedule.tile.accelerator import TilePlan, search
from comet.passes.schedule.tile.template import make_template
from comet.passes.search import (
    LATENCY,
    Candidate,
    Found,
    Goal,
    cheapest,
    cost_of,
    refuse,
)


def open_strategies(
    func: FuncOp,
    strategy: Name | Literal["auto"],
    chunks: Chunks | Literal["auto"],
    loops: Loops | Literal["auto"],
) -> tuple[Strategy, ...]:
    """Return the strategies for `func` that the options allow, at least one."""
    has_folds = any(isinstance(op, FoldOp) for op in func.walk())
    strategies = STRATEGIES if strategy == "auto" else (strategy,)
    places: tuple[Chunks, ...] = ("shared", "root") if has_folds else ("shared",)
    if chunks != "auto":
        places = (chunks,)
    kinds: tuple[Loops, ...] = get_args(Loops) if loops == "auto" else (loops,)
    chosen = product(kinds, strategies, places)
    return tuple(Strategy(name, place, kind) for kind, name, place in chosen)


def different_strategies(
    func: FuncOp, system: SystemOp, choices: Sequence[Strategy]
) -> Iterator[tuple[str, Strategy, FusionPlan | PassFailedException]]:
    """
    Yield strategies for `func`: label, strategy, and fusion plan or error.

    Without strategies whose plan is equal to an earlier one.
    """
    try:
        fusible = Fusible.of(func, system)
    except PassFailedException as error:
        yield from ((_label(choice, choices), choice, error) for choice in choices)
        return
    plans: list[FusionPlan] = []
    for choice in choices:
        label = _label(choice, choices)
        try:
            plan = fusible.plan(choice)
        except PassFailedException as error:
            yield label, choice, error
            continue
        if plan not in plans:
            plans.append(plan)
            yield label, choice, plan


def fuse_cheapest(
    func: FuncOp, system: SystemOp, choices: Sequence[Strategy], goal: Goal
) -> None:
    """
    Fuse `func` with the strategy of the cheapest mapping.

    The strategy and its factors become attributes of `func`. Raises PassFailedException
    if no strategy has a mapping that fits.
    """
    place = f"@{func.sym_name.data}"
    candidates = [
        Candidate(
            label,
            partial(refuse, plan)
            if isinstance(plan, PassFailedException)
            else partial(price_strategy, func, system, choice, goal),
        )
        for label, choice, plan in different_strategies(func, system, choices)
    ]
    strategy, plan = cheapest("strategy", place, candidates, goal).result
    fuse_function(func, system, strategy)
    func.attributes[STRATEGY] = StringAttr(strategy.name)
    func.attributes |= dict(notes_of(strategy, choices))
    func.attributes[PLAN] = StringAttr(format_plan(plan.entries()))
    annotate(func, total_figures(plan.estimate))


def notes_of(
    strategy: Strategy, choices: Sequence[Strategy]
) -> Iterator[tuple[str, Attribute]]:
    """Yield the attributes for the options of a strategy that were open."""
    if len({choice.chunks for choice in choices}) > 1:
        yield CHUNKS, StringAttr(strategy.chunks)
    if len({choice.loops for choice in choices}) > 1:
        yield LOOPS, StringAttr(strategy.loops)


def _label(strategy: Strategy, choices: Sequence[Strategy]) -> str:
    """Return the label of a strategy: the options in which choices differ."""
    chunks = len({choice.chunks for choice in choices}) > 1
    chosen = f" chunks={strategy.chunks}" if chunks else ""
    loops = " loops=separate" if strategy.loops == "separate" else ""
    return strategy.name + chosen + loops


def price_strategy(
    func: FuncOp, system: SystemOp, strategy: Strategy, goal: Goal = LATENCY
) -> Found[tuple[Strategy, TilePlan]]:
    """
    Return the strategy with the best factors for a fused copy of `func`.

    Raises PassFailedException if the strategy has no mapping that fits.
    """
    copy = in_copy(func)
    fuse_function(copy, system, strategy)
    plan = search(make_template(copy, system), goal)
    cost = cost_of(plan.estimate)
    return Found((strategy, plan), cost, total_figures(plan.estimate).limit)
