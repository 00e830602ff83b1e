"""What all collectives have in common: group, levels, algorithm, and their checks."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from enum import auto
from typing import TypeAlias

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    FlatSymbolRefAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import (
    Attribute,
    Operation,
    ParametrizedAttribute,
    SpacedOpaqueSyntaxAttribute,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
)
from xdsl.traits import Pure, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from comet.dialects.collective.mesh import lookup_mesh, verify_axes
from comet.dialects.compound import ReduceKind, ReduceKindAttr
from comet.dialects.compound.dims import ceil_div, element_type_of, extents_of


class Algorithm(StrEnum):
    """How a collective is executed; absent until `place-collectives` chooses."""

    RING = auto()
    TREE = auto()
    RECURSIVE_DOUBLING = auto()
    HALVING_DOUBLING = auto()
    DIRECT = auto()
    ONE_SHOT = auto()
    PAIRWISE = auto()
    SCATTER_ALL_GATHER = auto()
    MESH2D = auto()
    HIERARCHICAL = auto()


@irdl_attr_definition
class AlgorithmAttr(EnumAttribute[Algorithm], SpacedOpaqueSyntaxAttribute):
    name = "collective.algorithm"


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """The result of `collective.send`: a tensor of type `payload` in transfer."""

    name = "collective.token"
    payload: Attribute


class CollectiveAxes(SymbolUserOpInterface):
    """Checks that a collective's mesh exists and has its axes."""

    def verify(self, op: Operation) -> None:
        assert isinstance(op, CollectiveOp)
        verify_axes(op, lookup_mesh(op, op.mesh), op.axis_names)
        op.verify_shape()
        if isinstance(op, RootedOp):
            op.verify_root()


class CollectiveOp(IRDLOperation, ABC):
    """A collective over the groups along `axes` of `mesh`, from level to level."""

    mesh = prop_def(FlatSymbolRefAttr)
    axes = prop_def(ArrayAttr[StringAttr])
    from_level = opt_prop_def(StringAttr, prop_name="from")
    to_level = opt_prop_def(StringAttr, prop_name="to")
    algorithm = opt_prop_def(AlgorithmAttr)
    input = operand_def()
    traits = traits_def(Pure(), CollectiveAxes())

    def __init__(
        self,
        input: SSAValue,
        mesh: str,
        axes: Sequence[str],
        result_type: Attribute | None = None,
        **properties: Value,
    ):
        """Set the op's own properties; the result has the operand's type."""
        super().__init__(
            operands=[input],
            result_types=[result_type or input.type],
            properties={
                "mesh": SymbolRefAttr(mesh),
                "axes": ArrayAttr(StringAttr(axis) for axis in axes),
                **{name: _attribute(value) for name, value in properties.items()},
            },
        )

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The mesh axes of the group, major first."""
        return tuple(axis.data for axis in self.axes)

    @property
    def is_explicit(self) -> bool:
        """Whether it stays at one level, instead of becoming the border of a node."""
        return self.from_level == self.to_level

    @property
    def among_ranks(self) -> bool:
        """Whether instances of a group share no memory."""
        axes = lookup_mesh(self, self.mesh).rank_axes
        return any(axis in axes for axis in self.axis_names)

    @property
    def joins_exchange(self) -> bool:
        """Whether the collective right before it moves data along the same axes."""
        before = self.prev_op
        return isinstance(before, CollectiveOp) and before.axes == self.axes

    @property
    def group_size(self) -> int:
        """The number of instances in a group."""
        return lookup_mesh(self, self.mesh).size(self.axis_names)

    def verify_shape(self) -> None:
        """Check the result's type; by default it is the operand's."""
        if self.results and self.input.type != self.results[0].type:
            raise VerifyException(
                f"'{self.name}' op keeps the type {self.input.type}, got "
                f"{self.results[0].type}"
            )

    def verify_split(self, whole: SSAValue, part: SSAValue, dim: str) -> None:
        """
        Check that `part` is one instance's shard of `whole` along `dim`.

        A shard has ceil(extent / group size) elements; all else is equal. A dimension
        that `part` does not have is new in `whole`, with one element per instance.
        """
        shards, extents = extents_of(part), extents_of(whole)
        if element_type_of(part) != element_type_of(whole):
            raise VerifyException(f"'{self.name}' op keeps the element type")
        if dim not in extents:
            raise VerifyException(f"'{self.name}' op {whole.type} has no dim {dim}")
        shard, size = shards.setdefault(dim, 1), self.group_size
        if shard != ceil_div(extents[dim], size):
            raise VerifyException(
                f"'{self.name}' op {dim} = {extents[dim]} over {size} instances is "
                f"{ceil_div(extents[dim], size)} each, got {shard}"
            )
        if shards | {dim: 0} != extents | {dim: 0}:
            raise VerifyException(
                f"'{self.name}' op keeps every dimension but {dim}: {part.type} and "
                f"{whole.type}"
            )


class RootedOp(CollectiveOp, ABC):
    """A collective with an operand or result on one instance of each group only."""

    root = prop_def(IntegerAttr[I64])

    def verify_root(self) -> None:
        """Check that the root is an instance of the group."""
        if not 0 <= (root := self.root.value.data) < self.group_size:
            raise VerifyException(
                f"'{self.name}' op root {root} is not one of the group's "
                f"{self.group_size} instances"
            )


Value: TypeAlias = ReduceKind | str | bool | int
"""A property of a collective as a Python value."""


def _attribute(value: Value) -> Attribute:
    match value:
        case ReduceKind():
            return ReduceKindAttr(value)
        case str():
            return StringAttr(value)
        case bool():
            return IntegerAttr.from_bool(value)
        case int():
            return IntegerAttr(value, i64)


GROUP = (
    "`on` $mesh $axes (`from` $from^ `to` $to)? (`algorithm` $algorithm^)? "
    "attr-dict `:` type($input) `->`"
)
"""The part of the format between the operand and the type of the result."""
