"""The rewrite of `split`: every op with the split dimension, on values in parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.blocks import copy_names, defined_in, terminator_of
from comet.dialects.collective.spmd import Sharding
from comet.dialects.compound import (
    ExtentOp,
    FillOp,
    FoldOp,
    IndexOp,
    MapKind,
    ReduceKind,
    ReduceOp,
    RenameOp,
)
from comet.dialects.compound.dims import (
    element_type_of,
    extents_of,
    level_of,
    names_of,
    tensor,
    unused,
)
from comet.passes.graph.emitter import Emitter
from comet.passes.sharding.insert_collectives.local_fold import merging_fold
from comet.passes.sharding.shardings import SHARD, shard_op, sharding_of_op


@dataclass(frozen=True)
class Split:
    """A dimension, and the two dimensions that replace it."""

    dim: str
    part: str
    """The dimension of parts."""
    inner: str
    """The dimension of the elements of a part."""
    merged: str
    """The name of `part` in the kernel that merges partials."""
    parts: int
    length: int
    """The number of elements of a part."""

    def type(self, type_: Attribute) -> Attribute:
        """Return `type_` with the two dimensions."""
        return tensor(
            [
                pair
                for dim, extent in extents_of(type_).items()
                for pair in self._pairs(dim, extent)
            ],
            element_type_of(type_),
            level_of(type_),
        )

    def _pairs(self, dim: str, extent: int) -> list[tuple[str, int]]:
        if dim != self.dim:
            return [(dim, extent)]
        # Folds that go element by element have chunks of extent 1.
        inner = self.length if extent == self.parts * self.length else extent
        return [(self.part, self.parts), (self.inner, inner)]

    def partial(self, type_: Attribute) -> Attribute:
        """Return `type_`, without the dimension, with one element per part."""
        extents = {self.part: self.parts, **extents_of(type_)}
        return tensor(extents, element_type_of(type_), level_of(type_))

    def sharding(self, sharding: Sharding) -> Sharding:
        """Return a sharding with `part` and `merged` instead of the dimension."""
        others = {dim: axes for dim, axes in sharding.items() if dim != self.dim}
        if self.dim not in sharding:
            return others
        return others | dict.fromkeys((self.part, self.merged), sharding[self.dim])


def is_merged_from(op: Operation, dim: str, parts: int) -> bool:
    """Whether `op` merges two dimensions to `dim`, and the outer one has the parts."""
    if not isinstance(op, RenameOp) or not op.merged:
        return False
    outer = op.merged[0]
    merges = op.renaming[outer] == dim and dim not in names_of(op.input)
    return merges and extents_of(op.input)[outer] % parts == 0


def split_ops(func: FuncOp, split: Split, ops: Sequence[Operation]) -> None:
    """
    Replace `ops` of `func`, in their order, by ops on values in parts.

    Values that other ops compute are viewed in parts. An op whose result others read,
    too, with the dimension, stays beside its copy.
    """
    rewriting = _Rewriting(split, _views(func.body.block, split, ops))
    for op in ops:
        for before, after in zip(op.results, rewriting.replace(op), strict=True):
            after.name_hint = before.name_hint
            if split.dim in names_of(before):
                rewriting.values[before] = after
            else:
                before.replace_all_uses_with(after)
    for op in reversed(ops):
        if not any(result.uses for result in op.results):
            Rewriter.erase_op(op)


def _views(
    block: Block, split: Split, ops: Sequence[Operation]
) -> dict[SSAValue, SSAValue]:
    """View what `ops` read of arguments and of other ops in parts."""
    computed = {result for op in ops for result in op.results}
    read = {value for op in ops for value in op.operands} - computed
    views = dict[SSAValue, SSAValue]()
    start = InsertPoint.at_start(block)
    for value in defined_in(block):
        if value not in read or split.dim not in names_of(value):
            continue
        view = RenameOp(value, split.type(value.type), split.dim)
        view.result.name_hint = value.name_hint
        owner = value.owner
        after = InsertPoint.after(owner) if isinstance(owner, Operation) else start
        Rewriter.insert_op(view, after)
        views[value] = view.result
    return views


@dataclass(frozen=True)
class _Rewriting:
    """The rewriting of one function."""

    split: Split
    values: dict[SSAValue, SSAValue]
    """The new values of values with the dimension, and of values in regions."""

    def replace(self, op: Operation) -> Sequence[SSAValue]:
        """Insert the ops that replace `op` before it, and return the results."""
        if isinstance(op, IndexOp):
            return [self._positions(op)]
        if is_merged_from(op, self.split.dim, self.split.parts):
            return [self._merged(op)]
        if isinstance(op, FoldOp) and op.dim.data == self.split.dim:
            partial = self._partial_fold(op)
        else:
            partial = self._copied(op)
        self._insert(partial, op)
        copy_names(op.results, partial.results)
        if any(self.split.dim in names_of(result) for result in op.results):
            return partial.results
        if not any(self.split.part in names_of(result) for result in partial.results):
            return partial.results
        merging = self._merging(op, [self._parted(r, op) for r in partial.results])
        self._insert(merging, op)
        return merging.results

    def _insert(self, new: Operation, old: Operation) -> None:
        """Insert `new` before `old`, with its sharding."""
        Rewriter.insert_op(new, InsertPoint.before(old))
        new.attributes.pop(SHARD, None)
        shard_op(new, self.split.sharding(sharding_of_op(old)))

    def _parted(self, value: SSAValue, before: Operation) -> SSAValue:
        """View partials under the name of the parts in the merging kernel."""
        names = {self.split.part: self.split.merged}
        renamed = tuple(names.get(name, name) for name in names_of(value))
        return Emitter(before).rename(value, renamed)

    def _merging(self, op: Operation, partials: Sequence[SSAValue]) -> Operation:
        """Return the op that merges the partials of all parts, in place of `op`."""
        if isinstance(op, FoldOp):
            return merging_fold(op, self.split.merged, partials)
        kind = op.kind.data if isinstance(op, ReduceOp) else ReduceKind.ADD
        return ReduceOp(kind, partials[0], op.results[0].type)

    def _merged(self, op: Operation) -> SSAValue:
        """Split the outer of two merged dimensions; merge each part with the inner."""
        assert isinstance(op, RenameOp)
        split, emit, outer = self.split, Emitter(op), op.merged[0]
        rest = unused(f"{outer}_in", names_of(op.input))
        parts = emit.split(op.input, outer, (split.part, rest), split.parts)
        return emit.merge(parts, (rest, op.merged[1]), split.inner)

    def _positions(self, op: IndexOp) -> SSAValue:
        """Emit part x length + position in the part."""
        split, emit, element = self.split, Emitter(op), element_type_of(op.result)
        part = emit.index(split.part, split.parts, element, name="part_index")
        length = emit.fill(float(split.length), element, name="length")
        start = emit.map(MapKind.MULT, part, length, name="start")
        inner = emit.index(split.inner, split.length, element, name="in_index")
        position = emit.map(MapKind.ADD, start, inner)
        users = [use.operation for use in op.result.uses]
        sharding = split.sharding(sharding_of_op(users[0])) if users else {}
        for value in (start, position):
            assert isinstance(value.owner, Operation)
            shard_op(value.owner, sharding)
        return position

    def _copied(self, op: Operation) -> Operation:
        """Return a copy of `op` with the new values of its operands."""
        operands = [self.values.get(value, value) for value in op.operands]
        if isinstance(op, ExtentOp):
            return self._extent(op, operands[0])
        return op.create(
            operands=operands,
            result_types=[
                self._result_type(op, result, operands) for result in op.results
            ],
            properties=dict(op.properties),
            attributes=dict(op.attributes),
            regions=[
                self._region(r, [self.split.type(arg.type) for arg in r.block.args])
                for r in op.regions
            ],
        )

    def _extent(self, op: ExtentOp, value: SSAValue) -> ExtentOp:
        """Return the extent of a chunk, which is the same in each part."""
        dim = self.split.inner if op.dim.data == self.split.dim else op.dim.data
        return ExtentOp(dim, value, op.result.type)

    def _result_type(
        self, op: Operation, result: SSAValue, operands: Sequence[SSAValue]
    ) -> Attribute:
        """
        Return the type of a result: one partial per part if operands have parts.

        A fold over another dimension does not sum this one, so nothing is partial.
        """
        split, type_ = self.split, result.type
        in_parts = any(split.part in names_of(value) for value in operands)
        if isinstance(op, FoldOp) or not in_parts or split.dim in names_of(type_):
            return split.type(type_)
        return split.partial(type_)

    def _partial_fold(self, op: FoldOp) -> FoldOp:
        """Return the fold over each part; iter_args have one element per part."""
        ins = [self.values.get(value, value) for value in op.ins]
        init = [self._spread(value, Emitter(op)) for value in op.init]
        iter_args = [value.type for value in init]
        chunks = [
            self.split.type(argument.type)
            for argument in op.step.block.args[: len(op.ins)]
        ]
        step = self._region(op.step, [*chunks, *iter_args])
        merge = self._region(op.merge, [*iter_args, *iter_args])
        self._spread_yielded(step.block, iter_args)
        self._spread_yielded(merge.block, iter_args)
        fold = FoldOp(self.split.inner, ins, init, step, merge)
        fold.partial = UnitAttr()
        return fold

    def _spread_yielded(self, block: Block, iter_args: Sequence[Attribute]) -> None:
        """Broadcast yielded values over the parts if they do not have them."""
        terminator = terminator_of(block)
        for index, (value, type_) in enumerate(
            zip(terminator.operands, iter_args, strict=True)
        ):
            if value.type != type_:
                terminator.operands[index] = self._spread(value, Emitter(terminator))

    def _spread(self, value: SSAValue, emit: Emitter) -> SSAValue:
        """Return `value` broadcast over the parts."""
        type_ = self.split.partial(value.type)
        if isinstance(value.owner, FillOp):
            return emit.insert(FillOp(value.owner.value.value.data, type_), "neutral")
        zero = emit.insert(FillOp(0.0, type_), "none")
        return emit.map(MapKind.ADD, zero, value, name=value.name_hint)

    def _region(self, region: Region, arguments: Sequence[Attribute]) -> Region:
        """Return a copy of a region of one block, with these types of arguments."""
        old, block = region.block, Block(arg_types=arguments)
        for before, after in zip(old.args, block.args, strict=True):
            after.name_hint, self.values[before] = before.name_hint, after
        for op in old.ops:
            block.add_op(copy := self._copied(op))
            for before, after in zip(op.results, copy.results, strict=True):
                after.name_hint, self.values[before] = before.name_hint, after
        return Region(block)
