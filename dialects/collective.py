"""
The collective dialect: a mesh, an SPMD region, and explicit collectives.

Collectives have value semantics and take the local values of an SPMD region (or of a
spatial node). A group is all instances that differ only in the named axes, the first
axis major.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from enum import auto

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    BoolAttr,
    FlatSymbolRefAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import (
    Attribute,
    Dialect,
    Operation,
    ParametrizedAttribute,
    SpacedOpaqueSyntaxAttribute,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from comet.dialects.collective_mesh import MeshOp, lookup_mesh, verify_axes
from comet.dialects.collective_spmd import SpmdOp, YieldOp
from comet.dialects.compound import ReduceKind, ReduceKindAttr
from comet.dialects.compound_dims import element_type_of, extents_of, names_of


class Algorithm(StrEnum):
    """How a collective is carried out; absent until `place-collectives` chooses."""

    RING = auto()
    TREE = auto()
    RECURSIVE_DOUBLING = auto()
    MESH2D = auto()
    HIERARCHICAL = auto()


@irdl_attr_definition
class AlgorithmAttr(EnumAttribute[Algorithm], SpacedOpaqueSyntaxAttribute):
    name = "collective.algorithm"


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """What `collective.send` gives: a tensor of type `payload` on its way."""

    name = "collective.token"
    payload: Attribute


class CollectiveAxes(SymbolUserOpInterface):
    """Checks that a collective's mesh exists and has its axes."""

    def verify(self, op: Operation) -> None:
        assert isinstance(op, CollectiveOp)
        verify_axes(op, lookup_mesh(op, op.mesh.string_value()), op.axis_names)
        op.verify_shape()


