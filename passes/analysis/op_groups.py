"""Groups of elementary ops: their extents, and backward slices in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound.dims import joined_extents


def disagrees(first: Sequence[Operation], second: Sequence[Operation]) -> bool:
    """Return whether a dimension has one extent in `first` and another in `second`."""
    extents = _extents_of(first)
    return any(extents.get(dim, n) != n for dim, n in _extents_of(second).items())


def _extents_of(ops: Iterable[Operation]) -> dict[str, int]:
    return {dim: n for op in ops for dim, n in extents_of_op(op).items()}


def extents_of_op(op: Operation) -> dict[str, int]:
    """Return the extents of all dimensions of an op's operands and results."""
    return joined_extents((*op.operands, *op.results))


def defining_ops(
    values: Iterable[SSAValue],
    inside: AbstractSet[Operation],
    leaves: Collection[SSAValue] = (),
) -> frozenset[Operation]:
    """
    Return the backward slice of `values` in the ops of `inside`.

    It ends at operands that are `leaves`.
    """
    found: set[Operation] = set()
    pending = list(values)
    while pending:
        op = pending.pop().owner
        if isinstance(op, Operation) and op in inside and op not in found:
            found.add(op)
            pending += (value for value in op.operands if value not in leaves)
    return frozenset(found)
