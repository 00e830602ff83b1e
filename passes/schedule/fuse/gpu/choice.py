"""
The choice between fusion strategies on GPUs, by the estimated time of their kernels.

`none` gives every contraction its own kernel, and the ops between two of them another;
`partial` makes one kernel with several reduction loops over a row; `full` makes one
kernel that has a whole row in registers; `auto` takes the cheapest. A kernel that does
not fit is cut in two, and so is one that `lower-to-triton` rejects: the kernels of the
cheapest choice are lowered, each alone, before it is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, Self, TypeAlias

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.passes.analysis.grid import grid_nodes
from comet.passes.analysis.levels import spmd_region
from comet.passes.schedule.fuse.gpu.cut import cut_in_two
from comet.passes.schedule.fuse.gpu.forms import Forms
from comet.passes.schedule.fuse.gpu.given import format_kernels, given_partition
from comet.passes.schedule.fuse.gpu.groups import (
    Partition,
    elementary_ops,
    partition_of,
)
from comet.passes.schedule.fuse.gpu.plan import (
    PlanKernel,
    Step,
    plan_kernel,
    plan_kernels,
    plan_steps,
)
from comet.passes.schedule.fuse.gpu.priority import priority_partition
from comet.passes.schedule.fuse.gpu.trial import Trials, simplify
from comet.passes.schedule.fuse.machine import Options
from comet.passes.schedule.fuse.rewrite import rewrite
from comet.passes.schedule.fuse.strategy import (
    BETWEEN,
    KERNELS,
    STRATEGY,
    Between,
    Name,
    Strategy,
)
from comet.passes.schedule.node_names import name_nodes
from comet.passes.schedule.plan_string import PLAN, format_plan
from comet.passes.schedule.tile.gpu import plan_with, set_estimate
from comet.passes.schedule.tile_tree import Spatial
from comet.passes.search import Candidate, Cost, Found, cheapest

Auto: TypeAlias = Literal["auto"]


def fuse_function(func: FuncOp, system: SystemOp, options: Options) -> None:
    """
    Rewrite the elementary ops of `func` as the kernels of a GPU.

    Takes the choice with the smallest estimated time, and records its best tiles as the
    plan of `func`. Raises PassFailedException if an op alone does not fit or cannot be
    lowered, or is of another level, or if given kernels are not legal.
    """
    trials, ops = Trials(system), elementary_ops(func)
    best = _best(func, ops, trials, options)
    _record(func, ops, best.kernels, best.choice, options)
    rewrite(func, plan_kernels(func, best.steps, gpu_levels(system)))
    simplify(func)
    name_nodes(func)
    kernels = map(trials.tiling, best.kernels)
    tilings = dict(zip(grid_nodes(func), kernels, strict=True))
    func.attributes[PLAN] = StringAttr(format_plan(plan_with(tilings)))
    for node, tiling in tilings.items():
        set_estimate(node, tiling.seconds - trials.gpu.launch)


def _best(
    func: FuncOp, ops: Sequence[Operation], trials: Trials, options: Options
) -> _Fused:
    """Return the kernels that are given, or the cheapest that options leave open."""
    forms = Forms(trials, _forms(options.between))
    if options.kernels != "auto":
        partition = given_partition(func, ops, options.kernels)
        given = _Fused.of(func, Strategy("priority"), partition, forms.cheapest)
        for kernel in given.kernels:
            if reason := trials.misfit(kernel) or trials.refusal(kernel):
                raise PassFailedException(reason)
        return given
    ranks = spmd_region(func) is not None
    choices = _choices(options.strategy, options.between, ranks)
    candidates = [
        Candidate(_label(fused.choice), partial(_fitted, func, trials, fused))
        for fused in _different(func, ops, choices, forms)
    ]
    lowered = partial(_lowered, func, trials)
    place = f"@{func.sym_name.data}"
    return cheapest("strategy", place, candidates, confirm=lowered).made


def _record(
    func: FuncOp,
    ops: Sequence[Operation],
    kernels: Sequence[Spatial],
    choice: Strategy,
    options: Options,
) -> None:
    """Write the choices that the options leave open on `func`."""
    ranks = spmd_region(func) is not None
    if options.strategy == "auto":
        func.attributes[STRATEGY] = StringAttr(choice.name)
    if options.strategy == options.between == "auto":
        func.attributes[BETWEEN] = StringAttr(_between(choice, ranks))
    if choice.name == "priority" and options.kernels == "auto":
        text = format_kernels(ops, [kernel.outs for kernel in kernels])
        func.attributes[KERNELS] = StringAttr(text)


def _choices(
    strategy: Name | Auto, between: Between | Auto, ranks: bool
) -> Iterator[Strategy]:
    """
    Yield the choices that the options of the pass leave open.

    Only `ranks` have collectives, across which products may be recomputed. What ranks
    wait for each other is not in the prices of kernels, and smaller programs wait more
    often: for `ranks`, priority fusion is not a choice of `auto`.
    """
    agains = {"recompute": (True,), "spill": (False,), "auto": (False, True)}[between]
    for again in agains if ranks else (False,):
        for form in _forms(between):
            if strategy in (form.name, "auto"):
                yield replace(form, again=again)
    if strategy in ("none", "auto"):
        yield from (Strategy("none", whole=whole) for whole in (True, False))
    if strategy == "priority" or (strategy == "auto" and not ranks):
        yield Strategy("priority")


def _forms(between: Between | Auto) -> Iterator[Strategy]:
    """Yield the forms that one kernel may have."""
    spills = {"recompute": (False,), "spill": (True,), "auto": (False, True)}[between]
    yield Strategy("full", whole=True)
    yield from (Strategy("partial", spill=spill) for spill in spills)


def _between(choice: Strategy, ranks: bool) -> Between | Auto:
    """Return the first value of the option that allows a choice, the closest first."""
    if choice.name == "priority":
        return "auto"
    values: tuple[Between, ...] = ("recompute", "spill")
    for value in values:
        if choice in _choices(choice.name, value, ranks):
            return value
    return "auto"


def _label(choice: Strategy) -> str:
    """Return a choice as its option, with what the option leaves open."""
    flags = {
        "kept whole": choice.name == "none" and choice.whole,
        "spill": choice.spill,
        "recompute across ranks": choice.again,
    }
    return ", ".join((choice.name, *(name for name, on in flags.items() if on)))


@dataclass(frozen=True)
class _Fused:
    """A choice, and the kernels that it means for a function."""

    choice: Strategy
    partition: Partition
    plan: PlanKernel
    steps: tuple[Step, ...]

    @classmethod
    def of(
        cls, func: FuncOp, choice: Strategy, partition: Partition, plan: PlanKernel
    ) -> Self:
        """Return the kernels for the groups of a partition."""
        return cls(choice, partition, plan, plan_steps(func, partition, plan))

    @property
    def kernels(self) -> tuple[Spatial, ...]:
        """The kernels, in order."""
        return tuple(step for step in self.steps if isinstance(step, Spatial))


def _different(
    func: FuncOp,
    ops: Sequence[Operation],
    choices: Iterable[Strategy],
    forms: Forms,
) -> Iterable[_Fused]:
    """Return the different results of the choices, each with its first choice."""
    found: dict[tuple[Step, ...], _Fused] = {}
    for choice in choices:
        if choice.name == "priority":
            partition, plan = priority_partition(ops, forms), forms.cheapest
        else:
            partition, plan = partition_of(ops, choice), partial(plan_kernel, choice)
        fused = _Fused.of(func, choice, partition, plan)
        found.setdefault(fused.steps, fused)
    return found.values()


def _fitted(func: FuncOp, trials: Trials, fused: _Fused) -> Found[_Fused]:
    """
    Return a choice with kernels that do not fit cut in two, as often as needed.

    Raises PassFailedException if one does not fit and cannot be cut.
    """
    for kernel in fused.kernels:
        if reason := trials.misfit(kernel):
            return _cut(func, trials, fused, kernel, reason)
    slowest = max(fused.kernels, key=trials.seconds, default=None)
    limit = "" if slowest is None else trials.limit(slowest)
    return Found(fused, Cost(sum(map(trials.seconds, fused.kernels))), limit)


def _cut(
    func: FuncOp, trials: Trials, fused: _Fused, kernel: Spatial, reason: str
) -> Found[_Fused]:
    """Return a choice whose `kernel`, impossible for a `reason`, is cut in two."""
    if (partition := cut_in_two(fused.partition, kernel)) is None:
        raise PassFailedException(reason)
    return _fitted(func, trials, _Fused.of(func, fused.choice, partition, fused.plan))


def _lowered(func: FuncOp, trials: Trials, fused: _Fused) -> Found[_Fused] | None:
    """Return None if all kernels can be lowered, else with one that is not cut."""
    for kernel in fused.kernels:
        if reason := trials.refusal(kernel):
            return _cut(func, trials, fused, kernel, reason)
    return None
