"""
What sees values in memory under other names, in part, joined to others, or by rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from xdsl.ir import SSAValue

from comet.dialects.compound.dims import names_of
from comet.dialects.compound.elementary import FillOp
from comet.dialects.compound.gather import GatherOp
from comet.dialects.compound.pad import ConcatOp, SliceOp
from comet.dialects.compound.rename import RenameOp

View: TypeAlias = RenameOp | SliceOp | ConcatOp | GatherOp
"""An op that GPUs carry out where its result is loaded: by other addresses."""


def gather_ids(value: SSAValue) -> SSAValue | None:
    """Return the ids that choose rows of `value`, seen through views, if any."""
    op = value.owner
    while isinstance(op, SliceOp | RenameOp):
        op = op.input.owner
    return op.ids if isinstance(op, GatherOp) else None


def gathered_dims(value: SSAValue) -> tuple[str, ...]:
    """Return the dimensions along which ids choose rows, seen through views, if any."""
    op = value.owner
    match op:
        case GatherOp():
            return names_of(op.ids)
        case SliceOp():
            return gathered_dims(op.input)
        case RenameOp():
            inner, names = gathered_dims(op.input), names_of(op.result)
            found = {new for new, old in op.origin.items() if old in inner}
            if op.cut in inner:
                found.add(names[names.index(op.renaming[op.cut]) + 1])
            return tuple(name for name in names if name in found)
        case _:
            return ()


def merges_pages(op: RenameOp) -> bool:
    """
    Return whether `op` sees chosen pages, and what is in each, as one dimension.

    Pages are the last of the dimensions that choose, perhaps in parts and under other
    names; a table and ids in memory show both.
    """
    source = op.input.owner
    while isinstance(source, RenameOp) and not source.merged:
        source = source.input.owner
    if not isinstance(source, GatherOp) or not op.merged:
        return False
    choosing = gathered_dims(op.input)
    last, inside = (dim in choosing for dim in op.merged)
    made = tuple(value.owner for value in source.operands)
    return last and not inside and not any(isinstance(op, View | FillOp) for op in made)


def sources(value: SSAValue) -> Iterator[SSAValue]:
    """Yield the values that a value sees through views; itself if it is none."""
    if isinstance(value.owner, View):
        for operand in value.owner.operands:
            yield from sources(operand)
    else:
        yield value
