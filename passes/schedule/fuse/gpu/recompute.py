"""
Which ops every kernel recomputes that needs their results, instead of loading these.

The scores of attention have an element for each query and key, which takes few
operations. If several kernels read them, as in the backward graph, each may recompute
them from queries and keys, so that no scores go through device memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.ir import Operation, SSAValue

from comet.cost.from_ir.products import operations_of, rate_of
from comet.cost.gpu.device import Device
from comet.dialects.compound import (
    ContractOp,
    Elementwise,
    MapKind,
    MapOp,
    ScatterAddOp,
)
from comet.dialects.compound.dims import element_type_of, elements_of
from comet.passes.analysis.row_statistics import (
    elementwise_ops,
    elementwise_sources,
    needed_by,
    statistic_ops,
)
from comet.passes.schedule.fuse.gpu.groups import Border, casts_and_positions


def recomputable_ops(ops: Sequence[Operation], gpu: Device) -> frozenset[Operation]:
    """Return all ops that kernels recompute."""
    free, statistics = free_to_recompute(ops), statistics_to_recompute(ops)
    return free | cheap_to_recompute(ops, gpu) | statistics


def free_to_recompute(ops: Sequence[Operation]) -> frozenset[Operation]:
    """
    Return the casts to wider types, and the ops that only read positions.

    Without those whose result is returned or viewed: it has to be stored.
    """
    known = set(ops)
    repeated = casts_and_positions(ops)
    return frozenset(op for op in repeated if not _is_stored(op.results[0], known))


def cheap_to_recompute(ops: Sequence[Operation], gpu: Device) -> frozenset[Operation]:
    """
    Return the products that take less time than to store and load them.

    They have more elements than their operands. With them, the elementwise ops that
    read them; without those whose result is returned or viewed: it has to be stored.
    Empty if only one other op reads all these results: fusion merges that op.
    """
    known, found = set(ops), set[Operation]()
    for op in ops:
        follows = isinstance(op, Elementwise) and any(
            v.owner in found for v in op.operands
        )
        is_large = isinstance(op, ContractOp) and _grows(op) and _is_cheap(op, gpu)
        if (follows or is_large) and not _is_stored(op.results[0], known):
            found.add(op)
    consumers = {
        use.operation
        for op in found
        for use in op.results[0].uses
        if use.operation not in found
    }
    return frozenset(found if len(consumers) > 1 else ())


def statistics_to_recompute(ops: Sequence[Operation]) -> frozenset[Operation]:
    """
    Return the ops of statistics that products can compute in their own loops.

    If a product is scaled by a reduction of its operands over the dimensions that it
    sums, one loop computes both. So every kernel with such a product recomputes the
    statistic and the elementwise ops of the operands. Only ops that nothing else needs.
    """
    found, readers = set[Operation](), set[Operation]()
    for product in ops:
        if isinstance(product, ContractOp):
            for scaling, statistic in _scalings(product):
                found |= statistic | elementwise_ops(product.operands)
                readers |= {product, scaling}
    return needed_by(found, readers)


def _scalings(product: ContractOp) -> Iterator[tuple[MapOp, frozenset[Operation]]]:
    """Yield the ops that scale a product by a statistic, with the statistic's ops."""
    sources = elementwise_sources(product.operands)
    for user in (use.operation for use in product.result.uses):
        if isinstance(user, MapOp) and user.kind.data in (MapKind.MULT, MapKind.DIV):
            others = (value for value in user.inputs if value is not product.result)
            for value in others:
                if made := statistic_ops(value, product.contracted, sources):
                    yield user, made


def _is_stored(value: SSAValue, known: set[Operation]) -> bool:
    """Whether a value has to be in memory: it is returned, viewed, moved or added."""
    users = [use.operation for use in value.uses]
    kept = Border | ScatterAddOp
    return any(user not in known or isinstance(user, kept) for user in users)


def _grows(product: ContractOp) -> bool:
    """Whether a product has more elements than both operands."""
    return elements_of(product.result) > sum(map(elements_of, product.operands))


def _is_cheap(product: ContractOp, gpu: Device) -> bool:
    """Whether a product takes less time than to store and load it in their type."""
    moved = 2 * elements_of(product.result) * element_type_of(product.lhs).bitwidth / 8
    rate, work = gpu.units.tensor.get(rate_of(product)), operations_of(product)
    return rate is not None and work / rate < moved / gpu.memory.hbm_bandwidth
