"""Which op adds to the accumulator of a loop: its yield, or one in its body."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import ContractOp
from comet.dialects.schedule import TemporalOp, YieldOp
from comet.dialects.schedule.attributes import Combiner


def is_fused(op: Operation) -> bool:
    """Whether the operation is written at the yield, with the loop's accumulator."""
    return (
        isinstance(op, ContractOp)
        and isinstance(node := op.parent_op(), TemporalOp)
        and _combiner(node, op.result) is Combiner.ADD
    )


def is_continued(node: TemporalOp, value: SSAValue) -> bool:
    """Whether a node inside makes what `node` yields, and combines it alike."""
    inside = value.owner
    if not isinstance(inside, TemporalOp):
        return False
    own = _combiner(node, value)
    combined = own in (Combiner.ADD, Combiner.MAX, Combiner.SAME)
    return combined and own is inside.combiners[inside.outs.index(value)]


def _combiner(node: TemporalOp, value: SSAValue) -> Combiner | None:
    """Return how `node` combines a value that it yields; None if more use it."""
    uses = list(value.uses)
    if len(uses) != 1 or not isinstance(uses[0].operation, YieldOp):
        return None
    return node.combiners[uses[0].index]
