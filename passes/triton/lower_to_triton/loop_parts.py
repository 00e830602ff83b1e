"""
The parts of a loop: where each begins and ends, in loops that a mask bounds.

A loop that takes the shards of ranks, one after another, is one part; so is any other
one, unless iterations without a mask are a loop of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import I64, IntegerAttr, i32
from xdsl.ir import SSAValue

from comet.dialects import tl
from comet.dialects.errors import OpError
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.masked_loops import visible_conditions
from comet.dialects.tl.types import BinaryKind, CompareKind, shape_of
from comet.dialects.tl.types import ReduceKind as BlockReduceKind
from comet.passes.triton.lower_to_triton.buffers import Buffer
from comet.passes.triton.lower_to_triton.channels import combined
from comet.passes.triton.lower_to_triton.offsets import step_of
from comet.passes.triton.lower_to_triton.values import (
    Scope,
    Tile,
    aligned,
    converted,
    literal,
)
from comet.passes.triton.lower_to_triton.workarounds import (
    end_at_run_time,
    with_a_block,
)
from comet.passes.triton.slices import LoopSlice, is_rank_loop


@dataclass(frozen=True)
class LoopPart:
    """Iterations of a loop that are one loop in Triton."""

    first: SSAValue
    stop: SSAValue
    step: SSAValue
    is_source: bool = False
    """Whether they take the shards of ranks, one after another."""
    true: frozenset[SSAValue] = frozenset()
    """The conditions that are true in all of them."""


def parts_of(
    node: TemporalOp,
    loop: LoopSlice,
    scope: Scope,
    outer: Mapping[SSAValue, Tile | Buffer],
) -> list[LoopPart]:
    """Return the parts of a loop's iterations that become separate loops."""
    part = scope.slices[loop.dim]
    if is_rank_loop(node, loop, part.shape, scope.over_ranks):
        return [LoopPart(*_ranks(scope), is_source=True)]
    first = part.start
    if first is None:
        first = scope.insert(tl.ConstantOp.of(0, i32))
    step = step_of(part, loop, scope.insert)
    if node.end is not None:
        return [_between_iterations(node, step, scope, outer)]
    if node.since is None or part.start is not None:
        stop = _stop(node, scope, outer, part.stop)
    elif node.until is None:
        stop, first = part.stop, _start(node, scope, outer, part.stop, step)
    else:
        first, stop = _between(node, scope, outer, part.stop, step)
    if node.unmask is None or part.start is not None:
        if isinstance(stop.type, tl.ConstexprType):
            stop = end_at_run_time(scope, node, loop.factor, stop)
        return [LoopPart(first, stop, step)]
    return _unmasked(node, LoopPart(first, stop, step), scope, outer)


def _between_iterations(
    node: TemporalOp,
    step: SSAValue,
    scope: Scope,
    outer: Mapping[SSAValue, Tile | Buffer],
) -> LoopPart:
    """
    Return the iterations from the first one that runs, see `first` and `end`.

    The operands have one element, so that they are numbers here.
    """

    def position_of(operand: IntegerAttr[I64], hint: str) -> SSAValue:
        number = _positions(node, outer, operand).value
        if literal(step) == 1:
            return number
        return scope.insert(tl.BinaryOp(BinaryKind.MUL, number, step), hint)

    assert node.end is not None
    if node.first is None:
        first = scope.insert(tl.ConstantOp.of(0, i32))
    else:
        first = position_of(node.first, "start")
    return LoopPart(first, position_of(node.end, "stop"), step)


