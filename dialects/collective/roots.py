"""Which values only the root of a group holds."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Block, Operation, SSAValue

from comet.dialects.collective.ops import BroadcastOp, GatherOp, RootReduceOp, ScatterOp

Roots = Mapping[tuple[str, ...], int]
"""The one instance that holds a value, of each group that is given by its axes."""


def roots_in(block: Block) -> dict[SSAValue, Roots]:
    """Return the roots of every value that an op right in `block` makes."""
    roots: dict[SSAValue, Roots] = {}
    for op in block.ops:
        roots |= dict.fromkeys(op.results, roots_after(op, roots))
    return roots


def roots_after(op: Operation, roots: Mapping[SSAValue, Roots]) -> Roots:
    """Return the roots of what `op` makes, given those of its operands."""
    joined: dict[tuple[str, ...], int] = {}
    for operand in op.operands:
        joined |= roots.get(operand, {})
    if isinstance(op, GatherOp | RootReduceOp):
        joined[op.axis_names] = op.root.value.data
    elif isinstance(op, BroadcastOp | ScatterOp):
        joined.pop(op.axis_names, None)
    return joined
