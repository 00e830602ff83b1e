"""
The accumulators of loops: which op adds to them, and their layout.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import ContractOp
from comet.dialects.compound.dims import names_of
from comet.dialects.schedule import TemporalOp, YieldOp
from comet.dialects.schedule.attributes import Combiner


def is_fused(op: Operation) -> bool:
    """Whether `op` is a product that adds directly to the accumulator of its loop."""
    return (
        isinstance(op, ContractOp)
        and isinstance(node := op.parent_op(), TemporalOp)
        and _combiner(node, op.result) is Combiner.ADD
    )


def is_transposed(op: ContractOp) -> bool:
    """Return whether the result of a product has its columns before its rows."""
    _, _, columns, _ = op.roles
    of_matrix = [name for name in names_of(op.result) if name not in op.batched]
    return [name in columns for name in of_matrix] == [True, False]


def is_continued(node: TemporalOp, value: SSAValue) -> bool:
    """Whether a loop inside `node` computes its yielded `value`, with its combiner."""
    inside = value.owner
    if not isinstance(inside, TemporalOp):
        return False
    combiner = _combiner(node, value)
    combined = combiner in (Combiner.ADD, Combiner.MAX, Combiner.SAME)
    return combined and combiner is inside.combiners[inside.outs.index(value)]


def _combiner(node: TemporalOp, value: SSAValue) -> Combiner | None:
    """Return the combiner of a yielded value, None if it has other uses."""
    uses = list(value.uses)
    if len(uses) != 1 or not isinstance(uses[0].operation, YieldOp):
        return None
    return node.combiners[uses[0].index]