def _unmasked(
    node: TemporalOp,
    part: LoopPart,
    scope: Scope,
    outer: Mapping[SSAValue, Tile | Buffer],
) -> list[LoopPart]:
    """Return the iterations that need a mask, and those that do not, in order."""
    true = frozenset(visible_conditions(node))
    bound = node.until if node.since is None else node.since
    if bound is None or not true:
        raise OpError(
            node,
            f"lower-to-triton: {node.name} has unmask, and no mask bounds "
            "its loop; run bound-loops first, or leave unmask out",
        )
    largest, smallest = (
        converted(scope, position, i32)
        for position in _range(node, scope, outer, bound)
    )
    add, smaller = BinaryKind.ADD, BinaryKind.MIN
    if node.since is None:
        # Whole tiles end before the first of the last positions.
        after = combined(scope, smaller, combined(scope, add, smallest, 1), part.stop)
        middle = _tile_of(scope, after, part.first, part.step, "middle")
        return [replace(part, stop=middle, true=true), replace(part, first=middle)]
    # Whole tiles begin after the last of the first positions.
    within = combined(scope, BinaryKind.SUB, part.step, 1)
    middle = _tile_of(
        scope, combined(scope, add, largest, within), part.first, part.step, "middle"
    )
    masked = replace(part, stop=combined(scope, smaller, middle, part.stop))
    return [masked, replace(part, first=middle, true=true)]


def _stop(
    node: TemporalOp,
    scope: Scope,
    outer: Mapping[SSAValue, Tile | Buffer],
    stop: SSAValue,
) -> SSAValue:
    """
    Return where the loop ends: after the last visible position if a mask bounds it.

    Where a row has no visible position, all terms have equal weight: no bound. In a
    partial fold, that is if it has none in any part, and parts begin at 0.
    """
    if (until := node.until) is None:
        return stop
    largest, smallest = _range(node, scope, outer, until)
    if node.partial is not None:
        _, smallest = _ends(node, scope, outer, until)
    after = _after(scope, largest, stop)
    zero = scope.constant(0.0, smallest.type)
    sees = scope.insert(tl.CmpOp(CompareKind.GE, smallest, zero))
    return scope.insert(tl.WhereOp(sees, after, stop), "stop")


def _start(
    node: TemporalOp,
    scope: Scope,
    outer: Mapping[SSAValue, Tile | Buffer],
    stop: SSAValue,
    step: SSAValue,
) -> SSAValue:
    """
    Return where a loop from 0 begins: with the slice of the first visible position.

    Where a row has no visible position, all terms have equal weight: from 0 then.
    """
    assert node.since is not None
    found = _range(node, scope, outer, node.since)
    largest, smallest = (converted(scope, position, i32) for position in found)
    zero = scope.insert(tl.ConstantOp.of(0, i32))
    first = _tile_of(scope, smallest, zero, step)
    sees = scope.insert(tl.CmpOp(CompareKind.LT, largest, stop))
    return scope.insert(tl.WhereOp(sees, first, zero), "start")


def _between(
    node: TemporalOp,
    scope: Scope,
    outer: Mapping[SSAValue, Tile | Buffer],
    stop: SSAValue,
    step: SSAValue,
) -> tuple[SSAValue, SSAValue]:
    """
    Return where a loop from 0 begins and ends if a mask bounds both, as in a window.

    All iterations run where a row has no visible position, see `_stop`: its last one is
    before 0 or before its first one, or its first one is beyond the end.
    """
    assert node.until is not None
    assert node.since is not None
    until, since = (
        [converted(scope, end, i32) for end in _ends(node, scope, outer, operand)]
        for operand in (node.until, node.since)
    )
    (most_last, least_last), (most_first, least_first) = until, since
    zero = scope.insert(tl.ConstantOp.of(0, i32))
    spare = combined(
        scope, BinaryKind.SUB, combined(scope, BinaryKind.SUB, stop, 1), most_first
    )
    for other in (least_last, _least_width(node, scope, outer)):
        spare = combined(scope, BinaryKind.MIN, spare, other)
    sees = scope.insert(tl.CmpOp(CompareKind.GE, spare, zero))
    begin = _tile_of(scope, least_first, zero, step)
    end = _after(scope, most_last, stop)
    return (
        scope.insert(tl.WhereOp(sees, begin, zero), "start"),
        scope.insert(tl.WhereOp(sees, end, stop), "stop"),
    )


