"""
Folds on accelerators: a fold becomes a loop over the shared buffer.

The loop runs one step per chunk. It contains the ops whose results only the fold reads,
tile by tile, so that a chunk is computed where it is used. The fold's results are the
iter_args of the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TypeGuard

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.blocks import yielded_by
from comet.dialects.collective import AllGatherOp
from comet.dialects.collective.analysis import result_states
from comet.dialects.collective.state import FOLD, States, without_axes
from comet.dialects.compound import FillOp, FoldOp, YieldOp
from comet.dialects.compound.dims import names_of
from comet.dialects.errors import OpError, called
from comet.digraph import reachable
from comet.passes.schedule.fuse.instance_ops import InstanceOps
from comet.passes.schedule.tile_tree import Aliases, iter_args_of, resolve, users_of


def states_in_steps(instance: InstanceOps, cores: AbstractSet[str]) -> States:
    """
    Return the states of all values, also of those in the steps of folds.

    Raises PassFailedException for a fold that accelerators cannot run as a loop, such
    as one over a dimension sharded over the axes `cores`.
    """
    states = dict(instance.states)
    for fold in instance.ops:
        if isinstance(fold, FoldOp):
            _check_fold(fold, instance, cores)
            states |= _states_in_step(fold, states)
    return states


def _states_in_step(fold: FoldOp, states: States) -> States:
    """
    Return the states of the values in the step of `fold`.

    A step folds the shard of its cluster, so its reductions are complete there.
    """
    dim = fold.dim.data
    axes = dict.fromkeys(a for v in fold.ins for a in states[v].splits(dim)).keys()
    arguments = zip((*fold.ins, *fold.outs), fold.step.block.args, strict=True)
    inner = {argument: without_axes(states[v], axes) for v, argument in arguments}
    all_states = {**states, **inner}
    for op in list(fold.step.block.ops)[:-1]:
        states = result_states(op, all_states)
        all_states |= states
        inner |= states
    return {
        value: replace(state, sharded={**state.sharded, **dict.fromkeys(axes, dim)})
        if dim in names_of(value)
        else state
        for value, state in inner.items()
    }


def _check_fold(fold: FoldOp, instance: InstanceOps, cores: AbstractSet[str]) -> None:
    dim = fold.dim.data
    axes = (a for v in fold.ins for a in instance.states[v].splits(dim))
    spread = tuple(dict.fromkeys(axes))
    users = (use.operation for out in fold.outs for use in out.uses)
    if not cores.isdisjoint(spread) or any(isinstance(u, AllGatherOp) for u in users):
        raise PassFailedException(
            f"fuse: 'compound.fold' over {dim} is spread over {', '.join(spread)}, and "
            "an accelerator merges partials of clusters by all-reduces only; "
            "distribute another dimension, or run insert-collectives{partials=reduce} "
            "with this one over clusters"
        )
    if any(not isinstance(value.owner, FillOp) for value in fold.init):
        raise PassFailedException(
            f"fuse: 'compound.fold' over {dim} starts from no constant; "
            "give it a compound.fill, and merge the value in afterwards"
        )


def check_iter_args(instance: InstanceOps, resident: AbstractSet[SSAValue]) -> None:
    """Raise PassFailedException for a fold whose iter_args are not resident."""
    for fold in instance.ops:
        if isinstance(fold, FoldOp) and not set(iter_args_of(fold)) <= resident:
            raise PassFailedException(
                f"fuse: iter_args of 'compound.fold' over {fold.dim.data} do not stay "
                "in the cores and would cross the outermost level in every step; use "
                "chunks=shared, or a strategy that fuses more"
            )


def check_partials(nest: Sequence[tuple[Operation, ...]], states: States) -> None:
    """Raise PassFailedException if another nest merges the partials of a fold."""
    inside = dict.fromkeys(op for unit in nest for op in unit).keys()
    for op in inside:
        block = op.parent_block()
        assert block is not None
        for value in op.results:
            users = {block.find_ancestor_op_in_block(u.operation) for u in value.uses}
            if FOLD in states[value].partial.values() and not users <= inside:
                raise OpError(
                    op,
                    f"fuse: {called(value)} is a partial of "
                    "'compound.fold' in each cluster, and another nest merges these "
                    "partials; use strategy=full",
                )


def readers_across_steps(value: SSAValue, aliases: Aliases) -> set[Operation]:
    """
    Return the ops that read `value`, in its step, in the next step, or after the fold.

    A value that a step yields is the iter_arg of the next step, and the fold's result.
    """

    def passed_on(to: SSAValue) -> Iterator[SSAValue]:
        for user in filter(_yields_from_step, users_of(to, aliases)):
            yield from _through_fold(user, to, aliases)

    passed = reachable((value,), passed_on)
    users = (user for each in passed for user in users_of(each, aliases))
    return {user for user in users if not _yields_from_step(user)}


def _yields_from_step(op: Operation) -> TypeGuard[YieldOp]:
    return isinstance(op, YieldOp) and isinstance(op.parent_op(), FoldOp)


def _through_fold(
    terminator: YieldOp, value: SSAValue, aliases: Aliases
) -> Iterator[SSAValue]:
    """Yield the iter_args and results of a fold whose step yields `value`."""
    fold = terminator.parent_op()
    assert isinstance(fold, FoldOp)
    yielded = (resolve(operand, aliases) for operand in terminator.operands)
    for operand, iter_arg, out in zip(
        yielded, iter_args_of(fold), fold.outs, strict=True
    ):
        if operand is value:
            yield iter_arg
            yield out


def with_iter_args(
    resident: AbstractSet[SSAValue], ops: Sequence[Operation]
) -> set[SSAValue]:
    """Return `resident` with the iter_args and results whose yielded value is in it."""
    found = set(resident)
    for fold in ops:
        if isinstance(fold, FoldOp):
            yielded = yielded_by(fold.step.block)
            triples = zip(yielded, iter_args_of(fold), fold.outs, strict=True)
            for value, iter_arg, out in triples:
                found |= {iter_arg, out} if value in found else set()
    return found
