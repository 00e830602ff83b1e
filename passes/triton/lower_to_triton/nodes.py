"""
How `lower-to-triton` writes the nodes of the tile tree.

Every temporal row becomes a loop; one of factor 1 needs none. A result that lacks the
row's dimension is carried through the loop; one that has it lies in device memory and
is stored tile by tile. Tiles are loaded at the border where their level changes, in the
outermost loop that they allow; before the loops around the border that change nothing.
What peers give is waited for in the loop over them or before it, see `passes.waits`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import StringAttr, i32
from xdsl.ir import Operation, SSAValue
from xdsl.traits import Pure
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import tl
from comet.dialects.compound import ContractOp, ReduceKind
from comet.dialects.compound.dims import element_type_of, level_of, names_of
from comet.dialects.schedule import SpatialOp, TemporalOp, YieldOp
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.loops import is_innermost
from comet.dialects.schedule.node import NodeOp
from comet.passes.triton.lower_to_triton.channels import (
    Awaited,
    Received,
    from_owner,
    owned_slice,
    peer_at,
    wait_for_all,
)
from comet.passes.triton.lower_to_triton.ops import (
    NEUTRAL,
    accumulated,
    accumulator_of,
    lower_contract,
    lower_op,
)
from comet.passes.triton.lower_to_triton.reuse import common_tile, padding_for
from comet.passes.triton.lower_to_triton.slices import (
    Row,
    inner_slice,
    rows_of,
    step_of,
)
from comet.passes.triton.lower_to_triton.values import (
    Buffer,
    Scope,
    Tile,
    load,
    positions,
    scope_in,
    store,
)

Allocate = Callable[[Scope, SSAValue], Buffer]
"""Makes a program's own buffer for a value that is spilled to device memory."""


class BodyLowering:
    """Writes the operations of a node's body, nodes included."""

    def __init__(
        self, memory: str | None, allocate: Allocate, sources: Sequence[str] = ()
    ):
        self._memory = memory
        self._allocate = allocate
        self._sources = sources

    def is_source_row(self, row: Row, scope: Scope) -> bool:
        """Whether the row runs over the ranks that sent the dimension."""
        return (
            scope.ranks is not None
            and row.dim in self._sources
            and row.dim not in scope.owners
            and row.factor == scope.ranks.world
        )

    def lower_body(
        self, node: NodeOp, scope: Scope, targets: Sequence[Buffer | None]
    ) -> None:
        """
        Write the body of a node.

        A yielded value that a node inside stores to device memory goes to its target.
        """
        terminator = node.body.block.last_op
        for op in node.body.block.ops:
            if isinstance(op, TemporalOp):
                found = self._targets_of(op, node, scope, targets)
                self._lower_temporal(op, scope, found)
            elif op is not terminator and not _is_fused(op):
                lower_op(op, scope)

    def _targets_of(
        self,
        op: TemporalOp,
        node: NodeOp,
        scope: Scope,
        targets: Sequence[Buffer | None],
    ) -> list[Buffer | None]:
        found: list[Buffer | None] = []
        for result in op.outs:
            if level_of(result) != self._memory:
                found.append(None)
            elif result in node.yielded:
                target = targets[node.yielded.index(result)]
                found.append(self._readable(scope, target, result))
            else:
                found.append(self._allocate(scope, result))
        return found

    def _readable(self, scope: Scope, target: Buffer | None, value: SSAValue) -> Buffer:
        """
        Return where to store a value.

        What the program reads again, but does not store where it goes, gets a buffer
        too: it goes to peers only, or another program stores it.
        """
        if target is None:
            return self._allocate(scope, value)
        stored = target.pointer is not None and target.within is None
        if stored or len(list(value.uses)) == 1:
            return target
        return replace(self._allocate(scope, value), copy=target)

    def _lower_temporal(
        self, op: TemporalOp, scope: Scope, targets: Sequence[Buffer | None]
    ) -> None:
        results = TemporalLowering(self, op, targets).lower(scope)
        scope.values |= dict(zip(op.outs, results, strict=True))
        terminator = op.parent.last_op if op.parent is not None else None
        read_again = (
            use.operation is not terminator
            for result, target in zip(op.outs, targets, strict=True)
            if target is not None
            for use in result.uses
        )
        if any(read_again):
            scope.builder.insert(tl.DebugBarrierOp())

    def is_in_memory(self, value: SSAValue) -> bool:
        """Whether the value lies in device memory."""
        return level_of(value) == self._memory

    def bind(
        self,
        scope: Scope,
        outer: Tile | Buffer,
        value: SSAValue,
        tile: SSAValue | None = None,
    ) -> None:
        """
        Let `value`, a block argument, stand for `outer`; load it if it is moved.

        `tile` is what nodes inside would load again and again: it is loaded instead.
        """
        if not self.is_in_memory(value):
            tile = value
        if isinstance(outer, Buffer) and tile is not None:
            outer = self._loaded(scope, outer, tile)
        scope.values[value] = outer

    def _loaded(self, scope: Scope, buffer: Buffer, value: SSAValue) -> Tile:
        if isinstance(buffer, Received):
            raise PassFailedException(
                f"lower-to-triton: {value.type} is loaded before its source is known; "
                "let a row of its own run over the ranks that sent it"
            )
        if buffer.pointer is None:
            return positions(scope, buffer, element_type_of(value))
        name = (buffer.pointer.name_hint or "x").removesuffix("_ptr")
        comment = f"{self._memory} -> {level_of(value)}"
        return load(scope, buffer, padding_for(value), f"{name}_tile", comment)

    def spill(
        self, scope: Scope, inner: Tile | Buffer, value: SSAValue, target: Buffer
    ) -> Buffer:
        """Store a yielded tile to its target, unless it went there when it was made."""
        if isinstance(inner, Tile):
            store(scope, target, inner, f"{level_of(value)} -> {self._memory}")
        elif inner is not target and inner.copy is not target:
            raise PassFailedException(
                f"lower-to-triton: {value.type} is yielded without being computed; "
                "load it into another level first"
            )
        return target


