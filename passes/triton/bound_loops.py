"""
`bound-loops`: loops leave out the iterations that a mask hides completely.

In causal attention, and for keys of several lengths, a mask compares the positions of a
loop with the last visible position of each row. Iterations after the largest of these
positions have no effect (`dialects/schedule/masked_loops.py`), so the loop ends there;
a program computes this end at run time. Where the mask compares with the first visible
position, as in the gradients of the keys, the loop begins there. A window has both.

Where programs split the positions, or ranks shard them, the positions of a loop count
from the start of its part or shard; a part after the last visible position has no
iterations.

Takes functions at the schedule or the dataflow level with copies in their nodes. The
property `until` (or `since`) of a loop is the index of its operand with the last (or
first) visible positions; `from` is the index of the operand that says where its part
or shard begins.
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
    """Leave out the first and last iterations of a loop if a mask hides them."""

    name = "bound-loops"

    LEVELS = (IRLevel.SCHEDULE, IRLevel.DATAFLOW)
    TAKES_COPIES = True

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        bound_loops(function)


def bound_loops(function: FuncOp) -> None:
    """Write `until`, `since` and `from` on the loops of `function` with such a mask."""
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
