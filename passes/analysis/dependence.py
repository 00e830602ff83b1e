"""The dimensions that a value is computed from; pure functions on elementary ops."""

from __future__ import annotations

from xdsl.ir import Block, BlockArgument, OpResult, SSAValue

from comet.dialects.blocks import yielded_by
from comet.dialects.compound import (
    CastOp,
    ContractOp,
    ExtentOp,
    FillOp,
    FoldOp,
    GatherOp,
    MapOp,
    PadOp,
    ReduceOp,
    View,
)
from comet.dialects.compound.dims import names_of
from comet.digraph import reachable

PASSING_ON = (MapOp, CastOp, ReduceOp, ContractOp, FoldOp, PadOp, GatherOp)
"""Ops whose results only have dimensions of their operands."""
OF_CONSTANTS = (MapOp, CastOp, ReduceOp, ContractOp, ExtentOp)
"""Ops whose result is a constant if all operands are, in every shard."""


def is_constant(value: SSAValue) -> bool:
    """Return whether a value is computed from constants only, not from positions."""
    op = value.owner
    return isinstance(op, FillOp) or (
        isinstance(op, OF_CONSTANTS) and all(map(is_constant, op.operands))
    )


def loaded_dims(block: Block) -> dict[SSAValue, frozenset[str]]:
    """
    Return the dimensions of each value of a block that it has from loaded values.

    A map of a constant tensor and a number has the dimensions of the constant, but a
    kernel loads no tensor with them.
    """
    loaded: dict[SSAValue, frozenset[str]] = {}
    loaded.update((argument, frozenset(names_of(argument))) for argument in block.args)
    for op in block.ops:
        operands = frozenset[str]().union(*(loaded[v] for v in op.operands))
        for result in op.results:
            names = frozenset(names_of(result))
            if isinstance(op, FillOp) or (isinstance(op, View) and not operands):
                names = frozenset[str]()
            elif isinstance(op, PASSING_ON):
                names &= operands
            loaded[result] = names
    return loaded


def backward_slice_dims(value: SSAValue) -> frozenset[str]:
    """
    Return the dimensions of the backward slice of `value`.

    `compound.extent` has only its own dimension in the slice, a constant none. A result
    of a fold has the slice of its iter_arg, not of all inputs of the fold.
    """
    return frozenset(dim for at in reachable((value,), _sources) for dim in _dims(at))


def _dims(value: SSAValue) -> tuple[str, ...]:
    """Return the dimensions that `value` itself adds to a slice."""
    match value.owner:
        case FillOp():
            return ()
        case ExtentOp() as op:
            return (op.dim.data,)
        case _:
            return names_of(value)


def _sources(value: SSAValue) -> tuple[SSAValue, ...]:
    """Return the values that `value` is computed from, also through folds."""
    if isinstance(value, OpResult):
        if isinstance(value.op, FoldOp):
            return _through_fold(value.op, value.index)
        return () if isinstance(value.op, ExtentOp) else tuple(value.op.operands)
    assert isinstance(value, BlockArgument)
    return _entering(value.block, value.index)


def _through_fold(op: FoldOp, index: int) -> tuple[SSAValue, ...]:
    """Return the init arg and the next value of the iter_arg at `index`."""
    return (op.init[index], yielded_by(op.step.block)[index])


def _entering(block: Block, index: int) -> tuple[SSAValue, ...]:
    """Return the values that enter a block argument of a fold, none for others."""
    op = block.parent_op()
    if not isinstance(op, FoldOp):
        return ()
    if index < len(op.ins):
        return (op.ins[index],)
    return _through_fold(op, index - len(op.ins))
