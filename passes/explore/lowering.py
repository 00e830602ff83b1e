"""The best mapping that a search has found, as the ops that mirror the COMET files."""

from __future__ import annotations

from dataclasses import replace
from math import isclose

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.passes.annotate_cost import AnnotateCostPass
from comet.passes.comet.lower_to_comet import LowerToCometPass
from comet.passes.explore.quick import priced
from comet.passes.explore.state import Best, State
from comet.passes.pipeline import run_passes


def lowered(state: State, best: Best) -> tuple[Best, ModuleOp]:
    """
    Return `best`, with passes that lower it, and the mapping that they make.

    It is lowered for the model of the search only if the COMET tool cannot price it, or
    only with nodes of a pipeline merged, which takes longer.
    """
    model = state.goal.model
    lowering = AnnotateCostPass | LowerToCometPass
    passes = [each for each in best.passes if not isinstance(each, lowering)]
    estimate = AnnotateCostPass(model)
    try:
        merged, mapped = _rebuilt(state, best, (*passes, estimate, LowerToCometPass()))
        if model == "tool" or _costs(mapped, best):
            return merged, mapped
    except PassFailedException:
        if model == "tool":
            raise
    return _rebuilt(state, best, (*passes, LowerToCometPass(model), estimate))


def _rebuilt(
    state: State, best: Best, passes: tuple[ModulePass, ...]
) -> tuple[Best, ModuleOp]:
    """Return `best` with other passes, and the mapping that they make."""
    mapped = state.space.module.clone()
    run_passes(passes, state.space.ctx, mapped)
    return replace(best, passes=passes), mapped


def _costs(mapped: ModuleOp, best: Best) -> bool:
    """Return whether a mapping costs what its tree costs."""
    return isclose(priced((), mapped).cost.latency, best.cost.latency, rel_tol=1e-9)
