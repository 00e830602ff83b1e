"""The nodes on the launch grid of a function."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from comet.dialects.schedule import SpatialOp


def grid_nodes(func: FuncOp) -> tuple[SpatialOp, ...]:
    """Return the outermost grid nodes, in order: one or several of each kernel."""
    nodes = (op for op in func.walk() if isinstance(op, SpatialOp))
    return tuple(op for op in nodes if op.is_grid and op.outermost is op)
