"""
Folds on accelerators: a fold becomes a loop over the shared buffer.

The loop runs one step per chunk. It contains the ops that only the fold reads along its
dimension, so that a chunk is computed where it is used, and the fold's results are its
iter_args.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.collective.analysis import result_states
from comet.dialects.collective.state import States
from comet.dialects.compound import FillOp, FoldOp, YieldOp
from comet.passes.schedule.fuse.program import Program
from comet.passes.schedule.tile_tree import Aliases, iter_args_of, resolve, users_of


def states_in_steps(program: Program) -> States:
    """
    Return the states of all values, also of those in the steps of folds.

    Raises PassFailedException for a fold that is no loop over one instance's chunks.
    """
    states = dict(program.states)
    for fold in program.ops:
        if isinstance(fold, FoldOp):
            _check_fold(fold, program)
            outer = (*fold.ins, *fold.outs)
            inner = fold.step.block.args
            states |= {a: states[v] for v, a in zip(outer, inner, strict=True)}
            for op in list(fold.step.block.ops)[:-1]:
                states |= result_states(op, states)
    return states


def _check_fold(fold: FoldOp, program: Program) -> None:
    dim = fold.dim.data
    axes = (a for v in fold.ins for a in program.states[v].splits(dim))
    spread = tuple(dict.fromkeys(axes))
    if spread:
        raise PassFailedException(
            f"fuse: 'compound.fold' over {dim} is spread over {', '.join(spread)}, and "
            "an accelerator folds what one core has; distribute another dimension"
        )
    if any(not isinstance(value.owner, FillOp) for value in fold.init):
        raise PassFailedException(
            f"fuse: 'compound.fold' over {dim} starts from no constant; "
            "give it a compound.fill, and merge the value in afterwards"
        )


def check_iter_args(program: Program, resident: AbstractSet[SSAValue]) -> None:
    """Raise PassFailedException for a fold whose iter_args do not stay in the cores."""
    for fold in program.ops:
        if isinstance(fold, FoldOp) and not set(iter_args_of(fold)) <= resident:
            raise PassFailedException(
                f"fuse: iter_args of 'compound.fold' over {fold.dim.data} do not stay "
                "in the cores and would cross the outermost level in every step; use "
                "chunks=shared, or a strategy that fuses more"
            )


def readers_of(value: SSAValue, aliases: Aliases) -> set[Operation]:
    """
    Return the ops that read `value`, in its iteration or, as iter_arg, in the next one.

    A value that a step yields is read as the iter_arg of the next step and as the
    fold's result.
    """
    readers: set[Operation] = set()
    seen: set[SSAValue] = set()
    waiting = [value]
    while waiting:
        if (value := waiting.pop()) in seen:
            continue
        seen.add(value)
        for user in users_of(value, aliases):
            if isinstance(user, YieldOp) and isinstance(user.parent_op(), FoldOp):
                waiting.extend(_through_fold(user, value, aliases))
            else:
                readers.add(user)
    return readers


def _through_fold(
    terminator: YieldOp, value: SSAValue, aliases: Aliases
) -> Iterator[SSAValue]:
    """Yield the iter_args and the results that `value` becomes after the step."""
    fold = terminator.parent_op()
    assert isinstance(fold, FoldOp)
    yielded = (resolve(given, aliases) for given in terminator.operands)
    for given, iter_arg, out in zip(
        yielded, iter_args_of(fold), fold.outs, strict=True
    ):
        if given is value:
            yield iter_arg
            yield out


def with_iter_args(
    resident: AbstractSet[SSAValue], ops: Sequence[Operation]
) -> set[SSAValue]:
    """Return `resident` with iter_args and results of the folds that yield from it."""
    found = set(resident)
    for fold in ops:
        if isinstance(fold, FoldOp):
            terminator = fold.step.block.last_op
            given = () if terminator is None else terminator.operands
            for value, iter_arg, out in zip(
                given, iter_args_of(fold), fold.outs, strict=True
            ):
                found |= {iter_arg, out} if value in found else set()
    return found
