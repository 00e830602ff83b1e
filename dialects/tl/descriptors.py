"""
Tensor descriptors: what the hardware needs to copy a block by itself.

On Hopper the tensor memory accelerator (TMA) computes the addresses, and fills what is
beyond the end of the tensor with zeros.
"""

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import AnyFloat, IntegerType, TensorType
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from comet.dialects.tl.blocks import InferredTypeOp, static_extents
from comet.dialects.tl.memory import pointee_of
from comet.dialects.tl.types import block_of, element_of, shape_of

MAX_ROWS = 2**31 - 1
"""The most elements along an axis: indices are i32."""
MAX_AXES = 5
"""The most axes of a descriptor: CUDA driver API, cuTensorMapEncodeTiled."""
MIN_BYTES = 16
"""The least bytes of a block along the last axis, from the same source."""


@irdl_attr_definition
class DescriptorType(ParametrizedAttribute, TypeAttribute):
    """A descriptor for copies of blocks: `!tl.descriptor<tensor<64x32xf16>>`."""

    name = "tl.descriptor"

    block: TensorType[Attribute]

    def verify(self) -> None:
        shape, element = self.block.get_shape(), self.block.element_type
        if not isinstance(element, AnyFloat | IntegerType):
            raise VerifyException(f"!tl.descriptor copies numbers, not {element}")
        if not 1 <= len(shape) <= MAX_AXES:
            raise VerifyException(
                f"!tl.descriptor has 1 to {MAX_AXES} axes, not {len(shape)}"
            )
        if shape[-1] * element.bitwidth < 8 * MIN_BYTES:
            raise VerifyException(
                f"!tl.descriptor copies at least {MIN_BYTES} bytes along its last "
                f"axis, not {shape[-1]} elements of {element}"
            )


@irdl_op_definition
class MakeDescriptorOp(InferredTypeOp):
    """
    Describe a tensor in memory, and the block that is copied at a time.

    The distance of neighbours is counted in elements; along the last axis it is 1.

    ```mlir
    %d = tl.make_descriptor %p shape(%m, %k) strides(%k) block(%bm, %bk) : ...
    ```
    """

    name = "tl.make_descriptor"
    ptr = operand_def()
    shape = var_operand_def()
    strides = var_operand_def()
    block = var_operand_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())
    assembly_format = (
        "$ptr `shape` `(` $shape `)` `strides` `(` $strides `)` `block` `(` $block `)` "
        "attr-dict `:` type($ptr) `[` type($shape) `]` `[` type($strides) `]` "
        "`[` type($block) `]` `->` type($result)"
    )

    def __init__(
        self,
        ptr: SSAValue,
        shape: Sequence[SSAValue],
        strides: Sequence[SSAValue],
        block: Sequence[SSAValue],
    ):
        super().__init__([ptr, shape, strides, block])

    def infer_type(self) -> Attribute:
        element, shape = pointee_of(self, self.ptr), static_extents(self, self.block)
        return DescriptorType(TensorType(element, shape))

    def verify_(self) -> None:
        axes = len(self.block)
        if len(self.shape) != axes or len(self.strides) != axes - 1:
            raise VerifyException(
                f"'{self.name}' op of {axes} axes has {len(self.shape)} extents and "
                f"{len(self.strides)} strides, expected {axes} and {axes - 1}"
            )
        super().verify_()


@irdl_op_definition
class DescriptorLoadOp(InferredTypeOp):
    """
    Read the block whose first element is at these indices; zeros are beyond the end.

    ```mlir
    %x = tl.descriptor_load %d[%i, %j] : ...
    ```
    """

    name = "tl.descriptor_load"
    descriptor = operand_def(DescriptorType)
    indices = var_operand_def()
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$descriptor `[` $indices `]` attr-dict `:` functional-type(operands, results)"
    )

    def __init__(self, descriptor: SSAValue, indices: Sequence[SSAValue]):
        super().__init__([descriptor, indices])

    def infer_type(self) -> Attribute:
        assert isinstance(self.descriptor.type, DescriptorType)
        return self.descriptor.type.block

    def verify_(self) -> None:
        assert isinstance(self.descriptor.type, DescriptorType)
        verify_indices(self, self.indices, self.descriptor.type.block)
        super().verify_()


