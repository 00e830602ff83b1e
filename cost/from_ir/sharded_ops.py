"""
The time that a GPU takes for its shard of an elementary op, before kernels are known.

A product takes the time of its operations at the rate of its element type, other ops
that of vector lanes. Meanwhile an op loads those of its operands that are arguments;
what other ops compute is taken to be in caches or registers, as fused ops have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import TypeAlias

from xdsl.ir import BlockArgument, Operation, SSAValue

from comet.cost.from_ir.products import rate_of
from comet.cost.from_ir.vector_operations import FREE, additions_of
from comet.cost.gpu.device import Device, Units
from comet.cost.gpu.kernel import product_rate, vector_seconds
from comet.dialects.blocks import captured_by
from comet.dialects.compound import ContractOp, FoldOp, PadOp, View
from comet.dialects.compound.dims import bits_of, ceil_div, joined_extents

Shards: TypeAlias = Mapping[str, int]
"""The number of shards of each dimension that is split."""


def sharded_seconds(op: Operation, shards: Shards, device: Device) -> float:
    """Return the seconds of a GPU for the first shard, the largest one, of an op."""
    ops = [*op.step.block.ops] if isinstance(op, FoldOp) else [op]
    computing = sum(_computing(each, shards, device.units) for each in ops)
    loaded = {value for value in captured_by(op) if _is_argument(value)}
    loading = sum(shard_bytes(value, shards) for value in loaded)
    return max(computing, loading / device.memory.hbm_bandwidth)


def shard_bytes(value: SSAValue, shards: Shards) -> float:
    """Return the bytes of the first shard of a value."""
    return _elements([value], shards) * bits_of(value) / 8


def _computing(op: Operation, shards: Shards, units: Units) -> float:
    """Return the seconds of the operations of a shard of an op."""
    points = _elements((*op.operands, *op.results), shards)
    if isinstance(op, ContractOp):
        return 2 * points / product_rate(rate_of(op), units)
    if not op.results or isinstance(op, FREE) or isinstance(op, View):
        return 0.0
    return float(vector_seconds(points * additions_of(op, units), units))


def _elements(values: Iterable[SSAValue], shards: Shards) -> int:
    """Return how many positions there are along the dimensions of all `values`."""
    extents = joined_extents(values).items()
    return prod(ceil_div(extent, shards.get(dim, 1)) for dim, extent in extents)


def _is_argument(value: SSAValue) -> bool:
    """Return whether a value is an argument of its function, or a view of one."""
    return any(isinstance(source, BlockArgument) for source in _viewed(value))


def _viewed(value: SSAValue) -> Iterator[SSAValue]:
    """Yield the values of which `value` is a view; `value` itself if it is no view."""
    if isinstance(value.owner, View | PadOp):
        for operand in value.owner.operands:
            yield from _viewed(operand)
    else:
        yield value
