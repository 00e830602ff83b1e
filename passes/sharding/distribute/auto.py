"""The choice of the dimensions that clusters and cores share, by the cost of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.compound.dims import names_of
from comet.passes.analysis.functions import compute_functions
from comet.passes.schedule.fuse import prepare
from comet.passes.schedule.fuse.accelerator import Strategy
from comet.passes.schedule.fuse.accelerator.auto import price_strategy

Dims: TypeAlias = tuple[str, ...]
"""Dimensions in the order in which they take the mesh axes."""

Figures: TypeAlias = tuple[float, float]
"""Latency and energy; infinite where there is no mapping."""

SHARED_DIMS = "comet.dim"
"""The attribute of a mapping that names the dimensions that were chosen."""

COLUMNS = "N"
"""The dimension of columns; where the result lacks it, a product sums it."""

STRATEGIES: tuple[Strategy, ...] = ("full", "partial", "none")
"""From the most to the least fused."""


def candidates(module: ModuleOp) -> tuple[Dims, ...]:
    """
    Return what may be shared: the columns N, or else the rows of the result.

    Instances that share columns exchange the statistics of rows; those that share rows
    exchange nothing, but each needs the whole right operand.
    """
    dims = result_dims(module)
    rows = tuple(dim for dim in dims if dim != COLUMNS)
    return tuple(choice for choice in ((COLUMNS,), rows) if choice)


def result_dims(module: ModuleOp) -> Dims:
    """Return the dimensions of what the functions of `module` return, in order."""
    results = [
        value
        for func in compute_functions(module)
        if (end := func.body.block.last_op) is not None
        for value in end.operands
    ]
    return tuple(dict.fromkeys(name for value in results for name in names_of(value)))


def cheapest_dims(
    ctx: Context,
    module: ModuleOp,
    candidates: Iterable[Dims],
    spread: Callable[[Dims], Iterable[ModulePass]],
    strategies: Sequence[Strategy] = STRATEGIES,
) -> Dims:
    """
    Return the first of `candidates` that has the cheapest mapping.

    `spread` gives the passes that share dimensions and place the collectives. To be
    quick, only the most fused form of each that has a mapping is compared.
    """
    trials = tuple(dict.fromkeys(candidates))
    if len(trials) == 1:
        return trials[0]
    return min(trials, key=lambda dims: _figures(ctx, module, spread(dims), strategies))


def _figures(
    ctx: Context,
    module: ModuleOp,
    passes: Iterable[ModulePass],
    strategies: Sequence[Strategy],
) -> Figures:
    trial = module.clone()
    try:
        PassPipeline(tuple(passes)).apply(ctx, trial)
        for func in compute_functions(trial):
            prepare(func, on_gpu=False)
    except PassFailedException:
        return inf, inf
    system = attached_system(trial)
    latency, energy = 0.0, 0.0
    for func in compute_functions(trial):
        own = _mapped(func, system, strategies)
        latency, energy = latency + own[0], energy + own[1]
    return latency, energy


def _mapped(func: FuncOp, system: SystemOp, strategies: Sequence[Strategy]) -> Figures:
    """Return what the most fused mapping of a function costs."""
    for strategy in strategies:
        try:
            best = price_strategy(func, system, strategy).estimate
        except PassFailedException:
            continue
        return best.latency, best.energy
    return inf, inf
