"""
Views: ops that GPUs carry out by other addresses where their result is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from comet.dialects.compound.dims import names_of
from comet.dialects.compound.elementary import FillOp
from comet.dialects.compound.gather import GatherOp
from comet.dialects.compound.pad import ConcatOp, SliceOp
from comet.dialects.compound.rename import RenameOp

View: TypeAlias = RenameOp | SliceOp | ConcatOp | GatherOp
"""A rename, slice, concat or gather."""


def gather_ids(value: SSAValue) -> SSAValue | None:
    """Return the ids of the gather that `value` is, or is a view of; None if none."""
    op = value.owner
    while isinstance(op, SliceOp | RenameOp):
        op = op.input.owner
    return op.ids if isinstance(op, GatherOp) else None


def gathered_dims(value: SSAValue) -> tuple[str, ...]:
    """Return the dimensions of `value` that come from ids of a gather, if any."""
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
    Return whether `op` merges gathered pages and their rows to one dimension.

    The outer merged dimension comes from the ids, the inner one from the table. No copy
    is needed if table and ids are in memory.
    """
    source = op.input.owner
    while isinstance(source, RenameOp) and not source.merged:
        source = source.input.owner
    if not isinstance(source, GatherOp) or not op.merged:
        return False
    gathered = gathered_dims(op.input)
    outer, inner = (dim in gathered for dim in op.merged)
    owners = tuple(value.owner for value in source.operands)
    in_memory = not any(isinstance(owner, View | FillOp) for owner in owners)
    return outer and not inner and in_memory


def sources(value: SSAValue) -> Iterator[SSAValue]:
    """Yield the values that `value` is a view of, or `value` if it is no view."""
    if isinstance(value.owner, View):
        for operand in value.owner.operands:
            yield from sources(operand)
    else:
        yield value


def readers_of(value: SSAValue) -> Iterator[Operation]:
    """Yield the ops that read `value`, or a view of it."""
    for use in value.uses:
        if isinstance(use.operation, View):
            for result in use.operation.results:
                yield from readers_of(result)
        else:
            yield use.operation
