"""
How `lower-to-triton` writes the nodes of the tile tree.

Every temporal loop of several iterations becomes one in Triton. A result that lacks the
loop's dimension is carried through it; one that has it lies in device memory, where
copies in the body store it. A copy is one load or one store, a wait looks at the flags
of one source or of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import StringAttr, i32
from xdsl.ir import Operation, SSAValue
from xdsl.traits import Pure
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import tl
from comet.dialects.compound import ContractOp, ReduceKind
from comet.dialects.compound.dims import element_type_of, level_of, names_of
from comet.dialects.dataflow import PushOp, SignalOp, StageOp, WaitOp
from comet.dialects.schedule import CopyOp, SpatialOp, TemporalOp, YieldOp
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.node import NodeOp
from comet.passes.triton.lower_to_triton.access import load, positions, store
from comet.passes.triton.lower_to_triton.accumulators import (
    is_continued,
    is_fused,
)
from comet.passes.triton.lower_to_triton.channels import (
    Received,
    owned_slice,
    peer_at,
)
from comet.passes.triton.lower_to_triton.memory import KernelMemory
from comet.passes.triton.lower_to_triton.ops import (
    NEUTRAL,
    accumulated,
    accumulator_of,
    contraction,
)
from comet.passes.triton.lower_to_triton.sends import lower_send, lower_signal
from comet.passes.triton.lower_to_triton.slices import inner_slice, step_of
from comet.passes.triton.lower_to_triton.table import lower_op
from comet.passes.triton.lower_to_triton.values import Buffer, Scope, Tile, scope_in
from comet.passes.triton.lower_to_triton.waits import known, lower_wait
from comet.passes.triton.slices import LoopSlice, loop_slices


class BodyLowering:
    """Writes the operations of a node's body, nodes included."""

    def __init__(
        self,
        level: str | None,
        memory: KernelMemory,
        extents: Mapping[str, int],
        sources: Sequence[str] = (),
    ):
        self._level = level
        self._memory = memory
        self._extents = extents
        self.sources = sources

    def is_source_loop(self, row: LoopSlice, scope: Scope) -> bool:
        """Whether the loop runs over the ranks that sent the dimension."""
        return (
            scope.ranks is not None
            and row.dim in self.sources
            and row.dim not in scope.owners
            and row.factor == scope.ranks.world
        )

    def lower_body(
        self,
        node: NodeOp,
        scope: Scope,
        targets: Sequence[Buffer | None],
        accumulators: Mapping[SSAValue, Tile] | None = None,
    ) -> None:
        """
        Write the body of a node.

        What it yields to device memory goes to its target. `accumulators` are those of
        yielded values that a node inside combines on.
        """
        found = dict(zip(node.yielded, targets, strict=True))
        for op in list(node.body.block.ops)[:-1]:
            if isinstance(op, TemporalOp):
                self._lower_temporal(op, scope, found, accumulators or {})
            elif isinstance(op, CopyOp):
                self._lower_copy(op, scope, found)
            elif isinstance(op, WaitOp):
                lower_wait(op, scope, self._memory, self.sources)
            elif isinstance(op, PushOp | StageOp):
                lower_send(op, scope, self._memory, found)
            elif isinstance(op, SignalOp):
                lower_signal(op, scope, self._memory)
            else:
                lower_op(op, scope)
        stored = {
            value: self._stored(scope, value, target)
            for value, target in zip(node.yielded, targets, strict=True)
            if target is not None
        }
        scope.values |= stored

    def _target(
        self, scope: Scope, value: SSAValue, yielded: Mapping[SSAValue, Buffer | None]
    ) -> Buffer | None:
        """Return where to store a value, None if it stays on the chip."""
        if not self.is_in_memory(value):
            return None
        if value in yielded:
            return self._readable(scope, yielded[value], value)
        return self._allocate(scope, value)

    def _allocate(self, scope: Scope, value: SSAValue) -> Buffer:
        """Return a program's own buffer for a value that is in device memory."""
        return self._memory.allocate(scope, value, self._extents)

    def _readable(self, scope: Scope, target: Buffer | None, value: SSAValue) -> Buffer:
        """
        Return where to store a value.

        What the program reads again, but does not store where it goes, gets a buffer
        too: it goes to peers only, or another program stores it.
        """
        if target is None:
            return self._allocate(scope, value)
        stored = target.pointer is not None and target.within is None
        uses = (use.operation for use in value.uses)
        if stored or sum(not isinstance(op, SignalOp) for op in uses) == 1:
            return target
        return replace(self._allocate(scope, value), copy=target)

    def _lower_temporal(
        self,
        op: TemporalOp,
        scope: Scope,
        yielded: Mapping[SSAValue, Buffer | None],
        accumulators: Mapping[SSAValue, Tile],
    ) -> None:
        targets = [self._target(scope, value, yielded) for value in op.outs]
        starts = {
            index: accumulators[value]
            for index, value in enumerate(op.outs)
            if value in accumulators
        }
        results = TemporalLowering(self, op, targets).lower(scope, starts)
        scope.values |= dict(zip(op.outs, results, strict=True))
        self._finish_stores(op, scope)

    def _lower_copy(
        self, op: CopyOp, scope: Scope, yielded: Mapping[SSAValue, Buffer | None]
    ) -> None:
        """Write a copy: a load, a store, or nothing between levels of the chip."""
        found, target = scope.values[op.source], self._target(scope, op.result, yielded)
        if isinstance(found, Buffer):
            found = self._loaded(scope, found, op)
        elif target is not None:
            store(scope, target, found, op.masked, _moved(op))
        scope.values[op.result] = found if target is None else target
        self._finish_stores(op, scope)

    def _finish_stores(self, op: Operation, scope: Scope) -> None:
        """Let all threads see what is stored, if the program reads it again."""
        following = op.next_op
        if isinstance(following, CopyOp) and self._is_read_again(following):
            return
        if self._is_read_again(op):
            scope.builder.insert(tl.DebugBarrierOp())

    def _is_read_again(self, op: Operation) -> bool:
        """Whether the body of a node uses what an operation stores to memory."""
        return any(
            self.is_in_memory(result)
            and not isinstance(use.operation, SignalOp | YieldOp)
            for result in op.results
            for use in result.uses
        )

    def is_in_memory(self, value: SSAValue) -> bool:
        """Whether the value lies in device memory."""
        return level_of(value) == self._level

    def _loaded(self, scope: Scope, buffer: Buffer, op: CopyOp) -> Tile:
        if isinstance(buffer, Received):
            raise PassFailedException(
                f"lower-to-triton: {op.result.type} is loaded before its source is "
                "known; let a loop of its own run over the ranks that sent it"
            )
        if buffer.pointer is None:
            return positions(scope, buffer, element_type_of(op.result))
        name = (buffer.pointer.name_hint or "x").removesuffix("_ptr")
        neutral, hint = NEUTRAL[op.padding], f"{name}_tile"
        return load(scope, buffer, op.masked, neutral, hint, _moved(op))

    def _stored(self, scope: Scope, value: SSAValue, target: Buffer) -> Buffer:
        """Store a yielded tile, unless it went to its target when it was made."""
        found = scope.values[value]
        if isinstance(found, Tile):
            store(scope, target, found, None, f"{level_of(value)} -> {self._level}")
        elif found is not target and found.copy is not target:
            raise PassFailedException(
                f"lower-to-triton: {value.type} is yielded without being computed; "
                "load it into another level first"
            )
        return target


