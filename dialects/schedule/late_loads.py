"""Where a program loads the tiles of a node: before its loops, or after them."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation, SSAValue

from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import loads


def late_loads(node: NodeOp) -> Mapping[SSAValue, Operation]:
    """
    Return the tiles that a program loads after its loops, with their first use.

    So it need not keep a tile for the result of a loop, such as a bias, while the loop
    runs. All other tiles are loaded at the start of the body; loops load ahead anyway.
    """
    late: dict[SSAValue, Operation] = {}
    if not isinstance(node, SpatialOp):
        return late
    waiting, after = {load.tile for load in loads(node)}, False
    for op in node.body.block.ops:
        first = waiting.intersection(op.operands)
        waiting -= first
        if after:
            late |= {value: op for value in op.operands if value in first}
        after |= isinstance(op, NodeOp)
    return late
