"""
A work-around for two bugs of Triton's pass OptimizeThreadLocality.

The pass moves a reduction of what a loop has just loaded out of the loop. Up to Triton
3.8 it assumes, unchecked, that the loop's result has one use (triton-lang/triton#11682)
and that the loop accumulates by the same kind (#11305). Anything between the load and
the reduction keeps the pass away: `lower-to-triton` puts a selection there that changes
nothing.
"""

from __future__ import annotations

from comet.dialects.compound import MapOp, ReduceOp
from comet.dialects.schedule import CopyOp, TemporalOp


def breaks_thread_locality(op: ReduceOp) -> bool:
    """Whether the pass would take up a reduction, and break on it."""
    node, uses = op.parent_op(), list(op.result.uses)
    if not isinstance(node, TemporalOp) or len(uses) != 1:
        return False
    if op.input not in node.tiles and not isinstance(op.input.owner, CopyOp):
        return False
    user = uses[0].operation
    if user is node.body.block.last_op:
        result = node.outs[node.yielded.index(op.result)]
        return len(list(result.uses)) > 1
    return isinstance(user, MapOp) and user.result in node.yielded
