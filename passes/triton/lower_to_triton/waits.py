"""
Where consumers wait for what peers give: in the loop over them, or before it for all.

In the loop, work on one share hides that others are late. But a loop that waits cannot
load ahead, so all are waited for first where each gave one tile.
"""

from __future__ import annotations

from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.node import NodeOp
from comet.passes.triton.lower_to_triton.slices import rows_of


def is_innermost(node: TemporalOp, dim: str) -> bool:
    """Whether a node loops over a dimension once, with no other loop inside."""
    rows = [row.dim for row in rows_of(node)]
    inside = (op for op in node.body.walk() if isinstance(op, NodeOp))
    return rows[-1:] == [dim] and rows.count(dim) == 1 and not any(map(rows_of, inside))
