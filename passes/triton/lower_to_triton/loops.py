"""
How `lower-to-triton` writes the loops of the tile tree.

Every temporal loop of several iterations becomes one in Triton. A result that lacks the
loop's dimension is an iter_arg; one that has it is in device memory, where copies
in the body store it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import Pure
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import tl
from comet.dialects.blocks import terminator_of
from comet.dialects.compound import ContractOp, ReduceKind
from comet.dialects.compound.dims import element_type_of, level_of, names_of
from comet.dialects.compound.elementary import neutral_of
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.accumulators import (
    is_continued,
    is_fused,
)
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.node import NodeOp
from comet.dialects.tl.types import BinaryKind
from comet.passes.triton.lower_to_triton.buffers import Buffer
from comet.passes.triton.lower_to_triton.channels import (
    owned_slice,
    peer_at,
)
from comet.passes.triton.lower_to_triton.coalesced import bounds_of_all, slices_at
from comet.passes.triton.lower_to_triton.copies import (
    finish_stores,
    lower_body,
    target_of,
)
from comet.passes.triton.lower_to_triton.offsets import Prologue, inner_slice
from comet.passes.triton.lower_to_triton.ops import (
    accumulated,
    accumulator_of,
    contraction,
    started,
)
from comet.passes.triton.lower_to_triton.ranges import LoopRange, ranges_of
from comet.passes.triton.lower_to_triton.sums import added_to_earlier, start_of
from comet.passes.triton.lower_to_triton.table import lowers
from comet.passes.triton.lower_to_triton.values import (
    Scope,
    Tile,
    aligned,
    scope_in,
    split_last,
)
from comet.passes.triton.lower_to_triton.waits import with_sources
from comet.passes.triton.slices import LoopSlice, loop_slices


@lowers(TemporalOp)
def lower_temporal(op: TemporalOp, scope: Scope) -> None:
    """Write a temporal node as a nest of loops."""
    targets = [target_of(scope, value) for value in op.outs]
    starts = {
        index: start
        for index, value in enumerate(op.outs)
        if (start := start_of(value, scope)) is not None
    }
    results = TemporalLowering(op, targets).lower(scope, starts)
    for value, result in zip(op.outs, results, strict=True):
        if isinstance(result, Tile):
            result = added_to_earlier(value, result, scope)
        scope.values[value] = result
    finish_stores(op, scope)


@dataclass(frozen=True)
class _Result:
    """One result of a temporal node."""

    outer: SSAValue
    inner: SSAValue
    combiner: Combiner
    target: Buffer | None
    reduced: frozenset[str]
    """The looped dimensions that it does not have."""


class TemporalLowering:
    """Writes one temporal node as a nest of loops."""

    def __init__(self, node: TemporalOp, targets: Sequence[Buffer | None]):
        self._node = node
        self._loops = loop_slices(node)
        self._results = [
            _Result(
                outer,
                inner,
                combiner,
                target,
                frozenset(
                    loop.dim for loop in self._loops if loop.dim not in names_of(outer)
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
        accumulators = dict(starts)
        for index, value in zip(self._folds(), self._node.iter_args, strict=True):
            tile, inside = scope.tile(value), self._results[index].inner
            accumulators[index] = started(scope, tile, inside) if self._loops else tile
        return self._loop(0, inner, outer, accumulators)

    def _folds(self) -> list[int]:
        """Return the results that begin with iter_args."""
        results = enumerate(self._results)
        return [index for index, each in results if each.combiner is Combiner.FOLD]

    def _check(self, result: _Result) -> None:
        """Reject what a kernel cannot hold: assembled registers, sums in memory."""
        parallel = [loop.dim for loop in self._loops if loop.dim not in result.reduced]
        if parallel and result.combiner is Combiner.FOLD:
            raise PassFailedException(
                f"lower-to-triton: {self._node.name} splits an iter_arg along "
                f"{parallel[0]}; let a node of its own loop over {parallel[0]}"
            )
        if parallel and result.target is None:
            raise PassFailedException(
                f"lower-to-triton: {self._node.name} concatenates tiles of "
                f"{parallel[0]} in {level_of(result.outer)}, which Triton cannot; make "
                "the tile the whole dimension, or keep the result in device memory"
            )
        if parallel and result.reduced:
            raise PassFailedException(
                f"lower-to-triton: {self._node.name} reduces {self._loops[0].dim} "
                f"outside the loop over {parallel[0]}; make {parallel[0]} the outer "
                "loop"
            )
        if result.reduced and result.target is not None:
            raise PassFailedException(
                f"lower-to-triton: {self._node.name} combines {result.outer.type} in "
                "device memory, which Triton cannot; combine it in registers, and copy "
                "it after the node"
            )

    def _check_split(self, argument: SSAValue, value: Tile | Buffer) -> None:
        """Reject a tile in registers that a loop would cut."""
        split_dims = [
            loop.dim for loop in self._loops if loop.dim in names_of(argument)
        ]
        if isinstance(value, Tile) and split_dims and self._node.unroll is None:
            raise PassFailedException(
                f"lower-to-triton: {self._node.name} splits {argument.type} along "
                f"{split_dims[0]} although it is in registers, which Triton cannot; "
                "keep the value in device memory"
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
        if self._node.coalesce is not None and not depth and len(self._loops) > 1:
            return self._coalesced(scope, outer, accumulators)
        loop = self._loops[depth]
        if self._node.unroll is not None:
            return self._unrolled(loop, depth, scope, outer)
        iter_args = self._iter_args(loop)
        for index in iter_args:
            if index not in accumulators:
                accumulators[index] = self._neutral(self._results[index], scope)
        results: list[Tile | Buffer] = []
        for each in ranges_of(self._node, loop, scope, outer):
            results = self._iterate(each, loop, depth, scope, outer, accumulators)
            accumulators = accumulators | {
                index: result
                for index, result in enumerate(results)
                if index in iter_args and isinstance(result, Tile)
            }
        return results

    def _coalesced(
        self,
        scope: Scope,
        outer: dict[SSAValue, Tile | Buffer],
        accumulators: Mapping[int, Tile],
    ) -> list[Tile | Buffer]:
        """Write all loops as one; the dimensions' positions follow from its index."""
        iter_args = range(len(self._results))
        starts = [
            accumulators.get(index) or self._neutral(result, scope)
            for index, result in enumerate(self._results)
        ]
        inits = [start.value for start in starts]
        for_op = tl.ForOp(*bounds_of_all(self._node, self._loops, scope), inits)
        for_op.attributes[tl.COMMENT] = StringAttr(
            describe(self._node) + ", in one loop"
        )
        scope.builder.insert(for_op)
        index, *arguments = for_op.body.block.args
        index.name_hint = "i"
        inner = scope_in(for_op.body.block, scope)
        inner.slices |= slices_at(index, self._loops, scope.slices, inner.prologue)
        tiles = zip(iter_args, arguments, starts, strict=True)
        inside = {number: Tile(value, start.dims) for number, value, start in tiles}
        values = self._loop(len(self._loops), inner, outer, inside)
        self._close(for_op, inner, iter_args, values)
        return self._after(for_op, iter_args, values)

    def _unrolled(
        self,
        loop: LoopSlice,
        depth: int,
        scope: Scope,
        outer: dict[SSAValue, Tile | Buffer],
    ) -> list[Tile | Buffer]:
        """Write the iterations of a loop, each with its slice of tiles in registers."""
        cut = {
            argument: [
                Tile(half, value.dims)
                for half in split_last(scope, value.value, loop.factor)
            ]
            for argument, value in outer.items()
            if isinstance(value, Tile) and loop.dim in value.dims
        }
        results: list[Tile | Buffer] = []
        whole = scope.slices[loop.dim]
        for index in range(loop.factor):
            home = Prologue.at_end(scope.builder.insertion_point.block)
            inner = replace(scope, slices=dict(scope.slices), values=dict(scope.values))
            start = whole.named_start()
            shift = home.integer(index * loop.tile)
            if start is not None and index:
                start = home.binary(BinaryKind.ADD, start, shift)
            shape = whole.shape.in_loop(loop)
            start = shift if start is None else start
            inner.slices[loop.dim] = inner_slice(whole, loop, shape, start, home)
            tiles = {argument: halves[index] for argument, halves in cut.items()}
            results = self._loop(depth + 1, inner, outer | tiles, {})
        return results

    def _iterate(
        self,
        over: LoopRange,
        loop: LoopSlice,
        depth: int,
        scope: Scope,
        outer: dict[SSAValue, Tile | Buffer],
        accumulators: dict[int, Tile],
    ) -> list[Tile | Buffer]:
        """Write a range of the iterations of a loop; return the results after it."""
        iter_args = self._iter_args(loop)
        starts = [accumulators[index] for index in iter_args]
        for_op, inner = self._open(over, loop, scope, starts, depth)
        if loop.dim in inner.owners and loop.dim not in scope.owners:
            outer = {
                argument: with_sources(inner, argument, value)
                for argument, value in outer.items()
            }
        arguments = for_op.body.block.args[1:]
        inside = accumulators | {
            index: Tile(argument, start.dims)
            for index, argument, start in zip(iter_args, arguments, starts, strict=True)
        }
        values = self._loop(depth + 1, inner, outer, inside)
        self._close(for_op, inner, iter_args, values)
        return self._after(for_op, iter_args, values)

    def _iter_args(self, loop: LoopSlice) -> list[int]:
        """Return the results that a loop passes from one iteration to the next."""
        results = enumerate(self._results)
        return [index for index, result in results if loop.dim in result.reduced]

    def _neutral(self, result: _Result, scope: Scope) -> Tile:
        if result.combiner is Combiner.SAME:
            return accumulator_of(scope, 0.0, result.inner)
        kind = ReduceKind(str(result.combiner))
        neutral = neutral_of(kind, element_type_of(result.inner))
        return accumulator_of(scope, neutral, result.inner)

    def _open(
        self,
        over: LoopRange,
        loop: LoopSlice,
        scope: Scope,
        starts: Sequence[Tile],
        depth: int,
    ) -> tuple[tl.ForOp, Scope]:
        """Insert the `tl.for` of one loop; return it and the scope of its body."""
        outer = scope.slices[loop.dim]
        inits = [start.value for start in starts]
        bounds = (over.first, over.stop, over.step)
        for_op = tl.ForOp(*bounds, inits, warp_specialize=self._node.specialize)
        if depth == 0:
            comment = describe(self._node) + (" without a mask" if over.true else "")
            for_op.attributes[tl.COMMENT] = StringAttr(comment)
        scope.builder.insert(for_op)
        index = for_op.body.block.args[0]
        index.name_hint = "i" if over.is_source else loop.dim.lower()
        inner = scope_in(for_op.body.block, scope)
        inner.true = scope.true | over.true
        if over.is_source:
            source = peer_at(inner, index, "source")
            inside, owner = owned_slice(inner, outer, loop, source)
            inner.owners[loop.dim] = owner
        else:
            inside = inner_slice(
                outer, loop, outer.shape.in_loop(loop), index, inner.prologue
            )
        inner.slices[loop.dim] = inside
        return for_op, inner

    def _innermost(
        self, scope: Scope, accumulators: dict[int, Tile]
    ) -> list[Tile | Buffer]:
        """Write the body; return its values, combined with what was there before."""
        arguments = self._node.region_iter_args
        for argument, index in zip(arguments, self._folds(), strict=True):
            scope.values[argument] = accumulators[index]
        continued = {
            result.inner: accumulators[index]
            for index, result in enumerate(self._results)
            if index in accumulators and is_continued(self._node, result.inner)
        }
        targets = [result.target for result in self._results]
        lower_body(self._node, scope, targets, continued)
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
        if is_pure and result.inner.has_one_use() and not tile.value.uses:
            # Nothing else needs it: the sum is on one line.
            tile.value.name_hint = None
        kind = ReduceKind(str(result.combiner))
        term = aligned(scope, tile, accumulator.dims)
        value = accumulated(scope, kind, accumulator.value, term)
        return Tile(value, accumulator.dims)

    def _close(
        self,
        for_op: tl.ForOp,
        inner: Scope,
        iter_args: Sequence[int],
        values: Sequence[Tile | Buffer],
    ) -> None:
        """Yield the next values of the iter_args."""
        tiles = [values[index] for index in iter_args]
        yielded = [tile.value for tile in tiles if isinstance(tile, Tile)]
        terminator = terminator_of(for_op.body.block)
        inner.builder.insert(tl.YieldOp(*yielded))
        Rewriter.erase_op(terminator)

    def _after(
        self,
        for_op: tl.ForOp,
        iter_args: Sequence[int],
        values: Sequence[Tile | Buffer],
    ) -> list[Tile | Buffer]:
        """Return the results as they come after the loop."""
        after = list(values)
        for position, index in enumerate(iter_args):
            value, result = values[index], for_op.results_[position]
            assert isinstance(value, Tile)
            hint = self._results[index].outer.name_hint
            for_op.body.block.args[1 + position].name_hint = hint
            result.name_hint = hint
            after[index] = Tile(result, value.dims, value.padding)
        return after


def describe(node: NodeOp) -> str:
    """Return the node's loops and combiners, as its text has them."""
    loops = ", ".join(
        f"{f'{loop.axis}: ' if loop.axis else ''}{loop.dim} = {loop.factor}"
        for loop in node.loops
    )
    grid = " on grid" if isinstance(node, SpatialOp) else ""
    kinds = [str(kind) for kind in node.combiners if kind is not Combiner.NONE]
    suffix = f" combine {', '.join(kinds)}" if kinds else ""
    return f"{node.name}{grid} [{loops}]{suffix}"
