"""
`merge-collectives`: SPMD level -> SPMD level, with fewer collectives.

Of equal collectives of one value, such as two all-gathers, only the first stays. The
sum of two reductions over the same group, such as two reduce-scatters, becomes one
reduction of the sum, which moves half as many bytes; likewise for maxima. The two may
be any terms of a chain of sums, as in a residual to which two branches are added.
Reductions with other readers stay. The order of floating-point additions changes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.collective import AllReduceOp, ReduceScatterOp
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.collective.spmd import SpmdOp
from comet.dialects.compound import MapOp
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass

Reduction: TypeAlias = AllReduceOp | ReduceScatterOp
"""A reduction whose result all instances of a group have, whole or in shards."""


@dataclass(frozen=True)
class MergeCollectivesPass(FunctionPass):
    """Exchange equal values once, and reduce sums instead of summing reductions."""

    name = "merge-collectives"

    LEVELS = (IRLevel.ELEMENTARY, IRLevel.SPMD)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        for region in [op for op in function.walk() if isinstance(op, SpmdOp)]:
            for later, first in equal_collectives(region):
                Rewriter.replace_op(later, (), first.results)
            while (merge := next(plan_merges(region), None)) is not None:
                apply_merge(merge)


def equal_collectives(region: SpmdOp) -> Iterator[tuple[CollectiveOp, CollectiveOp]]:
    """Yield each collective of a region to which an earlier one is equal, and that."""
    seen: dict[Hashable, CollectiveOp] = {}
    for op in list(region.body.block.ops):
        if isinstance(op, CollectiveOp) and op.results:
            first = seen.setdefault((op.input, _signature(op)), op)
            if first is not op:
                yield op, first


@dataclass(frozen=True)
class ReductionPair:
    """Two reductions that become one."""

    first: Reduction
    second: Reduction
    inner: MapOp
    """The sum or maximum that reads the first one."""
    outer: MapOp
    """The one that reads the second one: `inner`, or a later one of the chain."""


def plan_merges(region: SpmdOp) -> Iterator[ReductionPair]:
    """Yield pairs of reductions in a region that can become one."""
    for outer in region.body.block.ops:
        if isinstance(outer, MapOp) and len(outer.inputs) == 2:
            for second, other in (reversed(outer.inputs), outer.inputs):
                if (reduction := _reduction(second, outer)) is not None:
                    yield from _merges_with(reduction, outer, outer, other)


def _merges_with(
    second: Reduction, outer: MapOp, inner: MapOp, value: SSAValue
) -> Iterator[ReductionPair]:
    """Yield the merges of `second` with terms of `value`, an operand of `inner`."""
    first, op = _reduction(value, inner), value.owner
    if first is not None and _signature(first) == _signature(second):
        yield ReductionPair(first, second, inner, outer)
    elif isinstance(op, MapOp) and op.kind == outer.kind and _is_term(value, outer):
        for term in op.inputs:
            yield from _merges_with(second, outer, op, term)


def _reduction(value: SSAValue, reader: MapOp) -> Reduction | None:
    """Return the reduction that yields `value`, if `reader` combines by its kind."""
    producer = value.owner
    if not isinstance(producer, Reduction) or not _is_term(value, reader):
        return None
    return producer if str(producer.kind.data) == str(reader.kind.data) else None


def _is_term(value: SSAValue, reader: MapOp) -> bool:
    """Return whether only `reader` has `value`, which is of its type."""
    return value.has_one_use() and value.type == reader.result.type


def _signature(op: CollectiveOp) -> Hashable:
    """Return a key: collectives of one input with equal keys have equal results."""
    types = tuple(value.type for value in (op.input, *op.results))
    named = (*op.properties.items(), *op.attributes.items())
    return type(op), types, frozenset(named)


def apply_merge(merge: ReductionPair) -> None:
    """Reduce the sum of what two reductions reduce, where the second is read."""
    first, second, outer = merge.first, merge.second, merge.outer
    both = MapOp(outer.kind.data, [first.input, second.input], second.input.type)
    both.result.name_hint = second.input.name_hint
    merged = second.clone({second.input: both.result})
    Rewriter.insert_op([both, merged], InsertPoint.before(outer))
    if merge.inner is outer:
        Rewriter.replace_op(outer, (), merged.results)
        Rewriter.erase_op(second)
    else:
        (term,) = (value for value in merge.inner.inputs if value is not first.result)
        Rewriter.replace_op(merge.inner, (), (term,))
        Rewriter.replace_op(second, (), merged.results)
    Rewriter.erase_op(first)