@irdl_op_definition
class DescriptorStoreOp(IRDLOperation):
    """
    Write a block whose first element is at these indices, but not beyond the end.

    ```mlir
    tl.descriptor_store %d[%i, %j], %x : ...
    ```
    """

    name = "tl.descriptor_store"
    descriptor = operand_def(DescriptorType)
    indices = var_operand_def()
    value = operand_def()
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$descriptor `[` $indices `]` `,` $value attr-dict `:` type($descriptor) "
        "`[` type($indices) `]` `,` type($value)"
    )

    def __init__(
        self, descriptor: SSAValue, indices: Sequence[SSAValue], value: SSAValue
    ):
        super().__init__(operands=[descriptor, indices, value])

    def verify_(self) -> None:
        assert isinstance(self.descriptor.type, DescriptorType)
        block = self.descriptor.type.block
        verify_indices(self, self.indices, block)
        if self.value.type != block:
            raise VerifyException(
                f"'{self.name}' op stores blocks of {block}, not {self.value.type}"
            )


def verify_indices(
    op: Operation, indices: Sequence[SSAValue], block: TensorType[Attribute]
) -> None:
    """Check that there is an integer for each axis of a block."""
    axes = len(shape_of(block))
    if len(indices) != axes:
        raise VerifyException(
            f"'{op.name}' op has {len(indices)} indices for {axes} axes"
        )
    for index in indices:
        if not isinstance(element_of(index.type), IntegerType):
            raise VerifyException(f"'{op.name}' op index is {index.type}")


@irdl_op_definition
class SplitOp(IRDLOperation):
    """
    Return both blocks that are side by side along the last axis, which has two.

    ```mlir
    %left, %right = tl.split %x : tensor<64x32x2xf16> -> tensor<64x32xf16>
    ```
    """

    name = "tl.split"
    input = operand_def()
    left = result_def()
    right = result_def()
    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` functional-type(operands, results)"

    def __init__(self, input: SSAValue | Operation):
        value = SSAValue.get(input)
        half = _half_of(value)
        super().__init__(operands=[value], result_types=[half, half])

    def verify_(self) -> None:
        if shape_of(self.input.type)[-1:] != (2,):
            raise VerifyException(
                f"'{self.name}' op divides a last axis of two, not {self.input.type}"
            )
        half = _half_of(self.input)
        if self.left.type != half or self.right.type != half:
            raise VerifyException(
                f"'{self.name}' op makes two blocks of {half}, not {self.left.type} "
                f"and {self.right.type}"
            )


def _half_of(value: SSAValue) -> Attribute:
    """Return the type of a block without its last axis."""
    return block_of(element_of(value.type), shape_of(value.type)[:-1])


@irdl_op_definition
class ReshapeOp(InferredTypeOp):
    """
    Return a block with the same elements, in the same order, in another shape.

    ```mlir
    %y = tl.reshape %x to(%m, %n) : ...
    ```
    """

    name = "tl.reshape"
    input = operand_def()
    dims = var_operand_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$input `to` `(` $dims `)` attr-dict `:` functional-type(operands, results)"
    )

    def __init__(self, input: SSAValue | Operation, dims: Sequence[SSAValue]):
        super().__init__([input, dims])

    def infer_type(self) -> Attribute:
        return block_of(element_of(self.input.type), static_extents(self, self.dims))

    def verify_(self) -> None:
        before, after = (prod(shape_of(v.type)) for v in (self.input, self.result))
        if before != after:
            raise VerifyException(
                f"'{self.name}' op has {before} elements and makes {after} of them"
            )
        super().verify_()
