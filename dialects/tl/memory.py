"""The operations of the `tl` dialect that address, read and write global memory."""

from abc import ABC

from xdsl.dialects.builtin import IntegerType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from comet.dialects.tl.blocks import InferredTypeOp, expect_type
from comet.dialects.tl.types import (
    CacheModifierType,
    PtrType,
    block_of,
    broadcast_shapes,
    element_of,
    shape_of,
)


def pointee_of(op: Operation, pointer: SSAValue) -> Attribute:
    """Return the type that a pointer or block of pointers points to, or raise."""
    element = element_of(pointer.type)
    if not isinstance(element, PtrType):
        raise VerifyException(
            f"'{op.name}' op address is {pointer.type}, expected !tl.ptr"
        )
    return element.pointee


def verify_mask(op: Operation, mask: SSAValue | None, shape: tuple[int, ...]) -> None:
    """Raise `VerifyException` unless the mask broadcasts to `shape`."""
    if mask is None:
        return
    expect_type(op, "element of the mask", element_of(mask.type), i1)
    if broadcast_shapes(op.name, shape_of(mask.type), shape) != shape:
        raise VerifyException(f"'{op.name}' op mask {mask.type} is larger than {shape}")


def verify_written(
    op: Operation, pointer: SSAValue, value: SSAValue, mask: SSAValue | None
) -> None:
    """Raise `VerifyException` unless a masked `value` is what `pointer` points to."""
    pointee, shape = pointee_of(op, pointer), shape_of(pointer.type)
    expect_type(op, "value", value.type, block_of(pointee, shape))
    verify_mask(op, mask, shape)


@irdl_op_definition
class AddPtrOp(InferredTypeOp):
    """
    Advance pointers by offsets counted in elements; both broadcast.

    ```mlir
    %p = tl.addptr %a, %offs : (!tl.ptr<f16>, tensor<64xi32>) -> tensor<64x!tl.ptr<f16>>
    ```
    """

    name = "tl.addptr"
    ptr = operand_def()
    offset = operand_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$ptr `,` $offset attr-dict `:` functional-type(operands, results)"
    )

    def __init__(self, ptr: SSAValue | Operation, offset: SSAValue | Operation):
        super().__init__([ptr, offset])

    def infer_type(self) -> Attribute:
        return self.broadcast(element_of(self.ptr.type), self.ptr, self.offset)

    def verify_(self) -> None:
        pointee_of(self, self.ptr)
        if not isinstance(element_of(self.offset.type), IntegerType):
            raise VerifyException(f"'{self.name}' op offset is {self.offset.type}")
        super().verify_()


class LoadLike(InferredTypeOp, ABC):
    """Reads a block; where an optional mask fails, the value is `other`."""

    ptr = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect())

    def infer_type(self) -> Attribute:
        return block_of(pointee_of(self, self.ptr), shape_of(self.ptr.type))

    def verify_(self) -> None:
        super().verify_()
        verify_mask(self, self.mask, shape_of(self.ptr.type))
        if self.other is not None and self.mask is None:
            raise VerifyException(f"'{self.name}' op has `other` but no mask")
        if self.other is not None:
            pointee = pointee_of(self, self.ptr)
            expect_type(self, "`other`", self.other.type, pointee)


@irdl_op_definition
class LoadOp(LoadLike):
    """
    Read a block; where the mask fails, the value is `other`.

    ```mlir
    %x = tl.load %p mask %m : tensor<64xi1> other %zero : f16
      : tensor<64x!tl.ptr<f16>> -> tensor<64xf16>
    ```
    """

    name = "tl.load"
    assembly_format = (
        "$ptr (`mask` $mask^ `:` type($mask))? (`other` $other^ `:` type($other))? "
        "attr-dict `:` type($ptr) `->` type($result)"
    )

    def __init__(
        self,
        ptr: SSAValue | Operation,
        mask: SSAValue | None = None,
        other: SSAValue | Operation | None = None,
    ):
        super().__init__([ptr, mask, other])


@irdl_op_definition
class StoreOp(IRDLOperation):
    """
    Write a block where the mask holds.

    `cache` is the cache modifier; stores that other ranks wait for are written through.

    ```mlir
    tl.store %p, %x mask %m : tensor<64xi1> : tensor<64x!tl.ptr<f16>>, tensor<64xf16>
    ```
    """

    name = "tl.store"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    cache = opt_operand_def(CacheModifierType())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$ptr `,` $value (`mask` $mask^ `:` type($mask))? (`cache` $cache^)? "
        "attr-dict `:` type($ptr) `,` type($value)"
    )

    def __init__(
        self,
        ptr: SSAValue | Operation,
        value: SSAValue | Operation,
        mask: SSAValue | None = None,
        cache: SSAValue | None = None,
    ):
        super().__init__(operands=[ptr, value, mask, cache])

    def verify_(self) -> None:
        verify_written(self, self.ptr, self.value, self.mask)


@irdl_op_definition
class AtomicAddOp(IRDLOperation):
    """
    Add a block to memory where the mask holds, each element at once.

    Programs of one GPU may add to one element, in any order: the addition is relaxed
    and of gpu scope, so it orders nothing else.

    ```mlir
    tl.atomic_add %p, %x mask %m : tensor<64xi1>
      : tensor<64x!tl.ptr<f32>>, tensor<64xf32>
    ```
    """

    name = "tl.atomic_add"
    ptr = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$ptr `,` $value (`mask` $mask^ `:` type($mask))? "
        "attr-dict `:` type($ptr) `,` type($value)"
    )

    def __init__(self, ptr: SSAValue, value: SSAValue, mask: SSAValue | None = None):
        super().__init__(operands=[ptr, value, mask])

    def verify_(self) -> None:
        verify_written(self, self.ptr, self.value, self.mask)


@irdl_op_definition
class DebugBarrierOp(IRDLOperation):
    """
    Wait for all threads of the program: later loads see its earlier stores.

    ```mlir
    tl.debug_barrier
    ```
    """

    name = "tl.debug_barrier"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__()