def _moved(op: CopyOp) -> str:
    """Return the levels between which a copy moves a tile, as comments have them."""
    return f"{level_of(op.source)} -> {level_of(op.result)}"


@dataclass(frozen=True)
class _Result:
    """One result of a temporal node."""

    outer: SSAValue
    inner: SSAValue
    combiner: Combiner
    target: Buffer | None
    lost: frozenset[str]
    """The looped dimensions that it lacks."""


class TemporalLowering:
    """Writes one temporal node as a nest of loops."""

    def __init__(
        self, body: BodyLowering, node: TemporalOp, targets: Sequence[Buffer | None]
    ):
        self._body = body
        self._node = node
        self._loops = loop_slices(node)
        self._results = [
            _Result(
                outer,
                inner,
                combiner,
                target,
                frozenset(
                    row.dim for row in self._loops if row.dim not in names_of(outer)
                ),
            )
            for outer, inner, combiner, target in zip(
                node.outs, node.yielded, node.combiners, targets, strict=True
            )
        ]

    def lower(self, scope: Scope, starts: Mapping[int, Tile]) -> list[Tile | Buffer]:
        """Write the node into `scope`; accumulators begin with `starts`, if given."""
        for result in self._results:
            self._check(result)
        inner = replace(
            scope, slices=dict(scope.slices), values={}, owners=dict(scope.owners)
        )
        outer = {
            argument: scope.values[value]
            for argument, value in zip(self._node.tiles, self._node.ins, strict=True)
        }
        for argument, value in outer.items():
            self._check_split(argument, value)
        fold = (scope.tile(value) for value in self._node.iter_args)
        accumulators = dict(starts) | {
            index: next(fold)
            for index, result in enumerate(self._results)
            if result.combiner is Combiner.FOLD
        }
        return self._loop(0, inner, outer, accumulators)

    def _check(self, result: _Result) -> None:
        """Reject what a kernel cannot hold: assembled registers, sums in memory."""
        kept = [row.dim for row in self._loops if row.dim not in result.lost]
        if kept and result.combiner is Combiner.FOLD:
            raise PassFailedException(
                f"lower-to-triton: {self._node.name} splits an iter_arg along "
                f"{kept[0]}; let a node of its own loop over {kept[0]}"
            )
        if kept and result.target is None:
            raise PassFailedException(
                f"lower-to-triton: {self._node.name} concatenates tiles of {kept[0]} "
                f"in {level_of(result.outer)}, which Triton cannot; make the tile the "
                "whole dimension, or let the result lie in device memory"
            )
        if kept and result.lost:
            raise PassFailedException(
                f"lower-to-triton: {self._node.name} reduces {self._loops[0].dim} "
                f"outside the loop over {kept[0]}; make {kept[0]} the outer loop"
            )
        if result.lost and result.target is not None:
            raise PassFailedException(
                f"lower-to-triton: {self._node.name} combines {result.outer.type} in "
                "device memory, which Triton cannot; combine it in registers, and copy "
                "it after the node"
            )

    def _check_split(self, argument: SSAValue, value: Tile | Buffer) -> None:
        """Reject a tile in registers that a loop would cut."""
        own = [row.dim for row in self._loops if row.dim in names_of(argument)]
        if isinstance(value, Tile) and own:
            raise PassFailedException(
                f"lower-to-triton: {self._node.name} splits {argument.type} along "
                f"{own[0]} although it is in registers, which Triton cannot; let the "
                "value lie in device memory"
            )

    def _loop(
        self,
        depth: int,
        scope: Scope,
        outer: dict[SSAValue, Tile | Buffer],
        accumulators: dict[int, Tile],
    ) -> list[Tile | Buffer]:
        """Write the loops from `depth` on; return the results after the last tile."""
        if depth == len(self._loops):
            scope.values |= outer
            return self._innermost(scope, accumulators)
        row = self._loops[depth]
        carried = [
            index
            for index, result in enumerate(self._results)
            if row.dim in result.lost
        ]
        for index in carried:
            if index not in accumulators:
                accumulators[index] = self._neutral(self._results[index], scope)
        starts = [accumulators[index] for index in carried]
        loop, inner = self._open(row, scope, starts, depth)
        if row.dim in inner.owners and row.dim not in scope.owners:
            outer = {
                argument: known(inner, argument, value, self._body.sources)
                for argument, value in outer.items()
            }
        arguments = loop.body.block.args[1:]
        inside = accumulators | {
            index: Tile(argument, start.dims)
            for index, argument, start in zip(carried, arguments, starts, strict=True)
        }
        values = self._loop(depth + 1, inner, outer, inside)
        self._close(loop, inner, carried, values)
        return self._after(loop, carried, values)

    def _neutral(self, result: _Result, scope: Scope) -> Tile:
        if result.combiner is Combiner.SAME:
            return accumulator_of(scope, 0.0, result.inner)
        kind = ReduceKind(str(result.combiner))
        return accumulator_of(scope, NEUTRAL[kind], result.inner)

    def _open(
        self, row: LoopSlice, scope: Scope, starts: Sequence[Tile], depth: int
    ) -> tuple[tl.ForOp, Scope]:
        """Insert the `tl.for` of one loop; return it and the scope of its body."""
        part, is_source = scope.slices[row.dim], self._body.is_source_loop(row, scope)
        inits = [start.value for start in starts]
        if is_source:
            bounds = self._ranks(scope)
        else:
            first = part.start
            if first is None:
                first = scope.insert(tl.ConstantOp.of(0, i32))
            bounds = (first, part.stop, step_of(part, row, scope.insert))
        loop = tl.ForOp(*bounds, inits)
        if depth == 0:
            loop.attributes["tl.comment"] = StringAttr(describe(self._node))
        scope.builder.insert(loop)
        index = loop.body.block.args[0]
        index.name_hint = "i" if is_source else row.dim.lower()
        inner = scope_in(loop.body.block, scope)
        if is_source:
            source = peer_at(inner, index, "source")
            inside, owner = owned_slice(inner, part, row, source)
            inner.owners[row.dim] = owner
        else:
            inside = inner_slice(
                part, row, part.shape.in_loop(row), index, inner.prologue
            )
        inner.slices[row.dim] = inside
        return loop, inner

    @staticmethod
    def _ranks(scope: Scope) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Return the bounds and the step of a loop over all ranks."""
        zero, one = (scope.insert(tl.ConstantOp.of(number, i32)) for number in (0, 1))
        assert scope.ranks is not None
        return zero, scope.ranks.world_size, one

    def _innermost(
        self, scope: Scope, accumulators: dict[int, Tile]
    ) -> list[Tile | Buffer]:
        """Write the body; return its values, combined with what was there before."""
        arguments = self._node.region_iter_args
        folds = [
            index
            for index, result in enumerate(self._results)
            if result.combiner is Combiner.FOLD
        ]
        for argument, index in zip(arguments, folds, strict=True):
            scope.values[argument] = accumulators[index]
        going_on = {
            result.inner: accumulators[index]
            for index, result in enumerate(self._results)
            if index in accumulators and is_continued(self._node, result.inner)
        }
        targets = [result.target for result in self._results]
        self._body.lower_body(self._node, scope, targets, going_on)
        return [
            self._combined(result, accumulators.get(index), scope)
            for index, result in enumerate(self._results)
        ]

    def _combined(
        self, result: _Result, accumulator: Tile | None, scope: Scope
    ) -> Tile | Buffer:
        contract = result.inner.owner
        if isinstance(contract, ContractOp) and is_fused(contract):
            start = None if accumulator is None else accumulator.value
            return contraction(contract, scope, start)
        value = scope.values[result.inner]
        replaced = result.combiner in (Combiner.FOLD, Combiner.SAME)
        if accumulator is None or replaced or is_continued(self._node, result.inner):
            return value
        tile = scope.tile(result.inner)
        owner = tile.value.owner
        is_pure = isinstance(owner, Operation) and owner.has_trait(Pure)
        if is_pure and len(list(result.inner.uses)) == 1 and not tile.value.uses:
            # Nothing else needs it: the sum is on one line.
            tile.value.name_hint = None
        kind = ReduceKind(str(result.combiner))
        value = accumulated(scope, kind, accumulator.value, tile.value)
        return Tile(value, tile.dims)

    def _close(
        self,
        loop: tl.ForOp,
        inner: Scope,
        carried: Sequence[int],
        values: Sequence[Tile | Buffer],
    ) -> None:
        """Yield what the loop carries."""
        tiles = [values[index] for index in carried]
        yielded = [tile.value for tile in tiles if isinstance(tile, Tile)]
        terminator = loop.body.block.last_op
        assert terminator is not None
        inner.builder.insert(tl.YieldOp(*yielded))
        terminator.detach()
        terminator.erase()

    def _after(
        self, loop: tl.ForOp, carried: Sequence[int], values: Sequence[Tile | Buffer]
    ) -> list[Tile | Buffer]:
        """Return the results as they come after the loop."""
        after = list(values)
        for position, index in enumerate(carried):
            value, result = values[index], loop.results_[position]
            assert isinstance(value, Tile)
            hint = self._results[index].outer.name_hint
            loop.body.block.args[1 + position].name_hint = hint
            result.name_hint = hint
            after[index] = Tile(result, value.dims, value.padding)
        return after


def describe(node: NodeOp) -> str:
    """Return the node's loops and combiners, as its text has them."""
    rows = ", ".join(
        f"{f'{row.axis}: ' if row.axis else ''}{row.dim} = {row.factor}"
        for row in node.loops
    )
    place = " on grid" if isinstance(node, SpatialOp) else ""
    kinds = [str(kind) for kind in node.combiners if kind is not Combiner.NONE]
    suffix = f" combine {', '.join(kinds)}" if kinds else ""
    return f"{node.name}{place} [{rows}]{suffix}"
