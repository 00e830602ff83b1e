"""The ops of a traced graph: those of `compound`, before dimensions have names."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from comet.dialects.compound.dims import (
    Element,
    element_type_of,
    extents_of,
    names_of,
    tensor,
    with_extents,
)
from comet.dialects.compound.elementary import (
    CastOp,
    ContractOp,
    FillOp,
    ReduceKind,
    ReduceOp,
)
from comet.dialects.compound.gather import GatherOp, ScatterAddOp
from comet.dialects.compound.index import IndexOp
from comet.dialects.compound.map import MapKind, MapOp
from comet.dialects.compound.pad import ConcatOp, PadOp, SliceOp
from comet.pytorch.dims import Axis, Dim, elements, inner_sizes, leaves, sizes_of
from comet.pytorch.emitter import RANK, Emitter, Op, Tensor


@dataclass(frozen=True)
class Map(Op):
    """`compound.map`."""

    kind: MapKind
    operands: tuple[Tensor, ...]

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        inputs = [to.value(operand) for operand in self.operands]
        return to.add(MapOp(self.kind, inputs, to.type(result)))

    def has_order(self, dims: Axis) -> bool:
        return True


@dataclass(frozen=True)
class Contract(Op):
    """`compound.contract`."""

    lhs: Tensor
    rhs: Tensor

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        lhs, rhs = to.value(self.lhs), to.value(self.rhs)
        return to.add(ContractOp(lhs, rhs, to.type(result)))

    def has_order(self, dims: Axis) -> bool:
        return True


@dataclass(frozen=True)
class Reduce(Op):
    """`compound.reduce`."""

    kind: ReduceKind
    operand: Tensor

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        return to.add(ReduceOp(self.kind, to.value(self.operand), to.type(result)))

    def has_order(self, dims: Axis) -> bool:
        return True


@dataclass(frozen=True)
class Cast(Op):
    """`compound.cast`."""

    operand: Tensor

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        value = to.value(self.operand)
        return to.add(CastOp(value, tensor(extents_of(value), result.element)))

    def has_order(self, dims: Axis) -> bool:
        self.operand.put_in_order(dims)
        return leaves(self.operand.dims) == leaves(dims)


@dataclass(frozen=True)
class Fill(Op):
    """`compound.fill`."""

    number: float

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        return to.add(FillOp(self.number, to.type(result)))


@dataclass(frozen=True)
class Index(Op):
    """`compound.index`: the positions along a dimension."""

    dim: Dim
    ranks: int = 1
    """How many ranks have a position each."""

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        if len(to.named((self.dim,))) == 1:
            shared = self.ranks > 1 and to.of_one_rank
            part = (self.ranks, [RANK]) if shared else (None, ())
            return to.add(IndexOp(to.type(result), *part))
        whole = to.unnamed()
        type_ = tensor({whole: self.dim.extent}, result.element)
        return to.split(to.add(IndexOp(type_)), whole, (self.dim,))


@dataclass(frozen=True)
class Positions(Op):
    """The positions in a tensor with some dimensions, outer first."""

    dims: Axis

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        extents = to.named(self.dims)
        inner = inner_sizes([*extents.values()])
        rows = (
            self._along(to, dim, size, result.element)
            for dim, size in zip(extents, inner, strict=True)
        )
        total = next(rows)
        for row in rows:
            known = extents_of(total) | extents_of(row)
            total = to.add(
                MapOp(MapKind.ADD, (total, row), tensor(known, result.element))
            )
        return to.ordered(total, [*to.named(result.dims)])

    def _along(self, to: Emitter, dim: str, size: int, element: Element) -> SSAValue:
        """Return the positions along a dimension, in steps of `size`."""
        (extent,) = (n for name, n in to.named(self.dims).items() if name == dim)
        type_ = tensor({dim: extent}, element)
        index = to.add(IndexOp(type_))
        if size == 1:
            return index
        step = to.add(FillOp(size, tensor({}, element)))
        return to.add(MapOp(MapKind.MULT, (index, step), type_))


@dataclass(frozen=True)
class Rename(Op):
    """`compound.rename`: for each axis of the operand the result's."""

    operand: Tensor
    pairs: tuple[tuple[Axis, Axis], ...]

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        value = to.value(self.operand)
        same = [pair for pair in self.pairs if sizes_of(pair[0]) == sizes_of(pair[1])]
        whole: dict[str, Axis] = {}
        names: dict[str, str] = {}
        for old, new in self.pairs:
            if (old, new) in same:
                continue
            value, name = to.merge(value, old)
            if len(parts := to.named(new)) == 1:
                (names[name],) = parts
            else:
                unnamed = to.unnamed()
                value = to.renamed(value, {name: unnamed})
                whole[unnamed] = new
        for old, new in same:
            names |= zip(to.named(old), to.named(new), strict=True)
        value = to.renamed(value, names)
        for name, new in whole.items():
            value = to.split(value, name, new)
        return value


