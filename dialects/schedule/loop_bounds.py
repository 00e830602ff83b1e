"""Checks of the operands that say which iterations of a loop run."""

from __future__ import annotations

from xdsl.dialects.builtin import I64, IntegerAttr
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound import IndexOp
from comet.dialects.compound.dims import INTEGER_TENSOR, elements_of, names_of
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.node import NodeOp, outside

BOUNDS = ("until", "start", "since", "first", "end")
"""The properties of a temporal node that hold the index of an operand."""


def verify_bound(op: NodeOp, bound: str, operand: IntegerAttr[I64] | None) -> None:
    """Check that a bound is an operand that every iteration of one loop reads whole."""
    if operand is None:
        return
    index, dims = operand.value.data, [loop.dim for loop in op.loops]
    if len(dims) != 1 or not 0 <= index < len(op.ins):
        raise VerifyException(
            f"'{op.name}' op {bound} {index}: it has to be the index of one of "
            f"{len(op.ins)} operands, in a node with one loop"
        )
    is_index = isinstance(outside(op.ins[index]).owner, IndexOp)
    if dims[0] in names_of(op.ins[index]) and not (bound == "from" and is_index):
        raise VerifyException(
            f"'{op.name}' op {bound} {index}: the operand has {dims[0]}, "
            "over which the node loops; name one that every iteration reads whole"
        )


def verify_ends(
    op: NodeOp, first: IntegerAttr[I64] | None, end: IntegerAttr[I64] | None
) -> None:
    """Check the operands with the first iteration that runs, and with the end."""
    for name, operand in (("first", first), ("end", end)):
        verify_bound(op, name, operand)
        if operand is None:
            continue
        tile = op.tiles[operand.value.data]
        if not INTEGER_TENSOR.verifies(tile.type) or elements_of(tile) != 1:
            raise VerifyException(
                f"'{op.name}' op {name} {operand.value.data}: the operand is one "
                f"integer in each iteration, not {tile.type}"
            )
    if first is not None and end is None:
        raise VerifyException(
            f"'{op.name}' op first: the node has no end, before which its iterations "
            "run"
        )
    if end is not None and {*op.combiners} != {Combiner.FOLD}:
        raise VerifyException(
            f"'{op.name}' op end: iterations that do not run leave iter_args as they "
            "are, and the node has other results"
        )
