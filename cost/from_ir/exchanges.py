"""How often the programs of a kernel wait for values of others."""

from __future__ import annotations

from xdsl.ir import Operation

from comet.dialects.collective import CollectiveOp
from comet.dialects.dataflow.channel import ChannelOp, ReceiveBufferOp, program_value
from comet.dialects.dataflow.transfer import WaitOp
from comet.dialects.schedule import SpatialOp


def exchanges_in(node: SpatialOp, *, among_ranks: bool) -> int:
    """
    Return how often a program waits, for each tile, for others of its group.

    `among_ranks`: how often its group waits for other ranks.
    """
    groups = (op for op in node.walk() if isinstance(op, SpatialOp) and op.on_mesh)
    inside = (op for group in groups for op in group.walk())
    return sum(_waits(op) and _is_among_ranks(op) is among_ranks for op in inside)


def _waits(op: Operation) -> bool:
    """Whether programs wait at an op."""
    if isinstance(op, CollectiveOp):
        return not op.joins_exchange
    return isinstance(op, WaitOp)


def _is_among_ranks(op: Operation) -> bool:
    """Whether an exchange is one between GPUs."""
    if isinstance(op, CollectiveOp):
        return op.among_ranks
    assert isinstance(op, WaitOp)
    channel = program_value(op.channel).owner
    assert isinstance(channel, ChannelOp | ReceiveBufferOp)
    return not channel.in_one_memory
