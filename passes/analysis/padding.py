"""
The border of a padded function: the pads of its arguments, the slices of its results.

They stay outside of regions and nodes. All other pads are masks, which set what an op
reads from padding.
"""

from __future__ import annotations

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from comet.dialects.compound import ConcatOp, PadOp, SliceOp
from comet.dialects.compound.dims import extents_of


def is_border(op: Operation) -> bool:
    """
    Return whether `op` pads an argument of its block or drops the padding of a result.
    """
    if isinstance(op, PadOp):
        return isinstance(op.input, BlockArgument) and is_resizing(op)
    if isinstance(op, SliceOp) and op.dim is None:
        return all(isinstance(use.operation, ReturnOp) for use in op.result.uses)
    return False


def is_resizing(op: Operation) -> bool:
    """Return whether `op` changes extents: slices, concat, and pads but for masks."""
    return isinstance(op, SliceOp | ConcatOp) or (
        isinstance(op, PadOp) and not op.is_mask
    )


def argument_of(value: SSAValue) -> BlockArgument | None:
    """Return the argument if `value` is one, or is a padded one; else None."""
    if isinstance(value.owner, PadOp) and is_border(value.owner):
        value = value.owner.input
    return value if isinstance(value, BlockArgument) else None


def unsliced(value: SSAValue) -> SSAValue:
    """Return the operand if `value` is a result without its padding, else `value`."""
    op = value.owner
    return op.input if isinstance(op, SliceOp) and is_border(op) else value


def true_extents(func: FuncOp) -> dict[str, int]:
    """Return the true extents of the padded dimensions of a function."""
    borders = [op for op in func.body.block.ops if is_border(op)]
    true: dict[str, int] = {}
    for op in borders:
        assert isinstance(op, PadOp | SliceOp)
        outer, inner = op.input, op.result
        if isinstance(op, SliceOp):
            outer, inner = inner, outer
        larger = extents_of(inner)
        true |= {d: n for d, n in extents_of(outer).items() if n != larger[d]}
    return true
