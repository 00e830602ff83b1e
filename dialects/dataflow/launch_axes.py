"""How many axes the launch grid of a kernel has, and which programs exchange."""

from __future__ import annotations

from math import prod

from comet.dialects.collective.spmd import rank_count
from comet.dialects.dataflow.locality import launched_ranks
from comet.dialects.dataflow.merging import launched_nodes
from comet.dialects.dataflow.program import KernelOp
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import GRID_AXES


def launch_axes(node: SpatialOp) -> int:
    """
    Return the axes of the launch grid that the loops of a node have.

    There is one, so that one launch can have the programs of all ranks, of several
    nodes, and of groups whose programs follow each other.
    """
    kernel = node.parent_op()
    ranks = launched_ranks(kernel) if isinstance(kernel, KernelOp) else rank_count(node)
    is_single = ranks == group_size(node) == 1
    return GRID_AXES if is_single and not _shares_launch(node) else 1


def group_size(grid: SpatialOp) -> int:
    """Return how many programs of a kernel exchange with each other, 1 if none do."""
    nodes = (op for op in grid.walk() if isinstance(op, SpatialOp) and op.on_mesh)
    return prod(loop.factor for node in nodes for loop in node.loops)


def _shares_launch(node: SpatialOp) -> bool:
    """Whether a kernel has programs of several nodes: they are on one axis."""
    kernel = node.parent_op()
    return isinstance(kernel, KernelOp) and len(launched_nodes(kernel)) > 1
