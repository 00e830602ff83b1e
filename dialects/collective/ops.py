"""The collectives: what a group of instances does together with its local values."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects.builtin import I64, BoolAttr, IntegerAttr, StringAttr
from xdsl.ir import SSAValue
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
    GROUP,
    CollectiveAxes,
    CollectiveOp,
    RootedOp,
    TokenType,
)
from comet.dialects.compound import ReduceKindAttr
from comet.dialects.compound.dims import ceil_div, element_type_of, extents_of, names_of


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
    assembly_format = f"$kind $input {GROUP} type($result)"


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
    assembly_format = f"$dim $input {GROUP} type($result)"

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
    assembly_format = f"$kind $dim $input {GROUP} type($result)"

    def verify_shape(self) -> None:
        self.verify_split(self.input, self.result, self.dim.data)


@irdl_op_definition
class BroadcastOp(RootedOp):
    """
    Send the value of the root to every instance.

    ```mlir
    %r = collective.broadcast %x root 0 on @edge ["cx"] : tensor<8xf16, ..>
        -> tensor<8xf16, ..>
    ```
    """

    name = "collective.broadcast"
    result = result_def()
    assembly_format = f"$input `root` $root {GROUP} type($result)"


@irdl_op_definition
class RootReduceOp(RootedOp):
    """
    Reduce over the group to the root; elsewhere the result is undefined.

    ```mlir
    %r = collective.reduce add %x root 0 on @edge ["cx"] : tensor<8xf16, ..>
        -> tensor<8xf16, ..>
    ```
    """

    name = "collective.reduce"
    kind = prop_def(ReduceKindAttr)
    result = result_def()
    assembly_format = f"$kind $input `root` $root {GROUP} type($result)"


@irdl_op_definition
class GatherOp(RootedOp):
    """
    Concatenate the shards on the root; elsewhere the result is undefined.

    ```mlir
    %r = collective.gather "N" %x root 0 on @edge ["cx"]
        : tensor<8x4xf16, #compound.dims<M, N>> -> tensor<8x8xf16, #compound.dims<M, N>>
    ```
    """

    name = "collective.gather"
    dim = prop_def(StringAttr)
    result = result_def()
    assembly_format = f"$dim $input `root` $root {GROUP} type($result)"

    def verify_shape(self) -> None:
        self.verify_split(self.result, self.input, self.dim.data)


@irdl_op_definition
class ScatterOp(RootedOp):
    """
    Send every instance its shard, along a dimension, of the root's value.

    ```mlir
    %r = collective.scatter "N" %x root 0 on @edge ["cx"]
        : tensor<8x8xf16, #compound.dims<M, N>> -> tensor<8x4xf16, #compound.dims<M, N>>
    ```
    """

    name = "collective.scatter"
    dim = prop_def(StringAttr)
    result = result_def()
    assembly_format = f"$dim $input `root` $root {GROUP} type($result)"

    def verify_shape(self) -> None:
        self.verify_split(self.input, self.result, self.dim.data)


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
    assembly_format = f"`split` $split `concat` $concat $input {GROUP} type($result)"

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
            after.get(split) == ceil_div(before[split], size)
            and shard == ceil_div(after.get(concat, 0), size)
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
    assembly_format = f"$input `offset` $offset `wrap` $wrap {GROUP} type($token)"

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
        if not self.token.has_one_use():
            raise VerifyException(f"'{self.name}' op a token is received once")