class CollectiveOp(IRDLOperation, ABC):
    """A collective over the groups along `axes` of `mesh`, from level to level."""

    mesh = prop_def(FlatSymbolRefAttr)
    axes = prop_def(ArrayAttr[StringAttr])
    from_level = opt_prop_def(StringAttr, prop_name="from")
    to_level = opt_prop_def(StringAttr, prop_name="to")
    algorithm = opt_prop_def(AlgorithmAttr)
    input = operand_def()
    traits = traits_def(Pure(), CollectiveAxes())

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The mesh axes of the group, major first."""
        return tuple(axis.data for axis in self.axes)

    @property
    def group_size(self) -> int:
        """The number of instances in a group."""
        return lookup_mesh(self, self.mesh.string_value()).size(self.axis_names)

    def verify_shape(self) -> None:
        """Check the result's type; the default wants the operand's."""
        if self.results and self.input.type != self.results[0].type:
            raise VerifyException(
                f"'{self.name}' op keeps the type {self.input.type}, got "
                f"{self.results[0].type}"
            )

    def verify_split(self, whole: SSAValue, part: SSAValue, dim: str) -> None:
        """
        Check that `part` is one instance's share of `whole` along `dim`.

        A share has ceil(extent / group size) elements; all else is equal. A dimension
        that `part` lacks is new in `whole`, with one element per instance.
        """
        shares, wholes = extents_of(part), extents_of(whole)
        if element_type_of(part) != element_type_of(whole):
            raise VerifyException(f"'{self.name}' op keeps the element type")
        if dim not in wholes:
            raise VerifyException(f"'{self.name}' op {whole.type} has no dim {dim}")
        share, size = shares.setdefault(dim, 1), self.group_size
        if share != -(-wholes[dim] // size):
            raise VerifyException(
                f"'{self.name}' op {dim} = {wholes[dim]} over {size} instances is "
                f"{-(-wholes[dim] // size)} each, got {share}"
            )
        if shares | {dim: 0} != wholes | {dim: 0}:
            raise VerifyException(
                f"'{self.name}' op keeps every dimension but {dim}: {part.type} and "
                f"{whole.type}"
            )

    def verify_root(self, root: int) -> None:
        """Check that `root` is an instance of the group."""
        if not 0 <= root < self.group_size:
            raise VerifyException(
                f"'{self.name}' op root {root} is not one of the group's "
                f"{self.group_size} instances"
            )


_PLACE = "(`from` $from^ `to` $to)? (`algorithm` $algorithm^)?"


def _properties(
    mesh: str, axes: Sequence[str], **more: Attribute | None
) -> dict[str, Attribute | None]:
    return {
        "mesh": SymbolRefAttr(mesh),
        "axes": ArrayAttr(StringAttr(axis) for axis in axes),
        **more,
    }


@irdl_op_definition
class AllReduceOp(CollectiveOp):
    """
    Reduce over the group; every instance gets the result.

    ```mlir
    %r = collective.all_reduce max %x on @edge ["cx", "cy"] from "GB" to "GB"
        : tensor<8xf16, #compound.dims<M>>
    ```
    """

    name = "collective.all_reduce"
    kind = prop_def(ReduceKindAttr)
    result = result_def()
    assembly_format = (
        f"$kind $input `on` $mesh $axes {_PLACE} attr-dict `:` type($input) "
        "`->` type($result)"
    )

    def __init__(
        self, kind: ReduceKind, input: SSAValue, mesh: str, axes: Sequence[str]
    ):
        super().__init__(
            operands=[input],
            result_types=[input.type],
            properties=_properties(mesh, axes, kind=ReduceKindAttr(kind)),
        )


@irdl_op_definition
class AllGatherOp(CollectiveOp):
    """
    Lay the shares of all instances side by side; every instance gets the whole.

    A dimension that the operand lacks is new: one element per instance.

    ```mlir
    %r = collective.all_gather "N" %x on @edge ["cx"]
        : tensor<8x4xf16, #compound.dims<M, N>> -> tensor<8x8xf16, #compound.dims<M, N>>
    ```
    """

    name = "collective.all_gather"
    dim = prop_def(StringAttr)
    result = result_def()
    assembly_format = (
        f"$dim $input `on` $mesh $axes {_PLACE} attr-dict `:` type($input) "
        "`->` type($result)"
    )

    def __init__(
        self,
        dim: str,
        input: SSAValue,
        mesh: str,
        axes: Sequence[str],
        result_type: Attribute,
    ):
        super().__init__(
            operands=[input],
            result_types=[result_type],
            properties=_properties(mesh, axes, dim=StringAttr(dim)),
        )

    def verify_shape(self) -> None:
        self.verify_split(self.result, self.input, self.dim.data)


@irdl_op_definition
class ReduceScatterOp(CollectiveOp):
    """
    Reduce over the group; every instance keeps its share along a dimension.

    ```mlir
    %r = collective.reduce_scatter add "N" %x on @edge ["cx"]
        : tensor<8x8xf16, #compound.dims<M, N>> -> tensor<8x4xf16, #compound.dims<M, N>>
    ```
    """

    name = "collective.reduce_scatter"
    kind = prop_def(ReduceKindAttr)
    dim = prop_def(StringAttr)
    result = result_def()
    assembly_format = (
        f"$kind $dim $input `on` $mesh $axes {_PLACE} attr-dict `:` type($input) "
        "`->` type($result)"
    )

    def __init__(
        self,
        kind: ReduceKind,
        dim: str,
        input: SSAValue,
        mesh: str,
        axes: Sequence[str],
        result_type: Attribute,
    ):
        super().__init__(
            operands=[input],
            result_types=[result_type],
            properties=_properties(
                mesh, axes, kind=ReduceKindAttr(kind), dim=StringAttr(dim)
            ),
        )

    def verify_shape(self) -> None:
        self.verify_split(self.input, self.result, self.dim.data)


@irdl_op_definition
class BroadcastOp(CollectiveOp):
    """
    Give every instance the value of the root.

    ```mlir
    %r = collective.broadcast %x root 0 on @edge ["cx"] : tensor<8xf16, ..>
        -> tensor<8xf16, ..>
    ```
    """

    name = "collective.broadcast"
    root = prop_def(IntegerAttr[I64])
    result = result_def()
    assembly_format = (
        f"$input `root` $root `on` $mesh $axes {_PLACE} attr-dict `:` type($input) "
        "`->` type($result)"
    )

    def __init__(self, input: SSAValue, root: int, mesh: str, axes: Sequence[str]):
        super().__init__(
            operands=[input],
            result_types=[input.type],
            properties=_properties(mesh, axes, root=IntegerAttr(root, i64)),
        )

    def verify_shape(self) -> None:
        super().verify_shape()
        self.verify_root(self.root.value.data)


@irdl_op_definition
class GatherOp(CollectiveOp):
    """
    Lay the shares side by side on the root; elsewhere the result is undefined.

    ```mlir
    %r = collective.gather "N" %x root 0 on @edge ["cx"]
        : tensor<8x4xf16, #compound.dims<M, N>> -> tensor<8x8xf16, #compound.dims<M, N>>
    ```
    """

    name = "collective.gather"
    dim = prop_def(StringAttr)
    root = prop_def(IntegerAttr[I64])
    result = result_def()
    assembly_format = (
        f"$dim $input `root` $root `on` $mesh $axes {_PLACE} attr-dict `:` "
        "type($input) `->` type($result)"
    )

    def __init__(
        self,
        dim: str,
        input: SSAValue,
        root: int,
        mesh: str,
        axes: Sequence[str],
        result_type: Attribute,
    ):
        super().__init__(
            operands=[input],
            result_types=[result_type],
            properties=_properties(
                mesh, axes, dim=StringAttr(dim), root=IntegerAttr(root, i64)
            ),
        )

    def verify_shape(self) -> None:
        self.verify_split(self.result, self.input, self.dim.data)
        self.verify_root(self.root.value.data)


@irdl_op_definition
class ScatterOp(CollectiveOp):
    """
    Give every instance its share, along a dimension, of the root's value.

    ```mlir
    %r = collective.scatter "N" %x root 0 on @edge ["cx"]
        : tensor<8x8xf16, #compound.dims<M, N>> -> tensor<8x4xf16, #compound.dims<M, N>>
    ```
    """

    name = "collective.scatter"
    dim = prop_def(StringAttr)
    root = prop_def(IntegerAttr[I64])
    result = result_def()
    assembly_format = (
        f"$dim $input `root` $root `on` $mesh $axes {_PLACE} attr-dict `:` "
        "type($input) `->` type($result)"
    )

    def __init__(
        self,
        dim: str,
        input: SSAValue,
        root: int,
        mesh: str,
        axes: Sequence[str],
        result_type: Attribute,
    ):
        super().__init__(
            operands=[input],
            result_types=[result_type],
            properties=_properties(
                mesh, axes, dim=StringAttr(dim), root=IntegerAttr(root, i64)
            ),
        )

    def verify_shape(self) -> None:
        self.verify_split(self.input, self.result, self.dim.data)
        self.verify_root(self.root.value.data)


@irdl_op_definition
class AllToAllOp(CollectiveOp):
    """
    Split along one dimension, and lay what arrives side by side along another.

    ```mlir
    %r = collective.all_to_all split "M" concat "N" %x on @edge ["cx"]
        : tensor<8x4xf16, #compound.dims<M, N>> -> tensor<4x8xf16, #compound.dims<M, N>>
    ```
    """

    name = "collective.all_to_all"
    split = prop_def(StringAttr)
    concat = prop_def(StringAttr)
    result = result_def()
    assembly_format = (
        f"`split` $split `concat` $concat $input `on` $mesh $axes {_PLACE} attr-dict "
        "`:` type($input) `->` type($result)"
    )

    def __init__(
        self,
        split: str,
        concat: str,
        input: SSAValue,
        mesh: str,
        axes: Sequence[str],
        result_type: Attribute,
    ):
        super().__init__(
            operands=[input],
            result_types=[result_type],
            properties=_properties(
                mesh, axes, split=StringAttr(split), concat=StringAttr(concat)
            ),
        )

    def verify_shape(self) -> None:
        before, after = extents_of(self.input), extents_of(self.result)
        split, concat, size = self.split.data, self.concat.data, self.group_size
        if split == concat or {split, concat} - set(names_of(self.input)):
            raise VerifyException(
                f"'{self.name}' op splits and lays side by side two different "
                f"dimensions of {self.input.type}"
            )
        if element_type_of(self.input) != element_type_of(self.result):
            raise VerifyException(f"'{self.name}' op keeps the element type")
        fits = (
            after.get(split) == -(-before[split] // size)
            and before[concat] == -(-after.get(concat, 0) // size)
            and after | {split: 0, concat: 0} == before | {split: 0, concat: 0}
        )
        if not fits:
            raise VerifyException(
                f"'{self.name}' op over {size} instances, {self.input.type} does not "
                f"become {self.result.type}"
            )


@irdl_op_definition
class SendOp(CollectiveOp):
    """
    Send the value `offset` instances along one axis; `wrap` makes the axis a ring.

    ```mlir
    %t = collective.send %x offset 1 wrap true on @edge ["cx"]
        : tensor<8xf16, #compound.dims<M>>
        -> !collective.token<tensor<8xf16, #compound.dims<M>>>
    ```
    """

    name = "collective.send"
    offset = prop_def(IntegerAttr[I64])
    wrap = prop_def(BoolAttr)
    token = result_def(TokenType)
    traits = traits_def(CollectiveAxes())
    assembly_format = (
        f"$input `offset` $offset `wrap` $wrap `on` $mesh $axes {_PLACE} attr-dict `:` "
        "type($input) `->` type($token)"
    )

    def __init__(
        self, input: SSAValue, offset: int, wrap: bool, mesh: str, axes: Sequence[str]
    ):
        super().__init__(
            operands=[input],
            result_types=[TokenType(input.type)],
            properties=_properties(
                mesh,
                axes,
                offset=IntegerAttr(offset, i64),
                wrap=IntegerAttr.from_bool(wrap),
            ),
        )

    def verify_shape(self) -> None:
        if len(self.axes) != 1:
            raise VerifyException(f"'{self.name}' op shifts along one axis")
        token = self.token.type
        assert isinstance(token, TokenType)
        if token.payload != self.input.type:
            raise VerifyException(
                f"'{self.name}' op token carries {token.payload}, not {self.input.type}"
            )


@irdl_op_definition
class RecvOp(IRDLOperation):
    """
    Receive what the matching send put on its way; without wrap, the edge gets zeros.

    ```mlir
    %r = collective.recv %t : !collective.token<tensor<8xf16, #compound.dims<M>>>
        -> tensor<8xf16, #compound.dims<M>>
    ```
    """

    name = "collective.recv"
    token = operand_def(TokenType)
    result = result_def()
    assembly_format = "$token attr-dict `:` type($token) `->` type($result)"

    def __init__(self, token: SSAValue):
        assert isinstance(token.type, TokenType)
        super().__init__(operands=[token], result_types=[token.type.payload])

    def verify_(self) -> None:
        token = self.token.type
        assert isinstance(token, TokenType)
        if token.payload != self.result.type:
            raise VerifyException(
                f"'{self.name}' op token carries {token.payload}, not "
                f"{self.result.type}"
            )
        if len(list(self.token.uses)) != 1:
            raise VerifyException(f"'{self.name}' op a token is received once")


Collective = Dialect(
    "collective",
    [
        MeshOp,
        SpmdOp,
        YieldOp,
        AllReduceOp,
        AllGatherOp,
        ReduceScatterOp,
        BroadcastOp,
        GatherOp,
        ScatterOp,
        AllToAllOp,
        SendOp,
        RecvOp,
    ],
    [AlgorithmAttr, TokenType],
)
