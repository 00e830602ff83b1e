"""Which values only the root of a group has."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Block, Operation, SSAValue

from comet.dialects.collective.ops import BroadcastOp, GatherOp, RootReduceOp, ScatterOp

Roots = Mapping[tuple[str, ...], int]
"""The one instance of each group that has a value, by the axes of the group."""


def roots_in(block: Block) -> dict[SSAValue, Roots]:
    """Return the roots of every value whose defining op is in `block`."""
    roots: dict[SSAValue, Roots] = {}
    for op in block.ops:
        roots |= dict.fromkeys(op.results, roots_after(op, roots))
    return roots


def roots_after(op: Operation, roots: Mapping[SSAValue, Roots]) -> Roots:
    """Return the roots of the results of `op`, given those of its operands."""
    joined: dict[tuple[str, ...], int] = {}
    for operand in op.operands:
        joined |= roots.get(operand, {})
    if isinstance(op, GatherOp | RootReduceOp):
        joined[op.axis_names] = op.root.value.data
    elif isinstance(op, BroadcastOp | ScatterOp):
        joined.pop(op.axis_names, None)
    return joined
