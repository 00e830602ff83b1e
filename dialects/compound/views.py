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


def sees_pages(op: RenameOp) -> bool:
    """
    Return whether `op` sees chosen pages, and what is in each, as one dimension.

    Pages are the last of the dimensions of ids; a table and ids in memory show both.
    """
    gather = op.input.owner
    if not isinstance(gather, GatherOp) or not op.merged:
        return False
    last, inside = (dim in names_of(gather.ids) for dim in op.merged)
    made = tuple(value.owner for value in gather.operands)
    return last and not inside and not any(isinstance(op, View | FillOp) for op in made)


def sources(value: SSAValue) -> Iterator[SSAValue]:
    """Yield the values that a value sees through views; itself if it is none."""
    if isinstance(value.owner, View):
        for operand in value.owner.operands:
            yield from sources(operand)
    else:
        yield value
