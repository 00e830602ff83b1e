"""
Partial results that the last program to arrive merges: which they are, and their bytes.

The launch that stores them also loads them; `held_bytes` in `cost/gpu/tiling.py` says
which of them L2 still holds then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import SSAValue

from comet.cost.reals import Real
from comet.dialects.compound.rename import viewed
from comet.dialects.dataflow.arrival import ArriveOp
from comet.dialects.schedule import SpatialOp


def bytes_by_value(node: SpatialOp, traffic: Sequence[Real]) -> dict[SSAValue, float]:
    """
    Return the bytes of device memory for each value that a node loads or stores.

    `traffic` is what `tensor_traffic` returns: in the order of the operands and the
    results, each once; then come tiles that are spilled.
    """
    values = dict.fromkeys((*node.ins, *node.outs))
    return dict(zip(values, map(float, traffic), strict=False))


def arrived_partials(node: SpatialOp) -> list[SSAValue]:
    """Return the operands of a node that its programs merge, each once."""
    values = dict.fromkeys((*node.ins, *node.outs))
    return [value for value in values if isinstance(viewed(value).owner, ArriveOp)]


def partial_bytes(
    node: SpatialOp, partials: Iterable[SSAValue], traffic: Sequence[Real]
) -> float:
    """Return the bytes of partial results that a node loads; see `bytes_by_value`."""
    moved = bytes_by_value(node, traffic)
    return sum(moved[value] for value in partials)
