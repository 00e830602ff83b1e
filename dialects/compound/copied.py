"""
What readers do for themselves on accelerators: constants, masks, and most casts.

A unit may put a number into the padding of a value as it reads it, and may see its
elements in another type. Neither is a step of the program, and what moves between
memories is the value before. Only what narrows a value that nothing else reads is done
by the op that computes the value, which then stores fewer bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound.elementary import (
    CastOp,
    ContractOp,
    FillOp,
    ReduceOp,
)
from comet.dialects.compound.map import MapOp
from comet.dialects.compound.pad import PadOp

ComputeOp: TypeAlias = ContractOp | ReduceOp | MapOp
"""Ops that a unit computes: they may read or store another element type."""


def is_copied(op: Operation) -> bool:
    """Return whether `op` is copied to each of its readers."""
    return isinstance(op, FillOp) or reads_through(op) is not None


def reads_through(op: Operation) -> SSAValue | None:
    """Return the value that readers of the result of `op` read; None: the result."""
    if isinstance(op, PadOp) and op.is_mask:
        return op.input
    if isinstance(op, CastOp) and not _is_stored(op):
        return op.input
    return None


def _is_stored(op: CastOp) -> bool:
    """Return whether what computes the operand of a cast stores it as its result."""
    made = op.input.owner
    computes = isinstance(made, ComputeOp)
    if not computes and not (isinstance(made, CastOp) and _is_stored(made)):
        return False
    if not op.input.has_one_use():
        return False
    computed = (isinstance(use.operation, ComputeOp) for use in op.result.uses)
    return op.added_bits < 0 or not all(computed)


def origin_of(value: SSAValue) -> SSAValue:
    """Return what is read where `value` is: it, or what it is a mask or a cast of."""
    while isinstance(value.owner, Operation):
        source = reads_through(value.owner)
        if source is None:
            break
        value = source
    return value


def stored_as(value: SSAValue) -> SSAValue:
    """Return what an op stores for its result: the last cast of it, or the result."""
    while len(uses := tuple(value.uses)) == 1:
        op = uses[0].operation
        if not isinstance(op, CastOp) or reads_through(op) is not None:
            break
        value = op.result
    return value


def origins_of(ops: Sequence[Operation]) -> dict[SSAValue, SSAValue]:
    """Return the results of copied masks and casts, and what they are made from."""
    found = ((op, reads_through(op)) for op in ops)
    return {op.results[0]: source for op, source in found if source is not None}


def readers_of(value: SSAValue) -> Iterator[Operation]:
    """Yield the ops that read `value`, as it is or through masks and casts."""
    for use in value.uses:
        op = use.operation
        if reads_through(op) is not None:
            yield from readers_of(op.results[0])
        else:
            yield op
