"""
Constants, masks and most casts, which are copied to each of their readers on
accelerators.

A unit masks and casts an operand as it reads it: that is no step of the program, and
the value before the mask or cast moves between memories. Only a cast to a narrower type
of a value that nothing else reads is done by the op that computes the value, which then
stores fewer bytes.
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
"""Ops that units compute: they may cast what they read and what they store."""


def is_copied(op: Operation) -> bool:
    """Return whether `op` is copied to each of its readers."""
    return isinstance(op, FillOp) or reads_through(op) is not None


def reads_through(op: Operation) -> SSAValue | None:
    """Return the operand that readers of a copied mask or cast read, else None."""
    if isinstance(op, PadOp) and op.is_mask:
        return op.input
    if isinstance(op, CastOp) and not _is_stored(op):
        return op.input
    return None


def _is_stored(op: CastOp) -> bool:
    """Return whether the op that computes the operand of a cast stores the result."""
    source = op.input.owner
    computes = isinstance(source, ComputeOp)
    if not computes and not (isinstance(source, CastOp) and _is_stored(source)):
        return False
    if not op.input.has_one_use():
        return False
    computed = (isinstance(use.operation, ComputeOp) for use in op.result.uses)
    return op.added_bits < 0 or not all(computed)


def origin_of(value: SSAValue) -> SSAValue:
    """Return the value that readers of `value` read, below copied masks and casts."""
    while isinstance(value.owner, Operation):
        source = reads_through(value.owner)
        if source is None:
            break
        value = source
    return value


def stored_as(value: SSAValue) -> SSAValue:
    """Return the value that an op stores: its result, or the last cast of that."""
    op = value.get_user_of_unique_use()
    if isinstance(op, CastOp) and reads_through(op) is None:
        return stored_as(op.result)
    return value


def origins_of(ops: Sequence[Operation]) -> dict[SSAValue, SSAValue]:
    """Return the operands of copied masks and casts, by their results."""
    found = ((op, reads_through(op)) for op in ops)
    return {op.results[0]: source for op, source in found if source is not None}


def readers_of(value: SSAValue) -> Iterator[Operation]:
    """Yield the ops that read `value`, directly or through copied masks and casts."""
    for use in value.uses:
        op = use.operation
        if reads_through(op) is not None:
            yield from readers_of(op.results[0])
        else:
            yield op
