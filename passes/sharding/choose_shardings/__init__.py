"""
`choose-shardings`: elementary level -> elementary level, with a sharding on each op.

Needs GPUs with several ranks. It tries the dimensions of the ops that take longest, and
`propagate-shardings` derives the shardings of the ops around them. A `collective.shard`
on an op, an argument or a result stays. Other arguments and results get the shards that
ops read and compute, so that weights need not be whole on any rank.

The fastest sharding is estimated by the time of the sharded ops and of the exchanges,
before there are kernels. `trial` takes one of the next fastest, which
`triton-distributed` compares by their launch plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import machine_of
from comet.dialects.arch import attached_system
from comet.dialects.collective.spmd import Sharding, sharding_attr
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.hardware_kind import require_gpu
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass
from comet.passes.search import cheapest, timed
from comet.passes.search.answers import Answers
from comet.passes.sharding.boundary import check_boundary
from comet.passes.sharding.choose_shardings.trials import Trial, trials_of
from comet.passes.sharding.shardings import SHARD, mesh_of

NEAR = 1.1
"""
How many times the estimate of the fastest sharding is that of one that may be faster:
kernels of few programs take longer than estimated.
"""


MOST_PLANNED = 16
"""Functions whose shardings are remembered: those that `alternatives` is asked for."""

_PLANS = Answers[Sequence[Mapping[int, Sharding]]](MOST_PLANNED)
"""The shardings near the fastest, by the numbers of ops."""


@dataclass(frozen=True)
class ChooseShardingsPass(FunctionPass):
    """Choose which dimension of each op ranks have shards of."""

    name = "choose-shardings"

    LEVELS = (IRLevel.ELEMENTARY,)

    trial: int = 0
    """Which of the fastest shardings to take, 0 for the fastest."""

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        plans = plan_shardings(function, module)
        if not 0 <= self.trial < len(plans):
            raise PassFailedException(
                f"{self.name}: the option 'trial' is {self.trial}, and the last of the "
                f"shardings near the fastest is {len(plans) - 1}; use 0, or one up to "
                "that"
            )
        annotate(plans[self.trial])


def annotate(plan: Mapping[Operation, Sharding]) -> None:
    """Write the shardings of ops on them."""
    for op, sharding in plan.items():
        op.attributes[SHARD] = sharding_attr(sharding)


def alternatives(module: ModuleOp, most: int) -> Iterator[ModuleOp]:
    """
    Yield at most so many copies of `module`, as each `trial` of the pass makes it.

    Raises PassFailedException as the pass does.
    """
    functions = list(compute_functions(module))
    plans = [plan_shardings(func, module) for func in functions]
    for trial in range(min(most, min(map(len, plans), default=1))):
        copy = module.clone()
        copied = dict(zip(module.walk(), copy.walk(), strict=True))
        for plan in plans:
            annotate({copied[op]: sharding for op, sharding in plan[trial].items()})
        yield copy


def plan_shardings(
    func: FuncOp, module: ModuleOp
) -> Sequence[Mapping[Operation, Sharding]]:
    """
    Return the shardings of all ops of a function that are about as fast as the fastest.

    Raises PassFailedException if one that the function says does not fit.
    """
    name, system = ChooseShardingsPass.name, attached_system(module)
    require_gpu(name, system)
    mesh = mesh_of(func, module, name)
    check_boundary(func, mesh, name)
    machine = machine_of(system, mesh.size(mesh.rank_axes))
    ops = list(func.body.block.ops)
    with _PLANS.to(f"{machine} {mesh} {func}") as answer:
        if answer.found is None:
            number = {op: index for index, op in enumerate(ops)}
            near = _near_fastest(trials_of(func, mesh, machine), func)
            answer.found = [
                {number[op]: sharding for op, sharding in trial.known.ops.items()}
                for trial in near
            ]
    return [
        {ops[index]: sharding for index, sharding in plan.items()}
        for plan in answer.found
    ]


def _near_fastest(trials: Sequence[Trial], func: FuncOp) -> list[Trial]:
    """Return the trials that are about as fast as the fastest."""
    candidates = [
        timed(each.label, each, partial(float, each.seconds)) for each in trials
    ]
    best = cheapest("shardings", f"@{func.sym_name.data}", candidates).result
    return [each for each in trials if each.seconds <= NEAR * best.seconds]
