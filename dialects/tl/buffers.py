"""Buffers in global memory, which functions allocate for the kernels they launch."""

from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    base,
    irdl_op_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryAllocEffect, MemoryFreeEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from comet.dialects.tl.types import element_of, shape_of


@irdl_op_definition
class EmptyOp(IRDLOperation):
    """
    A new buffer in global memory, with undefined contents.

    ```mlir
    %c = tl.empty : tensor<256x512xf16>
    ```
    """

    name = "tl.empty"
    result = result_def(base(TensorType))
    traits = traits_def(MemoryAllocEffect())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, type: Attribute):
        super().__init__(result_types=[type])


@irdl_op_definition
class DeallocOp(IRDLOperation):
    """
    The end of a buffer: later ones may have its memory.

    ```mlir
    tl.dealloc %c : tensor<256x512xf16>
    ```
    """

    name = "tl.dealloc"
    buffer = operand_def(base(TensorType))
    traits = traits_def(MemoryFreeEffect())
    assembly_format = "$buffer attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue):
        super().__init__(operands=[buffer])

    def verify_(self) -> None:
        if not isinstance(self.buffer.owner, EmptyOp):
            raise VerifyException(
                f"'{self.name}' op deallocates a tensor that no tl.empty allocates; "
                "deallocate buffers only"
            )
        users = {use.operation for use in self.buffer.uses}
        after = self.next_op
        while after is not None:
            if after in users:
                raise VerifyException(
                    f"'{self.name}' op comes before {after.name}, which uses the "
                    "buffer; deallocate it after its last use"
                )
            after = after.next_op


@irdl_op_definition
class ViewOp(IRDLOperation):
    """
    A buffer in global memory with another shape, of the same elements in their order.

    ```mlir
    %flat = tl.view %o : tensor<2x4x64xf16> -> tensor<8x64xf16>
    ```
    """

    name = "tl.view"
    buffer = operand_def(base(TensorType))
    result = result_def(base(TensorType))
    traits = traits_def(Pure())
    assembly_format = "$buffer attr-dict `:` type($buffer) `->` type($result)"

    def __init__(self, buffer: SSAValue, type: Attribute):
        super().__init__(operands=[buffer], result_types=[type])

    def verify_(self) -> None:
        before, after = self.buffer.type, self.result.type
        same = element_of(before) == element_of(after)
        if not same or prod(shape_of(before)) != prod(shape_of(after)):
            raise VerifyException(
                f"'{self.name}' op {before} and {after} are not the same elements; "
                "give both as many elements of one type"
            )


@irdl_op_definition
class ClearOp(IRDLOperation):
    """
    Make all elements of a buffer 0, before the launches that follow.

    ```mlir
    tl.clear %g : tensor<256x512xf32>
    ```
    """

    name = "tl.clear"
    buffer = operand_def(base(TensorType))
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$buffer attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue):
        super().__init__(operands=[buffer])
