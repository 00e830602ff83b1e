"""
`bound-loops`: loops have only the iterations that a mask does not hide.

A loop over positions whose mask compares them with the last visible one (causal
attention, keys of several lengths) has iterations without effect: all that they add is
masked (see `dialects/schedule/masked_loops.py`). Their first is found at run time, from
the largest of the last visible positions of a program. Where the mask compares them
with the first visible one, as in the gradients of the keys, the loop begins there.
A window has both.
Where programs split the positions, or ranks shard them, a loop begins with the first of
its part or shard: those beyond the last visible position have no iterations.
Takes functions at the schedule or the dataflow level with copies in their nodes; a loop
gets the property `until` or `since`, the operand that holds these positions, and
`from`, the operand with the first position of its part, or the positions of its shard.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp

from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.masked_loops import visible_bounds
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass


@dataclass(frozen=True)
class BoundLoopsPass(FunctionPass):
    """Leave out the last and first iterations of loops that a mask hides."""

    name = "bound-loops"

    LEVELS = (IRLevel.SCHEDULE, IRLevel.DATAFLOW)
    TAKES_COPIES = True

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        bound_loops(function)


def bound_loops(function: FuncOp) -> None:
    """Give the loops of `function` that a mask can bound their bounds."""
    for node in [op for op in function.walk() if isinstance(op, TemporalOp)]:
        if node.end is not None:
            continue  # Its iterations are those of a share.
        last, first = visible_bounds(node)
        if node.until is None and last is not None:
            node.until = IntegerAttr(last.operand, i64)
            if last.start is not None:
                node.start = IntegerAttr(last.start, i64)
        if node.since is None and first is not None:
            node.since = IntegerAttr(first.operand, i64)
