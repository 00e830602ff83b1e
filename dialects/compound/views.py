"""
What sees values in memory under other names, in part, joined to others, or by rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from xdsl.ir import SSAValue

from comet.dialects.compound.gather import GatherOp
from comet.dialects.compound.pad import ConcatOp, SliceOp
from comet.dialects.compound.rename import RenameOp

View: TypeAlias = RenameOp | SliceOp | ConcatOp | GatherOp
"""An op that GPUs carry out where its result is loaded: by other addresses."""


def sources(value: SSAValue) -> Iterator[SSAValue]:
    """Yield the values that a value sees through views; itself if it is none."""
    if isinstance(value.owner, View):
        for operand in value.owner.operands:
            yield from sources(operand)
    else:
        yield value
