"""
The shardings of a function that `choose-shardings` tries.

A trial chooses a dimension for some ops; what follows for all others is propagated.
Trials begin with what the function says itself, and choose for one op more each: the op
that takes longest first, in each of its dimensions. A beam of the fastest trials is
kept, so that a sharding that pays only together with a later one is found as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from comet.cost.from_ir.sharded_ops import sharded_seconds
from comet.cost.gpu.launch_plan import Machine
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.collective.spmd import Sharding
from comet.dialects.compound import ContractOp, FoldOp, ReduceOp, ScatterAddOp
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
    """What was chosen, as in gate: F; q: H."""
    chosen: Mapping[Operation, Sharding]
    known: Known
    seconds: float


def trials_of(func: FuncOp, mesh: MeshOp, machine: Machine) -> list[Trial]:
    """Return the possible trials, the fastest first, each sharding once."""
    stated = replace(stated_shardings(func, mesh), open=True)
    start = _trial(stated, {}, machine)
    beam, found = [start], {_described(start): start}
    for op in _by_time(start.known, machine):
        new = [
            _trial(stated, {**trial.chosen, **choice}, machine)
            for trial in beam
            if op not in stated.ops and not trial.known.ops[op]
            for choice in _choices(stated.with_ops(trial.chosen), op)
        ]
        for trial in new:
            found.setdefault(_described(trial), trial)
        distinct = {_described(trial): trial for trial in (*new, *beam)}
        beam = sorted(distinct.values(), key=_seconds)[:BEAM]
    return sorted(found.values(), key=_seconds)


def _trial(
    stated: Known, chosen: Mapping[Operation, Sharding], machine: Machine
) -> Trial:
    named = value_names(list(stated.func.body.block.ops))
    split = ((named[op.results[0]], dim) for op, dims in chosen.items() for dim in dims)
    label = "; ".join(f"{name}: {dim}" for name, dim in split)
    known = propagated(stated.with_ops(chosen))
    return Trial(label or "as stated", chosen, known, seconds_of(known, machine))


def _described(trial: Trial) -> Hashable:
    """Return the shardings of a trial; equal ones are the same trial."""
    return tuple(tuple(sharding.items()) for sharding in trial.known.ops.values())


def _seconds(trial: Trial) -> float:
    return trial.seconds


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
    reducing = (ContractOp, FoldOp, ReduceOp, ScatterAddOp)
    seconds = {op: sharded_seconds(op, {}, machine.device) for op in known.ops}
    least = LEAST * sum(seconds.values())
    for op in sorted(seconds, key=lambda op: -seconds[op]):
        if isinstance(op, reducing) and seconds[op] >= least:
            yield op
