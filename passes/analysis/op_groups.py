"""Groups of elementary ops: their extents, and backward slices in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from xdsl.ir import Operation, SSAValue

from comet.dialects.collective.spmd import SpmdOp, region_states
from comet.dialects.collective.state import States
from comet.dialects.compound.dims import joined_extents, names_of
from comet.digraph import components, reachable

T = TypeVar("T")


@dataclass(frozen=True)
class Sizes:
    """The dimensions of ops, as one instance of an SPMD region has them."""

    extents: Mapping[str, int]
    splits: Mapping[str, tuple[str, ...]]
    """
    The mesh axes that split each dimension, but for those that only constants have.

    Extents do not show it: a shard of one element may be the whole.
    """

    def conflicts_with(self, other: Sizes) -> bool:
        """Return whether a dimension has two extents, or is split in two ways."""
        extents = conflict(self.extents, other.extents)
        return extents or conflict(self.splits, other.splits)


class BlockSizes:
    """The sizes of ops of one block, which may be that of an SPMD region."""

    def __init__(self, ops: Sequence[Operation]):
        region = ops[0].parent_op() if ops else None
        inside = isinstance(region, SpmdOp)
        self._states: States = region_states(region) if inside else {}

    def of(self, ops: Iterable[Operation]) -> Sizes:
        """Return the sizes of all dimensions of ops."""
        ops = tuple(ops)
        values = (value for op in ops for value in (*op.operands, *op.results))
        found = {value: self._states[value] for value in values if self._states}
        splits = {
            dim: state.splits(dim)
            for value, state in found.items()
            for dim in names_of(value)
            if not state.uniform
        }
        return Sizes(extents_of_ops(ops), splits)

    def conflict(self, first: Sequence[Operation], second: Sequence[Operation]) -> bool:
        """Return whether a dimension has one size in `first`, another in `second`."""
        return self.of(first).conflicts_with(self.of(second))


def extents_conflict(first: Sequence[Operation], second: Sequence[Operation]) -> bool:
    """Return whether a dimension has one extent in `first` and another in `second`."""
    return conflict(extents_of_ops(first), extents_of_ops(second))


def conflict(first: Mapping[str, T], second: Mapping[str, T]) -> bool:
    """Return whether a dimension has one size here, and another there."""
    return any(first.get(dim, size) != size for dim, size in second.items())


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

    def owners(values: Iterable[SSAValue]) -> Iterator[Operation]:
        for value in values:
            if isinstance(op := value.owner, Operation) and op in inside:
                yield op

    def producers(op: Operation) -> Iterator[Operation]:
        return owners(value for value in op.operands if value not in leaves)

    return frozenset(reachable(owners(values), producers))


def connected(ops: Sequence[Operation]) -> tuple[tuple[Operation, ...], ...]:
    """Return `ops` in the smallest groups that do not depend on each other."""
    inside = set(ops)

    def neighbours(op: Operation) -> Iterator[Operation]:
        owners = (value.owner for value in op.operands)
        users = (use.operation for value in op.results for use in value.uses)
        for other in chain(owners, users):
            if isinstance(other, Operation) and other in inside:
                yield other

    return tuple(components(ops, neighbours))
