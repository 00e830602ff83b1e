"""The choice between fusion strategies on accelerators, by the cost of each."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp
from comet.dialects.cost import annotate
from comet.passes import fuse_accelerator
from comet.passes.annotate_cost import total_figures
from comet.passes.functions import compute_functions
from comet.passes.plan_string import PLAN
from comet.passes.tile_accelerator import Choice, search
from comet.passes.tile_template import make_template

STRATEGY = "comet.strategy"
"""The attribute of a function that names the strategy that was chosen."""


@dataclass(frozen=True)
class FusionChoice:
    """The cheapest strategy, and the factors it is cheapest with."""

    strategy: fuse_accelerator.Strategy
    choice: Choice


def fuse_function(func: FuncOp, system: SystemOp) -> None:
    """
    Fuse `func` by the strategy whose best mapping is cheapest, and note its plan.

    Raises PassFailedException if no strategy has a mapping that fits.
    """
    best = choose_strategy(func, system)
    fuse_accelerator.fuse_function(func, system, best.strategy)
    func.attributes[STRATEGY] = StringAttr(best.strategy)
    func.attributes[PLAN] = StringAttr(best.choice.text())
    annotate(func, total_figures(best.choice.estimate))


def choose_strategy(func: FuncOp, system: SystemOp) -> FusionChoice:
    """
    Return the strategy whose best mapping has the lowest latency, then energy.

    Raises PassFailedException with the reason of the last strategy if none fits.
    """
    found: list[FusionChoice] = []
    failure: PassFailedException | None = None
    for strategy in ("full", "partial", "apart", "none"):
        try:
            found.append(FusionChoice(strategy, price_strategy(func, system, strategy)))
        except PassFailedException as error:
            failure = error
    if not found:
        raise failure or PassFailedException("fuse: there is no strategy")
    return min(
        found, key=lambda c: (c.choice.estimate.latency, c.choice.estimate.energy)
    )


def price_strategy(
    func: FuncOp, system: SystemOp, strategy: fuse_accelerator.Strategy
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
            fuse_accelerator.fuse_function(other, system, strategy)
            return search(make_template(other, system))
    raise PassFailedException(f"fuse: there is no function @{func.sym_name.data}")
