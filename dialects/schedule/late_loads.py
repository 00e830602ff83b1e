"""When a program loads the tiles of a node: before its loops, or after them."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound.dims import names_of
from comet.dialects.schedule import CopyOp, TemporalOp
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import loads


def late_loads(node: NodeOp) -> Mapping[SSAValue, Operation]:
    """
    Return the tiles that are loaded after a loop in a node, with their first use.

    Registers need not hold a tile, such as a bias, while a loop runs that does not read
    it. All other tiles are loaded at the start of the body; so are tiles that the loops
    of the node itself change, which the software pipeline loads ahead.
    """
    late: dict[SSAValue, Operation] = {}
    changing = set(node.factors) if isinstance(node, TemporalOp) else set[str]()
    waiting = {load.tile for load in loads(node)}
    waiting = {tile for tile in waiting if changing.isdisjoint(names_of(tile))}
    after = False
    for op in node.body.block.ops:
        first = waiting.intersection(op.operands)
        waiting -= first
        if after:
            late |= {value: op for value in op.operands if value in first}
        after |= isinstance(op, NodeOp)
    return late


def is_late(copy: CopyOp) -> bool:
    """Return whether a copy is after a loop in its node, as late loads are."""
    op = copy.prev_op
    while op is not None and not isinstance(op, NodeOp):
        op = op.prev_op
    return op is not None
