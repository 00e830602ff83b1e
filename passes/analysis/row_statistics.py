"""
Statistics of the rows that a product reads, such as their sums of squares.

One loop can compute them with the product. Pure functions on elementary ops
(`compound`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import Elementwise, FillOp, ReduceOp
from comet.digraph import reachable


def elementwise_sources(values: Iterable[SSAValue]) -> frozenset[SSAValue]:
    """Return the values that elementwise ops compute `values` from, no constants."""
    return frozenset(v for v in _slice(values) if not isinstance(v.owner, Elementwise))


def elementwise_ops(values: Iterable[SSAValue]) -> frozenset[Operation]:
    """Return the elementwise ops that compute `values` from their sources."""
    owners = (value.owner for value in _slice(values))
    return frozenset(op for op in owners if isinstance(op, Elementwise))


def _slice(values: Iterable[SSAValue]) -> Iterator[SSAValue]:
    """Return `values`, and all values that elementwise ops compute them from."""

    def sources(value: SSAValue) -> Sequence[SSAValue]:
        return value.owner.operands if isinstance(value.owner, Elementwise) else ()

    found = reachable(values, sources)
    return (value for value in found if not isinstance(value.owner, FillOp))


def statistic_ops(
    value: SSAValue, summed: Collection[str], sources: AbstractSet[SSAValue]
) -> frozenset[Operation]:
    """
    Return the ops that compute the statistic `value` in a loop that reads `sources`.

    A statistic is computed by elementwise ops from reductions over exactly the
    dimensions `summed`, whose inputs elementwise ops compute from `sources`. Empty if
    `value` is no such statistic.
    """
    reductions = [source.owner for source in elementwise_sources([value])]
    for op in reductions:
        if not isinstance(op, ReduceOp) or set(op.reduced) != set(summed):
            return frozenset()
        if not elementwise_sources([op.input]) <= sources:
            return frozenset()
    inputs = (op.input for op in reductions if isinstance(op, ReduceOp))
    found = elementwise_ops([value]) | elementwise_ops(inputs)
    reduce_ops = frozenset(op for op in reductions if isinstance(op, ReduceOp))
    return found | reduce_ops if reduce_ops else reduce_ops


def needed_by(
    ops: AbstractSet[Operation], users: AbstractSet[Operation]
) -> frozenset[Operation]:
    """Return the ops whose results only `users`, and other such ops, use."""
    needed = set(ops)
    while True:
        inside = needed | users
        outside = {
            op
            for op in needed
            if any(use.operation not in inside for v in op.results for use in v.uses)
        }
        if not outside:
            return frozenset(needed)
        needed -= outside
