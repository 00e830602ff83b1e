"""
Values that kernels compute again instead of loading them: large ones of small ones.

The scores of attention have an element for each query and key, and each takes few
operations. Where several kernels read such values, as in the backward graph, each may
compute them from queries and keys: then none of them goes through device memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation, SSAValue

from comet.cost.from_ir.products import operations_of, rate_of
from comet.cost.gpu.kernel import Device
from comet.dialects.compound import CastOp, ContractOp, MapOp, View
from comet.dialects.compound.dims import element_type_of, extents_of
from comet.passes.schedule.fuse.gpu.groups import casts_and_positions


def ops_again(ops: Sequence[Operation], gpu: Device) -> frozenset[Operation]:
    """Return the ops that are computed again for nothing, or cheaply."""
    return free_again(ops) | cheap_again(ops, gpu)


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
