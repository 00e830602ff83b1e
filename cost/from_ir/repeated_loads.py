"""Loads that two loops of a program have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.ir import Operation, SSAValue

from comet.dialects.collective import CollectiveOp
from comet.dialects.compound.dims import names_of
from comet.dialects.dataflow.transfer import PushOp, ReadTileOp, WaitOp
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import loads, stores


def repeated_loads(node: NodeOp) -> Mapping[SSAValue, tuple[str, ...]]:
    """
    Return the tiles that a loop before a loop loads, too, with the loops of both.

    If these have one iteration, the program loads the tile once: Triton 3.6 to 3.9
    merge equal loads in a block that nothing is stored between.
    """
    found: dict[SSAValue, tuple[str, ...]] = {}
    for other in _loops_before(node):
        known = {(load.outer, names_of(load.tile)) for load in loads(other)}
        for load in loads(node):
            if (load.outer, names_of(load.tile)) in known:
                found.setdefault(load.tile, (*other.factors, *node.factors))
    return found


def _loops_before(node: NodeOp) -> Iterator[TemporalOp]:
    """Yield the loops before a loop in its block, until one op stores or waits."""
    op = node.prev_op if isinstance(node, TemporalOp) else None
    while op is not None and not any(map(_is_effect, op.walk())):
        if isinstance(op, TemporalOp):
            yield op
        op = op.prev_op


def _is_effect(op: Operation) -> bool:
    """Return whether an op stores to memory, or synchronizes with other programs."""
    if isinstance(op, NodeOp):
        return any(stores(op))
    return isinstance(op, CollectiveOp | PushOp | ReadTileOp | WaitOp)
