"""The choice between fusion strategies on accelerators, by the cost of each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Literal, TypeAlias

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from comet.dialects.arch import SystemOp
from comet.dialects.compound import FoldOp
from comet.dialects.cost import annotate
from comet.passes.analysis.functions import compute_functions
from comet.passes.annotate_cost import total_figures
from comet.passes.schedule.fuse import accelerator as fuse_accelerator
from comet.passes.schedule.fuse.accelerator import Chunks, Strategy
from comet.passes.schedule.fuse.notes import CHUNKS, STRATEGY
from comet.passes.schedule.plan_string import PLAN
from comet.passes.schedule.tile.accelerator import TilePlan, search
from comet.passes.schedule.tile.template import make_template
from comet.passes.search import LATENCY, Candidate, Cost, Found, Goal, cheapest

STRATEGIES: tuple[Strategy, ...] = ("full", "partial", "apart", "none")

Form: TypeAlias = tuple[Strategy, Chunks]
"""A strategy, and where the loops of folds stand."""


def forms(
    func: FuncOp, strategy: Strategy | Literal["auto"], chunks: Chunks | Literal["auto"]
) -> tuple[Form, ...]:
    """Return the ways to fuse `func` that options leave open, at least one."""
    has_folds = any(isinstance(op, FoldOp) for op in func.walk())
    strategies = STRATEGIES if strategy == "auto" else (strategy,)
    places: tuple[Chunks, ...] = ("shared", "root") if has_folds else ("shared",)
    if chunks != "auto":
        places = (chunks,)
    return tuple(product(strategies, places))


def fuse_function(
    func: FuncOp, system: SystemOp, open_forms: Sequence[Form], goal: Goal = LATENCY
) -> None:
    """
    Fuse `func` in the form whose best mapping is cheapest, and note it and its plan.

    Raises PassFailedException if none has a mapping that fits.
    """
    several_places = len({chunks for _, chunks in open_forms}) > 1
    place = f"@{func.sym_name.data}"
    candidates = [
        Candidate(
            f"{strategy} chunks={chunks}" if several_places else strategy,
            partial(price_form, func, system, (strategy, chunks), goal),
        )
        for strategy, chunks in open_forms
    ]
    (strategy, chunks), plan = cheapest("strategy", place, candidates, goal).made
    fuse_accelerator.fuse_function(func, system, strategy, chunks)
    func.attributes[STRATEGY] = StringAttr(strategy)
    if several_places:
        func.attributes[CHUNKS] = StringAttr(chunks)
    func.attributes[PLAN] = StringAttr(plan.text())
    annotate(func, total_figures(plan.estimate))


def price_form(
    func: FuncOp, system: SystemOp, form: Form, goal: Goal = LATENCY
) -> Found[tuple[Form, TilePlan]]:
    """
    Return the best factors of a fused copy of `func`.

    Raises PassFailedException if the form has no mapping that fits.
    """
    module = func.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    copy = module.clone()
    other = next(f for f in compute_functions(copy) if f.sym_name == func.sym_name)
    fuse_accelerator.fuse_function(other, system, *form)
    plan = search(make_template(other, system), goal)
    cost = Cost(plan.estimate.latency, plan.estimate.energy)
    return Found((form, plan), cost, total_figures(plan.estimate).limit)
