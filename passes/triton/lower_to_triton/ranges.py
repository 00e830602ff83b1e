"""
The ranges of a loop: where each begins and ends, in loops that a mask bounds.

A loop over the shards of ranks is one range. So is any other loop, unless its
iterations without a mask are a loop of their own.
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
class LoopRange:
    """Iterations that follow each other, as one loop in Triton."""

    first: SSAValue
    stop: SSAValue
    step: SSAValue
    is_source: bool = False
    """Whether they take the shards of ranks, one after another."""
    true: frozenset[SSAValue] = frozenset()
    """The conditions that are true in all of them."""


def ranges_of(
    node: TemporalOp,
    loop: LoopSlice,
    scope: Scope,
    outer: Mapping[SSAValue, Tile | Buffer],
) -> list[LoopRange]:
    """Return the ranges of a loop's iterations that become separate loops."""
    outer_slice = scope.slices[loop.dim]
    if is_rank_loop(node, loop, outer_slice.shape, scope.over_ranks):
        return [LoopRange(*_ranks(scope), is_source=True)]
    first = outer_slice.start
    if first is None:
        first = scope.integer(0)
    bounds, step = _Bounds(node, scope, outer), step_of(outer_slice, loop, scope)
    if node.end is not None:
        return [bounds.between_iterations(step)]
    if node.since is None or outer_slice.start is not None:
        stop = bounds.stop(outer_slice.stop)
    elif node.until is None:
        stop, first = outer_slice.stop, bounds.start(outer_slice.stop, step)
    else:
        first, stop = bounds.between(outer_slice.stop, step)
    if node.unmask is None or outer_slice.start is not None:
        if isinstance(stop.type, tl.ConstexprType):
            stop = end_at_run_time(scope, node, loop.factor, stop)
        return [LoopRange(first, stop, step)]
    return bounds.unmasked(LoopRange(first, stop, step))


