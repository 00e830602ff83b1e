"""The operations of the `tl` dialect that make and shape scalars and blocks."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    I64,
    AnyFloat,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, OpResult, SSAValue, SSAValues
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.bitwise_casts import is_power_of_two
from xdsl.utils.exceptions import VerifyException

from comet.dialects.tl.types import (
    ConstexprType,
    block_of,
    broadcast_shapes,
    element_of,
    shape_of,
)


def expect_type(op: Operation, what: str, found: Attribute, expected: Attribute):
    """Raise `VerifyException` unless the type `found` is the one expected."""
    if found != expected:
        raise VerifyException(f"'{op.name}' op {what} is {found}, expected {expected}")


def static_extents(op: Operation, dims: Sequence[SSAValue]) -> tuple[int, ...]:
    """
    Return the values of constexpr operands and of constants.

    Raises `VerifyException` for others.
    """
    extents: list[int] = []
    for dim in dims:
        if isinstance(dim.owner, ConstantOp):
            extents.append(int(dim.owner.value.value.data))
            continue
        if not isinstance(dim.type, ConstexprType):
            raise VerifyException(
                f"'{op.name}' op extent is {dim.type}, expected a !tl.constexpr"
            )
        extents.append(dim.type.value.data)
    return tuple(extents)


class InferredTypeOp(IRDLOperation, ABC):
    """An op whose operands and properties say of which type its only result is."""

    result = result_def()

    def __init__(
        self,
        operands: Sequence[SSAValue | Operation | Sequence[SSAValue] | None],
        properties: Mapping[str, Attribute] | None = None,
    ):
        super().__init__(
            operands=operands, properties=properties or {}, result_types=[i32]
        )
        self.results = SSAValues((OpResult(self.infer_type(), self, 0),))

    @abstractmethod
    def infer_type(self) -> Attribute:
        """Return the type of the result; raise `VerifyException` if there is none."""

    def verify_(self) -> None:
        expect_type(self, "result", self.result.type, self.infer_type())

    def broadcast(self, element: Attribute, *values: SSAValue) -> Attribute:
        """Return the type of a block of `element` to which `values` broadcast."""
        shapes = (shape_of(value.type) for value in values)
        return block_of(element, broadcast_shapes(self.name, *shapes))


class _GridOp(IRDLOperation):
    """A number that depends on one axis of the launch grid."""

    axis = prop_def(IntegerAttr[I64])
    result = result_def(i32)
    traits = traits_def(Pure())
    assembly_format = "$axis attr-dict"

    def __init__(self, axis: int):
        super().__init__(
            properties={"axis": IntegerAttr(axis, i64)}, result_types=[i32]
        )

    def verify_(self) -> None:
        if self.axis.value.data not in (0, 1, 2):
            raise VerifyException(f"'{self.name}' op a grid has the axes 0, 1 and 2")


@irdl_op_definition
class ProgramIdOp(_GridOp):
    """
    The index of this program along one axis of the launch grid.

    ```mlir
    %g0 = tl.program_id 0
    ```
    """

    name = "tl.program_id"


@irdl_op_definition
class NumProgramsOp(_GridOp):
    """
    The extent of the launch grid along one axis.

    ```mlir
    %n = tl.num_programs 0
    ```
    """

    name = "tl.num_programs"


@irdl_op_definition
class Swizzle2dOp(IRDLOperation):
    """
    L2 swizzle: `group` rows of the grid advance through the columns together.

    `row` and `column` are the program's position in a grid of `shape`, row by row; the
    results are its position when the grid is walked in groups of rows.

    ```mlir
    %i, %j = tl.swizzle2d %row, %column shape [32, 16] group 8
    ```
    """

    name = "tl.swizzle2d"
    row = operand_def(i32)
    column = operand_def(i32)
    shape = prop_def(DenseArrayBase[I64])
    group = prop_def(IntegerAttr[I64])
    new_row = result_def(i32)
    new_column = result_def(i32)
    traits = traits_def(Pure())
    assembly_format = "$row `,` $column `shape` $shape `group` $group attr-dict"

    def __init__(
        self,
        row: SSAValue | Operation,
        column: SSAValue | Operation,
        shape: tuple[int, int],
        group: int,
    ):
        super().__init__(
            operands=[row, column],
            properties={
                "shape": DenseArrayBase.from_list(i64, shape),
                "group": IntegerAttr(group, i64),
            },
            result_types=[i32, i32],
        )

    def verify_(self) -> None:
        shape = self.shape.get_values()
        if len(shape) != 2 or min(*shape, self.group.value.data) < 1:
            raise VerifyException(
                f"'{self.name}' op needs two positive extents and a positive group"
            )


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """
    A literal number.

    ```mlir
    %zero = tl.constant 0.0 : f32
    ```
    """

    name = "tl.constant"
    value = prop_def(IntegerAttr | FloatAttr)
    result = result_def(IntegerType | AnyFloat)
    traits = traits_def(Pure())

    def __init__(self, value: IntegerAttr | FloatAttr):
        super().__init__(properties={"value": value}, result_types=[value.type])

    @classmethod
    def of(cls, value: float, type: Attribute) -> "ConstantOp":
        """
        Make the constant of a scalar type from a Python number.

        A number beyond the range of a float type rounds to infinity, as casts do.
        Raises `ValueError` for anything but floats, i1, i8, i32 and i64.
        """
        if isinstance(type, AnyFloat):
            try:
                return cls(FloatAttr(value, type))
            except OverflowError:
                return cls(FloatAttr(math.copysign(math.inf, value), type))
        if type not in (i1, i8, i32, i64):
            raise ValueError(f"no constant of type {type}")
        return cls(IntegerAttr(int(value), cast("IntegerType", type)))

    @property
    def number(self) -> int | float:
        """The constant as a Python number; of i1, true is 1."""
        number = self.value.value.data
        return int(number != 0) if self.result.type == i1 else number

    def print(self, printer: Printer) -> None:
        printer.print_op_attributes(self.attributes)
        printer.print_string(" ")
        printer.print_attribute(self.value)

    @classmethod
    def parse(cls, parser: Parser) -> "ConstantOp":
        attributes = parser.parse_optional_attr_dict()
        value = parser.parse_attribute()
        if not isinstance(value, IntegerAttr | FloatAttr):
            parser.raise_error("tl.constant takes an integer or a float")
        op = cls(cast("IntegerAttr | FloatAttr", value))
        op.attributes |= attributes
        return op

    def verify_(self) -> None:
        expect_type(self, "result", self.result.type, self.value.type)


@irdl_op_definition
class ArangeOp(InferredTypeOp):
    """
    The block 0, 1, ..., end - 1.

    ```mlir
    %i = tl.arange %BLOCK_M : !tl.constexpr<64> -> tensor<64xi32>
    ```
    """

    name = "tl.arange"
    end = operand_def(ConstexprType)
    traits = traits_def(Pure())
    assembly_format = "$end attr-dict `:` type($end) `->` type($result)"

    def __init__(self, end: SSAValue):
        super().__init__([end])

    def infer_type(self) -> Attribute:
        return block_of(i32, static_extents(self, [self.end]))

    def verify_(self) -> None:
        (extent,) = static_extents(self, [self.end])
        if not is_power_of_two(extent):
            raise VerifyException(f"'{self.name}' op {extent} is not a power of two")
        super().verify_()


@irdl_op_definition
class ExpandDimsOp(InferredTypeOp):
    """
    Insert axes of extent 1 at the positions that they have in the result.

    ```mlir
    %rows = tl.expand_dims %i [1] : tensor<64xi32> -> tensor<64x1xi32>
    ```
    """

    name = "tl.expand_dims"
    input = operand_def()
    axes = prop_def(DenseArrayBase[I64])
    traits = traits_def(Pure())
    assembly_format = "$input $axes attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation, axes: Sequence[int]):
        super().__init__([input], {"axes": DenseArrayBase.from_list(i64, axes)})

    def infer_type(self) -> Attribute:
        shape = list(shape_of(self.input.type))
        for axis in sorted(self.axes.get_values()):
            if not 0 <= axis <= len(shape):
                raise VerifyException(f"'{self.name}' op axis {axis} is out of range")
            shape.insert(axis, 1)
        return block_of(element_of(self.input.type), shape)


@irdl_op_definition
class BroadcastToOp(InferredTypeOp):
    """
    Repeat a block along its axes of extent 1.

    ```mlir
    %y = tl.broadcast_to %x to %BLOCK_M, %BLOCK_N : tensor<64x1xf32>,
      !tl.constexpr<64>, !tl.constexpr<32> -> tensor<64x32xf32>
    ```
    """

    name = "tl.broadcast_to"
    input = operand_def()
    dims = var_operand_def(ConstexprType)
    traits = traits_def(Pure())
    assembly_format = (
        "$input `to` $dims attr-dict "
        "`:` type($input) `,` type($dims) `->` type($result)"
    )

    def __init__(self, input: SSAValue | Operation, dims: Sequence[SSAValue]):
        super().__init__([input, dims])

    def infer_type(self) -> Attribute:
        shape = static_extents(self, self.dims)
        if broadcast_shapes(self.name, shape_of(self.input.type), shape) != shape:
            raise VerifyException(f"'{self.name}' op the input is larger than {shape}")
        return block_of(element_of(self.input.type), shape)


@irdl_op_definition
class PermuteOp(InferredTypeOp):
    """
    Reorder the axes of a block; result axis i is input axis `order[i]`.

    ```mlir
    %y = tl.permute %x [1, 0] : tensor<64x32xf16> -> tensor<32x64xf16>
    ```
    """

    name = "tl.permute"
    input = operand_def()
    order = prop_def(DenseArrayBase[I64])
    traits = traits_def(Pure())
    assembly_format = "$input $order attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation, order: Sequence[int]):
        super().__init__([input], {"order": DenseArrayBase.from_list(i64, order)})

    def infer_type(self) -> Attribute:
        shape, order = shape_of(self.input.type), self.order.get_values()
        if sorted(order) != list(range(len(shape))):
            raise VerifyException(f"'{self.name}' op the order is no permutation")
        return block_of(element_of(self.input.type), [shape[axis] for axis in order])


@irdl_op_definition
class FullOp(InferredTypeOp):
    """
    A block of one value.

    ```mlir
    %acc = tl.full 0.0 : f32 dims %BLOCK_M, %BLOCK_N : !tl.constexpr<64>,
      !tl.constexpr<32> -> tensor<64x32xf32>
    ```
    """

    name = "tl.full"
    dims = var_operand_def(ConstexprType)
    value = prop_def(IntegerAttr | FloatAttr)
    traits = traits_def(Pure())
    assembly_format = "$value `dims` $dims attr-dict `:` type($dims) `->` type($result)"

    def __init__(self, value: FloatAttr | IntegerAttr, dims: Sequence[SSAValue]):
        super().__init__([dims], {"value": value})

    def infer_type(self) -> Attribute:
        return block_of(self.value.type, static_extents(self, self.dims))
