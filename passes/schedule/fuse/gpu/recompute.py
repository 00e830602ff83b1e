"""
Values that kernels compute again instead of loading them: large ones of small ones.

The scores of attention have an element for each query and key, and each takes few
operations. Where several kernels read such values, as in the backward graph, each may
compute them from queries and keys: then none of them goes through device memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.ir import Operation, SSAValue

from comet.cost.from_ir.products import operations_of, rate_of
from comet.cost.gpu.kernel import Device
from comet.dialects.compound import CastOp, ContractOp, MapKind, MapOp, View
from comet.dialects.compound.dims import element_type_of, extents_of
from comet.passes.analysis.row_statistics import (
    elementwise_ops,
    elementwise_sources,
    needed_by,
    statistic_ops,
)
from comet.passes.schedule.fuse.gpu.groups import casts_and_positions


def ops_again(ops: Sequence[Operation], gpu: Device) -> frozenset[Operation]:
    """Return the ops that are computed again for nothing, or cheaply."""
    return free_again(ops) | cheap_again(ops, gpu) | statistics_again(ops)


def free_again(ops: Sequence[Operation]) -> frozenset[Operation]:
    """
    Return the ops that every kernel computes itself which reads their results.

    These are casts to wider types, and what is computed from positions alone; not what
    is returned or seen under another name, which has to be stored.
    """
    known = set(ops)
    own = casts_and_positions(ops)
    return frozenset(op for op in own if _may_vanish(op.results[0], known))


def cheap_again(ops: Sequence[Operation], gpu: Device) -> frozenset[Operation]:
    """
    Return the ops whose results every kernel that reads them can compute again.

    These are products with more elements than their operands that take less time than
    it takes to store and to load them, and elementwise ops of such products. What is
    returned or seen under another name has to be stored. Empty if each of these
    products is for one other op alone, which fusion merges with it.
    """
    known, found = set(ops), set[Operation]()
    for op in ops:
        made = isinstance(op, MapOp | CastOp) and any(
            v.owner in found for v in op.operands
        )
        grown = isinstance(op, ContractOp) and _grows(op) and _is_cheap(op, gpu)
        if (made or grown) and _may_vanish(op.results[0], known):
            found.add(op)
    readers = {
        use.operation
        for op in found
        for use in op.results[0].uses
        if use.operation not in found
    }
    return frozenset(found if len(readers) > 1 else ())


def statistics_again(ops: Sequence[Operation]) -> frozenset[Operation]:
    """
    Return the ops of statistics that products can compute in their own loops.

    Where a product is scaled by a reduction of what it reads, over the dimensions that
    it sums, one loop makes both: every kernel with such a product computes the
    statistic again, and what the product reads from the same values. Only ops that
    nothing else needs.
    """
    found, readers = set[Operation](), set[Operation]()
    for product in ops:
        if isinstance(product, ContractOp):
            for scaling, statistic in _scalings(product):
                found |= statistic | elementwise_ops(product.operands)
                readers |= {product, scaling}
    return needed_by(found, readers)


def _scalings(product: ContractOp) -> Iterator[tuple[MapOp, frozenset[Operation]]]:
    """Yield the ops that scale a product by a statistic of what it reads."""
    sources = elementwise_sources(product.operands)
    for user in (use.operation for use in product.result.uses):
        if isinstance(user, MapOp) and user.kind.data in (MapKind.MULT, MapKind.DIV):
            others = (value for value in user.inputs if value is not product.result)
            for value in others:
                if made := statistic_ops(value, product.contracted, sources):
                    yield user, made


def _may_vanish(value: SSAValue, known: set[Operation]) -> bool:
    users = [use.operation for use in value.uses]
    return all(user in known and not isinstance(user, View) for user in users)


def _grows(product: ContractOp) -> bool:
    """Whether a product has more elements than both operands."""
    return _elements(product.result) > sum(map(_elements, product.operands))


def _is_cheap(product: ContractOp, gpu: Device) -> bool:
    """Whether a product takes less time than to store and load it as its operands."""
    moved = 2 * _elements(product.result) * element_type_of(product.lhs).bitwidth / 8
    rate, work = gpu.tensor.get(rate_of(product)), operations_of(product)
    return rate is not None and work / rate < moved / gpu.hbm_bandwidth


def _elements(value: SSAValue) -> int:
    return prod(extents_of(value).values())
