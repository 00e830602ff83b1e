"""
The shardings of a function that `choose-shardings` tries.

A trial chooses a dimension for some ops; what follows for all others is propagated.
Trials begin with what the function says itself, and choose for one op more each: the op
that takes longest first, in each of its dimensions. A beam of the fastest trials is
kept, so that a sharding that pays only together with a later one is found as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from comet.cost.from_ir.sharded_ops import sharded_seconds
from comet.cost.gpu.launch_plan import Machine
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.collective.spmd import Sharding
from comet.dialects.compound import GatherOp
from comet.dialects.compound.dims import joined_extents
from comet.passes.analysis.stored_values import value_names
from comet.passes.sharding.choose_shardings.price import seconds_of
from comet.passes.sharding.propagate_shardings import propagated, stated_shardings
from comet.passes.sharding.propagate_shardings.known import Known, operands_of
from comet.passes.sharding.shardings import shardable_dims

BEAM = 4
"""The number of trials that are continued."""

LEAST = 0.01
"""The least time of ops that are chosen for, as a fraction of that of the function."""


@dataclass(frozen=True)
class Trial:
    """A sharding of all ops, and what the function takes with it."""

    label: str
    """The choices, as in gate: F; q: H."""
    chosen: Mapping[Operation, Sharding]
    known: Known
    seconds: float


def trials_of(func: FuncOp, mesh: MeshOp, machine: Machine) -> list[Trial]:
    """Return the possible trials, the fastest first, each sharding once."""
    stated = replace(stated_shardings(func, mesh), free_arguments=True)
    start = _trial(stated, {}, machine)
    beam, found = [start], [start]
    for op in _by_time(start.known, machine):
        new = [
            _trial(stated, {**trial.chosen, **choice}, machine)
            for trial in beam
            if op not in stated.ops and not trial.known.ops[op]
            for choice in _choices(stated.with_ops(trial.chosen), op)
        ]
        found += new
        beam = _fastest([*beam, *new])[:BEAM]
    return _fastest(trial for trial in found if _is_possible(trial.known)) or [start]


def _fastest(trials: Iterable[Trial]) -> list[Trial]:
    """Return trials, the fastest first, and of equal shardings the first trial."""
    distinct: dict[Hashable, Trial] = {}
    for trial in trials:
        shardings = trial.known.ops.values()
        distinct.setdefault(tuple(tuple(each.items()) for each in shardings), trial)
    return sorted(distinct.values(), key=lambda trial: trial.seconds)


def _trial(
    stated: Known, chosen: Mapping[Operation, Sharding], machine: Machine
) -> Trial:
    named = value_names(list(stated.func.body.block.ops))
    split = ((named[op.results[0]], dim) for op, dims in chosen.items() for dim in dims)
    label = "; ".join(f"{name}: {dim}" for name, dim in split)
    known = propagated(stated.with_ops(chosen))
    return Trial(label or "as stated", chosen, known, seconds_of(known, machine))


def _is_possible(known: Known) -> bool:
    """Return whether each rank has all rows of the tables that it gathers rows of."""
    gathers = (op for op in known.func.body.block.ops if isinstance(op, GatherOp))
    return not any(op.along in known.sharding(op.table) for op in gathers)


def _choices(known: Known, op: Operation) -> Iterator[Mapping[Operation, Sharding]]:
    """Yield the dimensions of `op` of which all ranks can have shards."""
    mesh = known.mesh
    axes = tuple(mesh.rank_axes)
    extents = joined_extents((*operands_of(op), *op.results))
    for dim in shardable_dims(op):
        split = {dim: axes}
        if extents[dim] >= mesh.size(axes) and known.received(op, split) is not None:
            yield {op: split}


def _by_time(known: Known, machine: Machine) -> Iterator[Operation]:
    """Yield the ops to choose for, those that take longest on one rank first."""
    seconds = {op: sharded_seconds(op, {}, machine.device) for op in known.ops}
    least = LEAST * sum(seconds.values())
    longest = sorted(seconds, key=lambda op: -seconds[op])
    yield from (op for op in longest if seconds[op] >= least)