def _is_fused(op: Operation) -> bool:
    """Whether the operation is written at the yield, with the loop's accumulator."""
    if not isinstance(op, ContractOp) or not isinstance(
        node := op.parent_op(), TemporalOp
    ):
        return False
    uses = [use.operation for use in op.result.uses]
    if len(uses) != 1 or not isinstance(uses[0], YieldOp):
        return False
    return node.combiners[node.yielded.index(op.result)] is Combiner.ADD


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
        self._rows = rows_of(node)
        self._results = [
            _Result(
                outer,
                inner,
                combiner,
                target,
                frozenset(
                    row.dim for row in self._rows if row.dim not in names_of(outer)
                ),
            )
            for outer, inner, combiner, target in zip(
                node.outs, node.yielded, node.combiners, targets, strict=True
            )
        ]

    def lower(self, scope: Scope) -> list[Tile | Buffer]:
        """Write the node into `scope`; return its results there."""
        for result in self._results:
            self._check(result)
        inner = replace(
            scope, slices=dict(scope.slices), values={}, owners=dict(scope.owners)
        )
        outer = {
            argument: scope.values[value]
            for argument, value in zip(self._node.tiles, self._node.ins, strict=True)
        }
        carried = [scope.tile(value) for value in self._node.carry]
        fold = iter(carried)
        accumulators = {
            index: next(fold)
            for index, result in enumerate(self._results)
            if result.combiner is Combiner.FOLD
        }
        values = self._loop(0, inner, outer, accumulators)
        return [
            value
            if result.target is None
            else self._body.spill(scope, value, result.inner, result.target)
            for result, value in zip(self._results, values, strict=True)
        ]

    def _check(self, result: _Result) -> None:
        """Reject what a kernel cannot hold: assembled registers, sums in memory."""
        kept = [row.dim for row in self._rows if row.dim not in result.lost]
        if kept and result.target is None:
            raise PassFailedException(
                f"lower-to-triton: {self._node.name} lays tiles of {kept[0]} side by "
                f"side in {level_of(result.outer)}, which Triton cannot; make the tile "
                "the whole dimension, or let the result lie in device memory"
            )
        order = [row.dim in result.lost for row in self._rows]
        if kept and result.combiner is Combiner.FOLD:
            raise PassFailedException(
                f"lower-to-triton: {self._node.name} splits a carry along {kept[0]}; "
                f"let a node of its own loop over {kept[0]}"
            )
        if order != sorted(order):
            raise PassFailedException(
                f"lower-to-triton: {self._node.name} reduces {self._rows[0].dim} "
                f"outside the loop over {kept[0]}; make {kept[0]} the outer row"
            )

    def _loop(
        self,
        depth: int,
        scope: Scope,
        outer: dict[SSAValue, Tile | Buffer],
        accumulators: dict[int, Tile],
    ) -> list[Tile | Buffer]:
        """Write the rows from `depth` on; return the results after the last tile."""
        self._bind(depth, scope, outer)
        if depth == len(self._rows):
            return self._innermost(scope, accumulators)
        row = self._rows[depth]
        if self._body.is_source_row(row, scope) and is_innermost(self._node, row.dim):
            outer = self._all_arrived(scope, outer, row)
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
            outer = self._arrived(inner, outer, row.dim)
        arguments = loop.body.block.args[1:]
        inside = accumulators | {
            index: Tile(argument, start.dims)
            for index, argument, start in zip(carried, arguments, starts, strict=True)
        }
        values = self._loop(depth + 1, inner, outer, inside)
        self._close(loop, inner, carried, values)
        return self._after(loop, carried, values)

    def _bind(
        self, depth: int, scope: Scope, outer: dict[SSAValue, Tile | Buffer]
    ) -> None:
        """Bind the tiles that need the first `depth` loops and no more."""
        dims = [row.dim for row in self._rows]
        for argument, value in outer.items():
            names = names_of(argument)
            own = [level for level, dim in enumerate(dims, 1) if dim in names]
            if isinstance(value, Tile) and own:
                raise PassFailedException(
                    f"lower-to-triton: {self._node.name} splits {argument.type} along "
                    f"{dims[own[0] - 1]} although it is in registers, which Triton "
                    "cannot; let the value lie in device memory"
                )
            if max(own, default=0) == depth:
                # The loops that remain would repeat what nodes inside load.
                repeated = depth < len(dims) and not isinstance(value, Received)
                tile = common_tile(argument) if repeated else None
                self._body.bind(scope, value, argument, tile)

    def _neutral(self, result: _Result, scope: Scope) -> Tile:
        if result.combiner is Combiner.SAME:
            return accumulator_of(scope, 0.0, result.inner)
        kind = ReduceKind(str(result.combiner))
        return accumulator_of(scope, NEUTRAL[kind], result.inner)

    def _all_arrived(
        self, scope: Scope, outer: dict[SSAValue, Tile | Buffer], row: Row
    ) -> dict[SSAValue, Tile | Buffer]:
        """Wait for what all sources give; return where it can be loaded."""
        waiting = {
            argument: value
            for argument, value in outer.items()
            if isinstance(value, Received) and value.gather == row.dim
        }
        awaited = Awaited()
        for value in waiting.values():
            wait_for_all(scope, awaited.once(value, None))
        done = {arg: replace(value, flags=None) for arg, value in waiting.items()}
        return outer | done

    def _arrived(
        self, scope: Scope, outer: dict[SSAValue, Tile | Buffer], dim: str
    ) -> dict[SSAValue, Tile | Buffer]:
        """Wait for what the current source gave; return where it can be loaded."""
        arrived, awaited = dict(outer), Awaited()
        for argument, value in outer.items():
            if isinstance(value, Received) and value.gather == dim:
                owner = scope.owners[dim]
                received = awaited.once(value, owner.rank)
                arrived[argument] = from_owner(scope, received, owner)
        return arrived

    def _open(
        self, row: Row, scope: Scope, starts: Sequence[Tile], depth: int
    ) -> tuple[tl.ForOp, Scope]:
        """Insert the loop of one row; return it and the scope of its body."""
        part, is_source = scope.slices[row.dim], self._body.is_source_row(row, scope)
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
            inside = inner_slice(part, row, index, inner.prologue)
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
        arguments = self._node.body.block.args[len(self._node.ins) :]
        folds = [
            index
            for index, result in enumerate(self._results)
            if result.combiner is Combiner.FOLD
        ]
        for argument, index in zip(arguments, folds, strict=True):
            scope.values[argument] = accumulators[index]
        self._body.lower_body(
            self._node, scope, [result.target for result in self._results]
        )
        return [
            self._combined(result, accumulators.get(index), scope)
            for index, result in enumerate(self._results)
        ]

    def _combined(
        self, result: _Result, accumulator: Tile | None, scope: Scope
    ) -> Tile | Buffer:
        contract = result.inner.owner
        if isinstance(contract, ContractOp) and _is_fused(contract):
            start = None if accumulator is None else accumulator.value
            return lower_contract(contract, scope, start)
        value = scope.values[result.inner]
        if accumulator is None or result.combiner in (Combiner.FOLD, Combiner.SAME):
            return value
        tile = scope.tile(result.inner)
        owner = tile.value.owner
        is_pure = isinstance(owner, Operation) and owner.has_trait(Pure)
        if is_pure and len(list(result.inner.uses)) == 1 and not tile.value.uses:
            # Nothing else needs it: the sum stands on one line.
            tile.value.name_hint = None
        kind = ReduceKind(str(result.combiner))
        value = accumulated(scope, kind, accumulator.value, tile.value)
        return Tile(value, tile.dims)

    def _close(
        self,
        loop: tl.ForOp,
        inner: Scope,
        carried: Sequence[int],
        values: list[Tile | Buffer],
    ) -> None:
        """Store what the loop lays side by side, and yield what it carries."""
        for index, result in enumerate(self._results):
            if index not in carried and result.target is not None:
                values[index] = self._body.spill(
                    inner, values[index], result.inner, result.target
                )
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
        """Return the results as they stand behind the loop."""
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
    """Return the node's rows and combiners, as its text has them."""
    rows = ", ".join(
        f"{f'{row.axis}: ' if row.axis else ''}{row.dim} = {row.factor}"
        for row in node.loops
    )
    place = " on grid" if isinstance(node, SpatialOp) else ""
    kinds = [str(kind) for kind in node.combiners if kind is not Combiner.NONE]
    suffix = f" combine {', '.join(kinds)}" if kinds else ""
    return f"{node.name}{place} [{rows}]{suffix}"
