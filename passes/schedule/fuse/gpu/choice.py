"""
The choice between ways to fuse on GPUs, by the estimated time of their kernels.

`none` gives every contraction a kernel of its own and what stands between two of them
another; `partial` makes one kernel that sweeps over a row several times, tile by tile;
`full` makes one kernel that holds a whole row; `auto` takes the cheapest of these. A
kernel that does not fit is cut in two, and so is one that `lower-to-triton` refuses:
the kernels of the cheapest way are lowered, each alone, before it is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Literal, TypeAlias

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.transforms.common_subexpression_elimination import cse
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.passes.analysis.levels import spmd_region
from comet.passes.schedule.fuse.gpu.cut import cheapest_cut
from comet.passes.schedule.fuse.gpu.plan import Step, plan_kernels, plan_steps
from comet.passes.schedule.fuse.gpu.trial import Trials, simplify
from comet.passes.schedule.fuse.notes import BETWEEN, STRATEGY
from comet.passes.schedule.fuse.rewrite import rewrite
from comet.passes.schedule.fuse.strategy import Between, Name, Strategy
from comet.passes.schedule.tile.gpu import grid_nodes, set_estimate
from comet.passes.schedule.tile_tree import Spatial

Auto: TypeAlias = Literal["auto"]


def fuse_function(
    func: FuncOp,
    system: SystemOp,
    strategy: Name | Auto = "auto",
    between: Between | Auto = "auto",
) -> None:
    """
    Rewrite the elementary ops of `func` as the kernels of a GPU.

    Of the choices that the options leave, takes the one with the smallest estimated
    time. Raises PassFailedException if an op alone does not fit or cannot be lowered,
    or is of another level.
    """
    cse(func)
    trials, levels = Trials(system), gpu_levels(system)
    ranks = spmd_region(func) is not None
    open_choices = _choices(strategy, between, ranks)
    best = _cheapest(func, trials, _different(func, open_choices))
    if best.failure:
        raise PassFailedException(best.failure)
    rewrite(func, plan_kernels(func, best.steps, levels))
    simplify(func)
    if strategy == "auto":
        func.attributes[STRATEGY] = StringAttr(best.choice.name)
    if strategy == between == "auto":
        func.attributes[BETWEEN] = StringAttr(_between(best.choice, ranks))
    for node, kernel in zip(grid_nodes(func), _kernels(best.steps), strict=True):
        set_estimate(node, trials.seconds(kernel) - trials.gpu.launch)


def _choices(
    strategy: Name | Auto, between: Between | Auto, ranks: bool
) -> Iterator[Strategy]:
    """
    Yield the choices that the options of the pass leave open.

    Only `ranks` have collectives, across which products may be computed again.
    """
    spills = {"recompute": (False,), "spill": (True,), "auto": (False, True)}[between]
    agains = {"recompute": (True,), "spill": (False,), "auto": (False, True)}[between]
    for again in agains if ranks else (False,):
        if strategy in ("full", "auto"):
            yield Strategy("full", whole=True, again=again)
        if strategy in ("partial", "auto"):
            yield from (Strategy("partial", spill=s, again=again) for s in spills)
    if strategy in ("none", "auto"):
        yield from (Strategy("none", whole=whole) for whole in (True, False))


def _between(choice: Strategy, ranks: bool) -> Between | Auto:
    """Return the first value of the option that allows a choice, the closest first."""
    whole = replace(choice, cuts=frozenset())
    values: tuple[Between, ...] = ("recompute", "spill")
    for value in values:
        if whole in _choices(choice.name, value, ranks):
            return value
    return "auto"


def _different(func: FuncOp, choices: Iterable[Strategy]) -> Iterator[Strategy]:
    """Yield the choices that give different kernels; of equal ones the first."""
    seen: set[tuple[Step, ...]] = set()
    for choice in choices:
        if (steps := plan_steps(func, choice)) not in seen:
            seen.add(steps)
            yield choice


@dataclass(frozen=True)
class _Candidate:
    """A choice with as many cuts as it needs, and what its kernels cost."""

    choice: Strategy
    steps: tuple[Step, ...] = ()
    seconds: float = inf
    """The time of all kernels, infinite if one is impossible."""
    failure: str = ""
    """Why a kernel is impossible and cannot be cut, empty if all are possible."""


def _cheapest(func: FuncOp, trials: Trials, choices: Iterable[Strategy]) -> _Candidate:
    """Return the fastest candidate that can be lowered, a failure if none can."""
    open_ = [_fitted(func, trials, choice) for choice in choices]
    while True:
        best = min(open_, key=lambda candidate: candidate.seconds)
        if best.failure:
            return best
        refused = next(filter(trials.refusal, _kernels(best.steps)), None)
        if refused is None:
            return best
        reason = trials.refusal(refused)
        open_[open_.index(best)] = _cut(func, trials, best.choice, refused, reason)


def _fitted(func: FuncOp, trials: Trials, choice: Strategy) -> _Candidate:
    """Return a choice with kernels that do not fit cut in two, as often as needed."""
    steps = plan_steps(func, choice)
    for kernel in _kernels(steps):
        if reason := trials.misfit(kernel):
            return _cut(func, trials, choice, kernel, reason)
    seconds = sum(map(trials.seconds, _kernels(steps)))
    return _Candidate(choice, steps, seconds)


def _cut(
    func: FuncOp, trials: Trials, choice: Strategy, kernel: Spatial, reason: str
) -> _Candidate:
    """Return a choice whose `kernel`, impossible for a `reason`, is cut in two."""
    place = cheapest_cut(func, choice, kernel)
    if place is None:
        return _Candidate(choice, failure=reason)
    return _fitted(func, trials, replace(choice, cuts=choice.cuts | {place}))


def _kernels(steps: Iterable[Step]) -> Iterator[Spatial]:
    return (step for step in steps if isinstance(step, Spatial))
