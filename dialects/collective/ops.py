"""The collectives: what a group of instances does together with its local values."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import (
    I64,
    BoolAttr,
    IntegerAttr,
    StringAttr,
    i64,
)
from xdsl.ir import (
    Attribute,
    SSAValue,
)
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.utils.exceptions import VerifyException

from comet.dialects.collective.base import (
    LEVELS,
    CollectiveAxes,
    CollectiveOp,
    TokenType,
    collective_properties,
)
from comet.dialects.compound import ReduceKind, ReduceKindAttr
from comet.dialects.compound.dims import element_type_of, extents_of, names_of


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
        f"$kind $input `on` $mesh $axes {LEVELS} attr-dict `:` type($input) "
        "`->` type($result)"
    )

    def __init__(
        self, kind: ReduceKind, input: SSAValue, mesh: str, axes: Sequence[str]
    ):
        super().__init__(
            operands=[input],
            result_types=[input.type],
            properties=collective_properties(mesh, axes, kind=ReduceKindAttr(kind)),
        )


@irdl_op_definition
class AllGatherOp(CollectiveOp):
    """
    Concatenate the shards of all instances; every instance gets the whole.

    A dimension that the operand does not have is new: one element per instance.

    ```mlir
    %r = collective.all_gather "N" %x on @edge ["cx"]
        : tensor<8x4xf16, #compound.dims<M, N>> -> tensor<8x8xf16, #compound.dims<M, N>>
    ```
    """

    name = "collective.all_gather"
    dim = prop_def(StringAttr)
    result = result_def()
    assembly_format = (
        f"$dim $input `on` $mesh $axes {LEVELS} attr-dict `:` type($input) "
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
            properties=collective_properties(mesh, axes, dim=StringAttr(dim)),
        )

    def verify_shape(self) -> None:
        self.verify_split(self.result, self.input, self.dim.data)


@irdl_op_definition
class ReduceScatterOp(CollectiveOp):
    """
    Reduce over the group; every instance keeps its shard along a dimension.

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
        f"$kind $dim $input `on` $mesh $axes {LEVELS} attr-dict `:` type($input) "
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
            properties=collective_properties(
                mesh, axes, kind=ReduceKindAttr(kind), dim=StringAttr(dim)
            ),
        )

    def verify_shape(self) -> None:
        self.verify_split(self.input, self.result, self.dim.data)


@irdl_op_definition
class BroadcastOp(CollectiveOp):
    """
    Send the value of the root to every instance.

    ```mlir
    %r = collective.broadcast %x root 0 on @edge ["cx"] : tensor<8xf16, ..>
        -> tensor<8xf16, ..>
    ```
    """

    name = "collective.broadcast"
    root = prop_def(IntegerAttr[I64])
    result = result_def()
    assembly_format = (
        f"$input `root` $root `on` $mesh $axes {LEVELS} attr-dict `:` type($input) "
        "`->` type($result)"
    )

    def __init__(self, input: SSAValue, root: int, mesh: str, axes: Sequence[str]):
        super().__init__(
            operands=[input],
            result_types=[input.type],
            properties=collective_properties(mesh, axes, root=IntegerAttr(root, i64)),
        )

    def verify_shape(self) -> None:
        super().verify_shape()
        self.verify_root(self.root.value.data)


@irdl_op_definition
class RootReduceOp(CollectiveOp):
    """
    Reduce over the group to the root; elsewhere the result is undefined.

    ```mlir
    %r = collective.reduce add %x root 0 on @edge ["cx"] : tensor<8xf16, ..>
        -> tensor<8xf16, ..>
    ```
    """

    name = "collective.reduce"
    kind = prop_def(ReduceKindAttr)
    root = prop_def(IntegerAttr[I64])
    result = result_def()
    assembly_format = (
        f"$kind $input `root` $root `on` $mesh $axes {LEVELS} attr-dict `:` "
        "type($input) `->` type($result)"
    )

    def __init__(
        self,
        kind: ReduceKind,
        input: SSAValue,
        root: int,
        mesh: str,
        axes: Sequence[str],
    ):
        super().__init__(
            operands=[input],
            result_types=[input.type],
            properties=collective_properties(
                mesh, axes, kind=ReduceKindAttr(kind), root=IntegerAttr(root, i64)
            ),
        )

    def verify_shape(self) -> None:
        super().verify_shape()
        self.verify_root(self.root.value.data)