@dataclass(frozen=True)
class Slice(Op):
    """`compound.slice` along one axis."""

    operand: Tensor
    axis: Axis
    offset: int
    dim: Dim

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        value, whole = to.merge(to.value(self.operand), self.axis)
        type_ = with_extents(value.type, {whole: self.dim.extent})
        part = to.add(SliceOp(value, type_, whole, self.offset))
        return to.split(part, whole, (self.dim,))


@dataclass(frozen=True)
class Pad(Op):
    """`compound.pad` of one axis, which becomes `dim`."""

    operand: Tensor
    axis: Axis
    dim: Dim
    number: float

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        value, whole = to.merge(to.value(self.operand), self.axis)
        type_ = with_extents(value.type, {whole: self.dim.extent})
        true = {whole: extents_of(value)[whole]}
        longer = to.add(PadOp(value, self.number, true, type_))
        return to.split(longer, whole, (self.dim,))


@dataclass(frozen=True)
class Concat(Op):
    """`compound.concat`: of each operand the axis, which becomes a part of `dim`."""

    operands: tuple[tuple[Tensor, Axis], ...]
    dim: Dim

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        whole, like = to.unnamed(), None
        values: dict[int, SSAValue] = {}
        # Fills have no order of their own.
        for place in sorted(range(len(self.operands)), key=self._is_fill):
            part, axis = self.operands[place]
            if like is not None and isinstance(part.op, Fill):
                type_ = with_extents(like.type, {whole: elements(leaves(axis))})
                values[place] = to.add(FillOp(part.op.number, type_))
                continue
            value, name = to.merge(to.value(part), axis)
            value = to.renamed(value, {name: whole})
            like = value if like is None else like
            values[place] = to.ordered(value, names_of(like))
        joined = ConcatOp(whole, [values[place] for place in sorted(values)])
        return to.split(to.add(joined), whole, (self.dim,))

    def _is_fill(self, place: int) -> bool:
        return isinstance(self.operands[place][0].op, Fill)


@dataclass(frozen=True)
class Gather(Op):
    """`compound.gather` along one axis of a table."""

    table: Tensor
    axis: Axis
    ids: Tensor

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        table, whole = to.merge(to.value(self.table), self.axis)
        return to.add(GatherOp(table, to.value(self.ids), whole))


@dataclass(frozen=True)
class GatherOwn(Op):
    """`compound.gather` of each rank's rows, of its own table, by its own ids."""

    table: Tensor
    axis: Axis
    ids: Tensor
    ranks: Dim

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        table, rows = to.merge(to.value(self.table), (self.ranks, *self.axis))
        ids = to.value(self.ids)
        if not to.of_one_rank:
            ids = self._in_all_tables(to, ids)
        return to.add(GatherOp(table, ids, rows, own=to.of_one_rank))

    def _in_all_tables(self, to: Emitter, ids: SSAValue) -> SSAValue:
        """Return ids of rows of the tables of all ranks, one behind the other."""
        element, extent = element_type_of(ids), extents_of(ids)[RANK]
        of_ranks = tensor({RANK: extent}, element)
        rows = FillOp(elements(leaves(self.axis)), tensor({}, element))
        each = [to.add(op) for op in (IndexOp(of_ranks), rows)]
        first = to.add(MapOp(MapKind.MULT, each, of_ranks))
        return to.add(MapOp(MapKind.ADD, [ids, first], ids.type))


@dataclass(frozen=True)
class ScatterAdd(Op):
    """`compound.scatter_add` into the positions of `dim`."""

    values: Tensor
    ids: Tensor
    dim: Dim

    def emit(self, to: Emitter, result: Tensor) -> SSAValue:
        whole, ids, values = to.unnamed(), to.value(self.ids), to.value(self.values)
        extents = extents_of(values)
        rest = {n: extents[n] for n in extents if n not in names_of(ids)}
        values = to.ordered(values, [*names_of(ids), *rest])
        type_ = tensor({whole: self.dim.extent, **rest}, element_type_of(values))
        sums = to.add(ScatterAddOp(values, ids, whole, type_))
        return to.split(sums, whole, (self.dim,))
