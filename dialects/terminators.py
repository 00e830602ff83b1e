"""The end of a block: its terminator, and what that passes on."""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue


def terminator_of(block: Block) -> Operation:
    """Return the last op of a block that is complete."""
    assert block.last_op is not None
    return block.last_op


def yielded_by(block: Block) -> tuple[SSAValue, ...]:
    """Return what a block yields or returns; nothing before it has a terminator."""
    return () if block.last_op is None else tuple(block.last_op.operands)
