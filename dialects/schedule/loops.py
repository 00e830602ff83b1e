"""The loops of a node and of the nodes in its body."""

from __future__ import annotations

from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.node import NodeOp


def is_innermost(node: TemporalOp, dim: str) -> bool:
    """
    Whether a node loops over a dimension once, with no other loop inside.

    If the loop is over what peers send, all of it is waited for before: a loop that
    waits cannot load ahead.
    """
    dims = repeated(node)
    inside = (op for op in node.body.walk() if isinstance(op, NodeOp))
    return (
        dims[-1:] == [dim] and dims.count(dim) == 1 and not any(map(repeated, inside))
    )


def repeated(node: NodeOp) -> list[str]:
    """Return the dimensions of loops that run more than once, outermost first."""
    return [loop.dim for loop in node.loops if loop.factor > 1]