class RootedSplitOp(CollectiveOp, ABC):
    """A collective between the whole on the root and a shard on every instance."""

    dim = prop_def(StringAttr)
    root = prop_def(IntegerAttr[I64])
    result = result_def()
    assembly_format = (
        f"$dim $input `root` $root `on` $mesh $axes {LEVELS} attr-dict `:` "
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
            properties=collective_properties(
                mesh, axes, dim=StringAttr(dim), root=IntegerAttr(root, i64)
            ),
        )


@irdl_op_definition
class GatherOp(RootedSplitOp):
    """
    Concatenate the shards on the root; elsewhere the result is undefined.

    ```mlir
    %r = collective.gather "N" %x root 0 on @edge ["cx"]
        : tensor<8x4xf16, #compound.dims<M, N>> -> tensor<8x8xf16, #compound.dims<M, N>>
    ```
    """

    name = "collective.gather"

    def verify_shape(self) -> None:
        self.verify_split(self.result, self.input, self.dim.data)
        self.verify_root(self.root.value.data)


@irdl_op_definition
class ScatterOp(RootedSplitOp):
    """
    Send every instance its shard, along a dimension, of the root's value.

    ```mlir
    %r = collective.scatter "N" %x root 0 on @edge ["cx"]
        : tensor<8x8xf16, #compound.dims<M, N>> -> tensor<8x4xf16, #compound.dims<M, N>>
    ```
    """

    name = "collective.scatter"

    def verify_shape(self) -> None:
        self.verify_split(self.input, self.result, self.dim.data)
        self.verify_root(self.root.value.data)


@irdl_op_definition
class AllToAllOp(CollectiveOp):
    """
    Split along one dimension, and concatenate what arrives along another.

    A `concat` dimension that the operand does not have is new: one element per
    instance.

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
        f"`split` $split `concat` $concat $input `on` $mesh $axes {LEVELS} attr-dict "
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
            properties=collective_properties(
                mesh, axes, split=StringAttr(split), concat=StringAttr(concat)
            ),
        )

    def verify_shape(self) -> None:
        before, after = extents_of(self.input), extents_of(self.result)
        split, concat, size = self.split.data, self.concat.data, self.group_size
        if split == concat or split not in names_of(self.input):
            raise VerifyException(
                f"'{self.name}' op splits one dimension of {self.input.type} and "
                "concatenates along another one or a new one"
            )
        if element_type_of(self.input) != element_type_of(self.result):
            raise VerifyException(f"'{self.name}' op keeps the element type")
        shard = before.setdefault(concat, 1)
        fits = (
            after.get(split) == -(-before[split] // size)
            and shard == -(-after.get(concat, 0) // size)
            and after | {split: 0, concat: 0} == before | {split: 0, concat: 0}
        )
        if not fits:
            raise VerifyException(
                f"'{self.name}' op over {size} instances, {self.input.type} does not "
                f"become {self.result.type}"
            )


MovingCollective: TypeAlias = AllGatherOp | AllToAllOp
"""A collective that computes nothing: a kernel of a library, or a channel."""


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
        f"$input `offset` $offset `wrap` $wrap `on` $mesh $axes {LEVELS} attr-dict `:` "
        "type($input) `->` type($token)"
    )

    def __init__(
        self, input: SSAValue, offset: int, wrap: bool, mesh: str, axes: Sequence[str]
    ):
        super().__init__(
            operands=[input],
            result_types=[TokenType(input.type)],
            properties=collective_properties(
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
    Receive what the matching send sent; without wrap, the edge gets zeros.

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
