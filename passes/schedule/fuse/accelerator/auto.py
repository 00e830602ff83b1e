"""The choice between fusion strategies on accelerators, by the cost of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp
from comet.dialects.compound import FoldOp
from comet.dialects.cost import annotate
from comet.passes.analysis.functions import compute_functions
from comet.passes.annotate_cost import total_figures
from comet.passes.schedule.fuse import accelerator as fuse_accelerator
from comet.passes.schedule.fuse.accelerator import Chunks, Strategy
from comet.passes.schedule.fuse.notes import CHUNKS, STRATEGY
from comet.passes.schedule.plan_string import PLAN
from comet.passes.schedule.tile.accelerator import Choice, search
from comet.passes.schedule.tile.template import make_template

STRATEGIES: tuple[Strategy, ...] = ("full", "partial", "apart", "none")

Way: TypeAlias = tuple[Strategy, Chunks]
"""A strategy, and where the loops of folds stand."""


@dataclass(frozen=True)
class FusionChoice:
    """The cheapest way, and the factors it is cheapest with."""

    way: Way
    choice: Choice


def ways(
    func: FuncOp, strategy: Strategy | Literal["auto"], chunks: Chunks | Literal["auto"]
) -> tuple[Way, ...]:
    """Return the ways to fuse `func` that options leave open, at least one."""
    has_folds = any(isinstance(op, FoldOp) for op in func.walk())
    strategies = STRATEGIES if strategy == "auto" else (strategy,)
    places: tuple[Chunks, ...] = ("shared", "root") if has_folds else ("shared",)
    if chunks != "auto":
        places = (chunks,)
    return tuple(product(strategies, places))


def fuse_function(func: FuncOp, system: SystemOp, open_ways: Sequence[Way]) -> None:
    """
    Fuse `func` the way whose best mapping is cheapest, and note it and its plan.

    Raises PassFailedException if none has a mapping that fits.
    """
    best = choose_way(func, system, open_ways)
    strategy, chunks = best.way
    fuse_accelerator.fuse_function(func, system, strategy, chunks)
    func.attributes[STRATEGY] = StringAttr(strategy)
    if len({place for _, place in open_ways}) > 1:
        func.attributes[CHUNKS] = StringAttr(chunks)
    func.attributes[PLAN] = StringAttr(best.choice.text())
    annotate(func, total_figures(best.choice.estimate))


def choose_way(
    func: FuncOp, system: SystemOp, open_ways: Sequence[Way]
) -> FusionChoice:
    """
    Return the way whose best mapping has the lowest latency, then energy.

    Raises PassFailedException with the reason of the last one if none fits.
    """
    found: list[FusionChoice] = []
    failure: PassFailedException | None = None
    for way in open_ways:
        try:
            found.append(FusionChoice(way, price_strategy(func, system, *way)))
        except PassFailedException as error:
            failure = error
    if not found:
        raise failure or PassFailedException("fuse: there is no strategy")
    return min(
        found, key=lambda c: (c.choice.estimate.latency, c.choice.estimate.energy)
    )


def price_strategy(
    func: FuncOp, system: SystemOp, strategy: Strategy, chunks: Chunks = "shared"
) -> Choice:
    """
    Return the best factors of a fused copy of `func`.

    Raises PassFailedException if the strategy has no mapping that fits.
    """
    module = func.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    copy = module.clone()
    for other in compute_functions(copy):
        if other.sym_name == func.sym_name:
            fuse_accelerator.fuse_function(other, system, strategy, chunks)
            return search(make_template(other, system))
    raise PassFailedException(f"fuse: there is no function @{func.sym_name.data}")
