"""Builds elementary ops; their types follow from the dimension names."""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects.builtin import AnyFloat, i1
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from comet.dialects.compound import (
    CastOp,
    ContractOp,
    ExtentOp,
    FillOp,
    IndexOp,
    MapKind,
    MapOp,
    ReduceKind,
    ReduceOp,
    RenameOp,
)
from comet.dialects.compound.dims import (
    Element,
    element_type_of,
    extents_of,
    merged_extents,
    tensor,
    with_element_type,
)
from comet.dialects.compound.map import COMPARISONS


class Emitter:
    """
    Inserts elementary ops before an operation, or at the end of a block.

    Every method returns the result; its `name` becomes the name hint.
    """

    def __init__(self, where: Operation | Block):
        point = (
            InsertPoint.at_end(where)
            if isinstance(where, Block)
            else InsertPoint.before(where)
        )
        self._builder = Builder(point)

    def insert(self, op: Operation, name: str | None = None) -> SSAValue:
        """Insert an operation and return its first result."""
        self._builder.insert(op)
        op.results[0].name_hint = name
        return op.results[0]

    def contract(
        self,
        lhs: SSAValue,
        rhs: SSAValue,
        dim: str,
        element: AnyFloat,
        name: str | None = None,
    ) -> SSAValue:
        """Multiply and sum over `dim`; `element` is the accumulator's type."""
        extents = merged_extents((lhs, rhs), ContractOp.name)
        del extents[dim]
        return self.insert(ContractOp(lhs, rhs, tensor(extents, element)), name)

    def reduce(
        self, kind: ReduceKind, value: SSAValue, dim: str, name: str | None = None
    ) -> SSAValue:
        """Reduce `value` over `dim`."""
        extents = extents_of(value)
        del extents[dim]
        result = tensor(extents, element_type_of(value))
        return self.insert(ReduceOp(kind, value, result), name)

    def map(
        self, kind: MapKind, *inputs: SSAValue, name: str | None = None
    ) -> SSAValue:
        """
        Compute elementwise; dimensions are in the order of the operands.

        Dimensions that only a condition has come last.
        """
        element = i1 if kind in COMPARISONS else element_type_of(inputs[-1])
        first = inputs[1:] if kind is MapKind.SELECT else ()
        result = tensor(merged_extents((*first, *inputs), MapOp.name), element)
        return self.insert(MapOp(kind, inputs, result), name)

    def cast(
        self, value: SSAValue, element: AnyFloat, name: str | None = None
    ) -> SSAValue:
        """Convert the element type; a value that already has it is returned."""
        if element_type_of(value) == element:
            return value
        return self.insert(CastOp(value, with_element_type(value.type, element)), name)

    def rename(self, value: SSAValue, names: tuple[str, ...]) -> SSAValue:
        """View `value` under other names; a value with these names is returned."""
        extents = extents_of(value)
        if tuple(extents) == names:
            return value
        renamed = dict(zip(names, extents.values(), strict=True))
        op = RenameOp(value, tensor(renamed, element_type_of(value)))
        return self.insert(op, value.name_hint)

    def split(
        self, value: SSAValue, dim: str, into: tuple[str, str], parts: int
    ) -> SSAValue:
        """View `dim` of `value` as two: `parts` equal parts, and their elements."""
        extents: dict[str, int] = {}
        for name, extent in extents_of(value).items():
            pair = {into[0]: parts, into[1]: extent // parts}
            extents |= pair if name == dim else {name: extent}
        op = RenameOp(value, tensor(extents, element_type_of(value)), split=dim)
        return self.insert(op, value.name_hint)

    def merge(self, value: SSAValue, dims: tuple[str, str], into: str) -> SSAValue:
        """View two adjacent dimensions of `value`, outer and inner, as one."""
        extents: dict[str, int] = {}
        sizes = extents_of(value)
        for name, extent in sizes.items():
            if name == dims[0]:
                extents[into] = extent * sizes[dims[1]]
            elif name != dims[1]:
                extents[name] = extent
        type_ = tensor(extents, element_type_of(value))
        return self.insert(RenameOp(value, type_, merge=dims[0]), value.name_hint)

    def fill(
        self, number: float, element: Element, name: str | None = None
    ) -> SSAValue:
        """Return a constant of rank 0."""
        return self.insert(FillOp(number, tensor({}, element)), name)

    def fill_like(self, number: float, like: SSAValue, name: str | None) -> SSAValue:
        """Return a constant with the type of the value `like`."""
        return self.insert(FillOp(number, like.type), name)

    def index(
        self, dim: str, extent: int, element: Element, name: str | None = None
    ) -> SSAValue:
        """Return the positions 0 to `extent` - 1 along `dim`."""
        return self.insert(IndexOp(tensor({dim: extent}, element)), name)

    def extent(self, dim: str, value: SSAValue, name: str | None = None) -> SSAValue:
        """Return the number of elements of `value` along `dim`, as rank 0."""
        return self.insert(ExtentOp(dim, value), name)
