"""Groups of elementary ops: their extents, and backward slices in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound.dims import joined_extents


def disagrees(first: Sequence[Operation], second: Sequence[Operation]) -> bool:
    """Return whether a dimension has one extent in `first` and another in `second`."""
    return differ(extents_of_ops(first), extents_of_ops(second))


def differ(first: Mapping[str, int], second: Mapping[str, int]) -> bool:
    """Return whether a dimension has two extents."""
    return any(first.get(dim, extent) != extent for dim, extent in second.items())


def extents_of_ops(ops: Iterable[Operation]) -> dict[str, int]:
    """Return the extents of all dimensions of ops."""
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
        if op in inside and op not in found and isinstance(op, Operation):
            found.add(op)
            pending += (value for value in op.operands if value not in leaves)
    return frozenset(found)