def _least_width(
    node: TemporalOp, scope: Scope, outer: Mapping[SSAValue, Tile | Buffer]
) -> SSAValue:
    """Return the least distance from the first to the last position of any row."""
    assert node.until is not None
    assert node.since is not None
    last, first = (_positions(node, outer, own) for own in (node.until, node.since))
    dims = tuple(dict.fromkeys((*last.dims, *first.dims)))
    sides = (
        converted(scope, aligned(scope, tile, dims), i32) for tile in (last, first)
    )
    width = tl.BinaryOp(BinaryKind.SUB, *with_a_block(scope, tuple(sides)))
    return _reduced_to_scalar(scope, BlockReduceKind.MIN, scope.insert(width))


def _after(scope: Scope, largest: SSAValue, stop: SSAValue) -> SSAValue:
    """Return the position after the largest one that is seen, at most `stop`."""
    one = scope.constant(1.0, largest.type)
    after = scope.insert(tl.BinaryOp(BinaryKind.ADD, largest, one))
    after = converted(scope, after, i32)
    return scope.insert(tl.BinaryOp(BinaryKind.MIN, after, stop))


def _tile_of(
    scope: Scope,
    position: SSAValue,
    least: SSAValue,
    step: SSAValue,
    hint: str | None = None,
) -> SSAValue:
    """Return the start of the tile with a position, or with `least` if that is more."""
    first = combined(scope, BinaryKind.MAX, position, least)
    index = combined(scope, BinaryKind.FLOORDIV, first, step)
    return scope.insert(tl.BinaryOp(BinaryKind.MUL, index, step), hint)


def _range(
    node: TemporalOp,
    scope: Scope,
    outer: Mapping[SSAValue, Tile | Buffer],
    operand: IntegerAttr[I64],
) -> tuple[SSAValue, SSAValue]:
    """
    Return the largest and the smallest of the positions in an operand, which count from
    where the loop begins.
    """
    largest, smallest = _ends(node, scope, outer, operand)
    if node.start is None:
        return largest, smallest
    positions = outer[node.tiles[node.start.value.data]]
    if not isinstance(positions, Buffer):
        last, first = _ends(node, scope, outer, node.start)
    elif positions.first is None:
        return largest, smallest
    else:
        last = first = converted(scope, positions.first, largest.type)
    subtract = BinaryKind.SUB
    return combined(scope, subtract, largest, first), combined(
        scope, subtract, smallest, last
    )


def _ends(
    node: TemporalOp,
    scope: Scope,
    outer: Mapping[SSAValue, Tile | Buffer],
    operand: IntegerAttr[I64],
) -> tuple[SSAValue, SSAValue]:
    """Return the largest and the smallest number in an operand."""
    (positions,) = with_a_block(scope, [_positions(node, outer, operand).value])
    largest = _reduced_to_scalar(scope, BlockReduceKind.MAX, positions)
    return largest, _reduced_to_scalar(scope, BlockReduceKind.MIN, positions)


def _positions(
    node: TemporalOp,
    outer: Mapping[SSAValue, Tile | Buffer],
    operand: IntegerAttr[I64],
) -> Tile:
    """Return the positions that an operand of a loop holds."""
    positions = outer[node.tiles[operand.value.data]]
    assert isinstance(positions, Tile)
    return positions


def _ranks(scope: Scope) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Return the bounds and the step of a loop over all ranks."""
    zero, one = (scope.insert(tl.ConstantOp.of(number, i32)) for number in (0, 1))
    assert scope.ranks is not None
    return zero, scope.ranks.world_size, one


def _reduced_to_scalar(
    scope: Scope, kind: BlockReduceKind, block: SSAValue
) -> SSAValue:
    """Return the largest or smallest element of a block."""
    while shape_of(block.type):
        block = scope.insert(tl.ReduceOp(kind, block, 0))
    return block
