"""
Reductions of what a loop reads anyway, such as the sum of squares of a product's rows.

Pure functions on elementary ops (`compound`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import CastOp, FillOp, MapOp, ReduceOp

ELEMENTWISE = (MapOp, CastOp)


def elementwise_sources(values: Iterable[SSAValue]) -> frozenset[SSAValue]:
    """Return what `values` are computed from element by element, without constants."""
    return frozenset(v for v in _slice(values) if not isinstance(v.owner, ELEMENTWISE))


def elementwise_ops(values: Iterable[SSAValue]) -> frozenset[Operation]:
    """Return the elementwise ops that compute `values` from their sources."""
    owners = (value.owner for value in _slice(values))
    return frozenset(op for op in owners if isinstance(op, ELEMENTWISE))


def _slice(values: Iterable[SSAValue]) -> Iterator[SSAValue]:
    """Yield `values` and all that they are computed from element by element."""
    pending, seen = list(values), set[SSAValue]()
    while pending:
        value = pending.pop()
        if value in seen or isinstance(value.owner, FillOp):
            continue
        seen.add(value)
        yield value
        if isinstance(value.owner, ELEMENTWISE):
            pending += value.owner.operands


def statistic_ops(
    value: SSAValue, summed: Collection[str], sources: AbstractSet[SSAValue]
) -> frozenset[Operation]:
    """
    Return the ops that compute `value` in a loop over `summed` that reads `sources`.

    That is a function, element by element, of reductions over all of `summed`, whose
    inputs follow from `sources` element by element. Empty if `value` is none.
    """
    reductions = [source.owner for source in elementwise_sources([value])]
    for op in reductions:
        if not isinstance(op, ReduceOp) or set(op.reduced) != set(summed):
            return frozenset()
        if not elementwise_sources([op.input]) <= sources:
            return frozenset()
    inputs = (op.input for op in reductions if isinstance(op, ReduceOp))
    found = elementwise_ops([value]) | elementwise_ops(inputs)
    made = frozenset(op for op in reductions if isinstance(op, ReduceOp))
    return found | made if made else made


def needed_by(
    ops: AbstractSet[Operation], readers: AbstractSet[Operation]
) -> frozenset[Operation]:
    """Return those of `ops` whose results only `readers` and others of them need."""
    kept = set(ops)
    while True:
        inside = kept | readers
        outside = {
            op
            for op in kept
            if any(use.operation not in inside for v in op.results for use in v.uses)
        }
        if not outside:
            return frozenset(kept)
        kept -= outside
