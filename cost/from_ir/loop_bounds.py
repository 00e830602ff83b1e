"""Static bounds of the iterations of loops that a mask bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.ir import SSAValue

from comet.cost.gpu.bounded import Bound
from comet.dialects.compound import FillOp, IndexOp, MapKind, MapOp
from comet.dialects.compound.dims import names_of
from comet.dialects.dataflow.channel import program_value
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.masked_loops import (
    copied_value,
    last_visible,
    visible_bounds,
)


def loop_bounds(
    nodes: Sequence[TemporalOp], extents: Mapping[str, int]
) -> dict[str, Bound]:
    """
    Return the bounds of dimensions whose loops all have the same bound by a mask.

    Only bounds that are a row index plus a constant, which is known at compile time.
    """
    found: dict[str, set[Bound | None]] = {}
    for node in nodes:
        for dim in node.factors:
            bound = _bound(node)
            known = bound if bound is not None and bound.rows in extents else None
            found.setdefault(dim, set()).add(known)
    return {
        dim: bound
        for dim, bounds in found.items()
        if len(bounds) == 1 and (bound := next(iter(bounds))) is not None
    }


def _bound(node: TemporalOp) -> Bound | None:
    """Return the bound of a loop by a mask, None without one that is known."""
    last, first = visible_bounds(node)
    begin = None if first is None else position_of(node.ins[first.operand])
    if last is None:
        return None if begin is None else replace(begin, since=True)
    end = position_of(node.ins[last.operand]) if last.start is None else None
    if end is None or begin is None or end.rows != begin.rows:
        return end
    sees = begin.offset <= end.offset
    return replace(end, first=begin.offset) if sees else None


def position_of(value: SSAValue) -> Bound | None:
    """Return a value as a position along a dimension plus a constant, else None."""
    value = copied_value(value)
    op = value.owner
    if isinstance(op, IndexOp) and op.whole is None and len(names_of(value)) == 1:
        return Bound(names_of(value)[0], 0)
    if isinstance(op, MapOp) and op.kind.data in (MapKind.ADD, MapKind.SUB):
        start, change = op.operands
        constant = copied_value(change).owner
        position = position_of(start)
        if position is not None and isinstance(constant, FillOp):
            sign = 1 if op.kind.data is MapKind.ADD else -1
            offset = position.offset + sign * int(constant.value.value.data)
            return Bound(position.rows, offset)
    return None


def run_time_lengths(nodes: Sequence[TemporalOp]) -> frozenset[str]:
    """
    Return the dimensions all of whose loops end at lengths that are known at run time.

    Also where programs or ranks have parts of them.
    """
    found: dict[str, set[bool]] = {}
    for node in nodes:
        last = last_visible(node)
        ends = last is not None and not _is_position(node.ins[last.operand])
        for dim in node.factors:
            found.setdefault(dim, set()).add(ends)
    return frozenset(dim for dim, ends in found.items() if all(ends))


def _is_position(value: SSAValue) -> bool:
    """Whether a value is computed from the index of rows."""
    op = program_value(copied_value(value)).owner
    if isinstance(op, MapOp):
        return any(map(_is_position, op.operands))
    return isinstance(op, IndexOp)