@dataclass(frozen=True)
class _Bounds:
    """Writes where the iterations of a loop begin and end."""

    node: TemporalOp
    scope: Scope
    """The scope around the loop."""
    outer: Mapping[SSAValue, Tile | Buffer]
    """The operands of the loop, by the tiles that its body has of them."""

    def between_iterations(self, step: SSAValue) -> LoopRange:
        """
        Return the iterations from the first one that runs, see `first` and `end`.

        The operands have one element, so that they are numbers here.
        """
        node, scope = self.node, self.scope

        def position_of(operand: IntegerAttr[I64], hint: str) -> SSAValue:
            number = self._positions(operand).value
            if literal(step) == 1:
                return number
            return scope.binary(BinaryKind.MUL, number, step, hint)

        assert node.end is not None
        if node.first is None:
            first = scope.integer(0)
        else:
            first = position_of(node.first, "start")
        return LoopRange(first, position_of(node.end, "stop"), step)

    def unmasked(self, whole: LoopRange) -> list[LoopRange]:
        """Return the iterations that need a mask, and those that do not, in order."""
        node = self.node
        true = frozenset(visible_conditions(node))
        bound = node.until if node.since is None else node.since
        if bound is None or not true:
            raise OpError(
                node,
                f"lower-to-triton: {node.name} has unmask, and no mask bounds "
                "its loop; run bound-loops first, or leave unmask out",
            )
        largest, smallest = map(self._integer, self._range(bound))
        add, smaller = BinaryKind.ADD, BinaryKind.MIN
        if node.since is None:
            # Whole tiles end before the first of the last positions.
            after = self.scope.binary(add, smallest, 1)
            after = self.scope.binary(smaller, after, whole.stop)
            middle = self._tile_of(after, whole.first, whole.step, "middle")
            return [
                replace(whole, stop=middle, true=true),
                replace(whole, first=middle),
            ]
        # Whole tiles begin after the last of the first positions.
        within = self.scope.binary(BinaryKind.SUB, whole.step, 1)
        after = self.scope.binary(add, largest, within)
        middle = self._tile_of(after, whole.first, whole.step, "middle")
        masked = replace(whole, stop=self.scope.binary(smaller, middle, whole.stop))
        return [masked, replace(whole, first=middle, true=true)]

    def stop(self, stop: SSAValue) -> SSAValue:
        """
        Return where the loop ends: after the last visible position if a mask bounds it.

        Where a row has no visible position, all terms have equal weight: no bound. In a
        partial fold, that is if it has none in any part, and parts begin at 0.
        """
        if (until := self.node.until) is None:
            return stop
        largest, smallest = self._range(until)
        if self.node.partial is not None:
            _, smallest = self._ends(until)
        after = self._after(largest, stop)
        zero = self.scope.constant(0.0, smallest.type)
        return self._where(CompareKind.GE, (smallest, zero), (after, stop), "stop")

    def start(self, stop: SSAValue, step: SSAValue) -> SSAValue:
        """
        Return where a loop from 0 begins: with the slice of the first visible position.

        Where a row has no visible position, all terms have equal weight: from 0 then.
        """
        assert self.node.since is not None
        largest, smallest = map(self._integer, self._range(self.node.since))
        zero = self.scope.integer(0)
        first = self._tile_of(smallest, zero, step)
        return self._where(CompareKind.LT, (largest, stop), (first, zero), "start")

    def between(self, stop: SSAValue, step: SSAValue) -> tuple[SSAValue, SSAValue]:
        """
        Return where a loop from 0 begins and ends if a mask bounds both: in a window.

        All iterations run where a row has no visible position, see `stop`: its last one
        is before 0 or before its first one, or its first one is beyond the end.
        """
        scope, node = self.scope, self.node
        assert node.until is not None
        assert node.since is not None
        most_last, least_last = map(self._integer, self._ends(node.until))
        most_first, least_first = map(self._integer, self._ends(node.since))
        zero = scope.integer(0)
        last = self.scope.binary(BinaryKind.SUB, stop, 1)
        spare = self.scope.binary(BinaryKind.SUB, last, most_first)
        for other in (least_last, self._least_width()):
            spare = self.scope.binary(BinaryKind.MIN, spare, other)
        sees = scope.compare(CompareKind.GE, spare, zero)
        begin = self._tile_of(least_first, zero, step)
        end = self._after(most_last, stop)
        return (
            scope.insert(tl.WhereOp(sees, begin, zero), "start"),
            scope.insert(tl.WhereOp(sees, end, stop), "stop"),
        )

    def _least_width(self) -> SSAValue:
        """Return the least distance from the first to the last position of any row."""
        assert self.node.until is not None
        assert self.node.since is not None
        last, first = map(self._positions, (self.node.until, self.node.since))
        dims = tuple(dict.fromkeys((*last.dims, *first.dims)))
        sides = (self._integer(aligned(self.scope, t, dims)) for t in (last, first))
        width = tl.BinaryOp(BinaryKind.SUB, *with_a_block(self.scope, tuple(sides)))
        return self._reduced(BlockReduceKind.MIN, self.scope.insert(width))

    def _range(self, operand: IntegerAttr[I64]) -> tuple[SSAValue, SSAValue]:
        """
        Return the largest and the smallest of the positions in an operand, which count
        from where the loop begins.
        """
        node, subtract = self.node, BinaryKind.SUB
        largest, smallest = self._ends(operand)
        if node.start is None:
            return largest, smallest
        positions = self.outer[node.tiles[node.start.value.data]]
        if not isinstance(positions, Buffer):
            last, first = self._ends(node.start)
        elif positions.first is None:
            return largest, smallest
        else:
            last = first = converted(self.scope, positions.first, largest.type)
        largest = self.scope.binary(subtract, largest, first)
        return largest, self.scope.binary(subtract, smallest, last)

    def _ends(self, operand: IntegerAttr[I64]) -> tuple[SSAValue, SSAValue]:
        """Return the largest and the smallest number in an operand."""
        (positions,) = with_a_block(self.scope, [self._positions(operand).value])
        largest = self._reduced(BlockReduceKind.MAX, positions)
        return largest, self._reduced(BlockReduceKind.MIN, positions)

    def _positions(self, operand: IntegerAttr[I64]) -> Tile:
        """Return the positions that an operand of the loop holds."""
        positions = self.outer[self.node.tiles[operand.value.data]]
        assert isinstance(positions, Tile)
        return positions

    def _after(self, largest: SSAValue, stop: SSAValue) -> SSAValue:
        """Return the position after the largest one that is seen, at most `stop`."""
        scope, one = self.scope, self.scope.constant(1.0, largest.type)
        after = self._integer(scope.binary(BinaryKind.ADD, largest, one))
        return scope.binary(BinaryKind.MIN, after, stop)

    def _tile_of(
        self,
        position: SSAValue,
        least: SSAValue,
        step: SSAValue,
        hint: str | None = None,
    ) -> SSAValue:
        """Return the start of the tile with the larger of a position and `least`."""
        first = self.scope.binary(BinaryKind.MAX, position, least)
        index = self.scope.binary(BinaryKind.FLOORDIV, first, step)
        return self.scope.binary(BinaryKind.MUL, index, step, hint)

    def _where(
        self,
        kind: CompareKind,
        compared: tuple[SSAValue, SSAValue],
        values: tuple[SSAValue, SSAValue],
        hint: str,
    ) -> SSAValue:
        """Return the first of two values if a comparison is true, else the second."""
        condition = self.scope.compare(kind, *compared)
        return self.scope.insert(tl.WhereOp(condition, *values), hint)

    def _integer(self, position: SSAValue) -> SSAValue:
        return converted(self.scope, position, i32)

    def _reduced(self, kind: BlockReduceKind, block: SSAValue) -> SSAValue:
        """Return the largest or smallest element of a block."""
        while shape_of(block.type):
            block = self.scope.insert(tl.ReduceOp(kind, block, 0))
        return block


def _ranks(scope: Scope) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Return the bounds and the step of a loop over all ranks."""
    zero, one = (scope.integer(number) for number in (0, 1))
    assert scope.ranks is not None
    return zero, scope.ranks.world_size, one
