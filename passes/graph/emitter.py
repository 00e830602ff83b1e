"""Builds elementary ops; their types follow from the dimension names."""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects.builtin import AnyFloat
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
    element_type_of,
    extents_of,
    merged_extents,
    tensor,
    with_element_type,
)


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

    def insert(self, made: Operation, name: str | None = None) -> SSAValue:
        """Insert an operation and return its first result."""
        self._builder.insert(made)
        made.results[0].name_hint = name
        return made.results[0]

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
        """Compute elementwise; dimensions are in the order of the operands'."""
        result = tensor(merged_extents(inputs, MapOp.name), element_type_of(inputs[0]))
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
        made = RenameOp(value, tensor(renamed, element_type_of(value)))
        return self.insert(made, value.name_hint)

    def fill(
        self, number: float, element: AnyFloat, name: str | None = None
    ) -> SSAValue:
        """Return a constant of rank 0."""
        return self.insert(FillOp(number, tensor({}, element)), name)

    def fill_like(
        self, number: float, like: SSAValue, name: str | None = None
    ) -> SSAValue:
        """Return a constant with the type of the value `like`."""
        return self.insert(FillOp(number, like.type), name)

    def index(
        self, dim: str, extent: int, element: AnyFloat, name: str | None = None
    ) -> SSAValue:
        """Return the positions 0 to `extent` - 1 along `dim`."""
        return self.insert(IndexOp(tensor({dim: extent}, element)), name)

    def extent(self, dim: str, value: SSAValue, name: str | None = None) -> SSAValue:
        """Return the number of elements of `value` along `dim`, as rank 0."""
        return self.insert(ExtentOp(dim, value), name)
