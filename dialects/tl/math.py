"""The operations of the `tl` dialect that compute: elementwise, reductions, dots."""

from xdsl.dialects.builtin import (
    I64,
    AnyFloat,
    IntegerAttr,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from comet.dialects.tl.blocks import InferredTypeOp, expect_type
from comet.dialects.tl.types import (
    BinaryKind,
    BinaryKindAttr,
    CompareKind,
    CompareKindAttr,
    ConstexprType,
    Precision,
    PrecisionAttr,
    PtrType,
    ReduceKind,
    ReduceKindAttr,
    UnaryKind,
    UnaryKindAttr,
    block_of,
    element_of,
    shape_of,
)

MASK_KINDS = (BinaryKind.AND, BinaryKind.OR)
INTEGER_KINDS = (BinaryKind.FLOORDIV, BinaryKind.MOD)


MIN_DOT_EXTENT = 16
"""The smallest extent of each dimension of `tl.dot`."""

MOST_THREADS = 1024
"""The most threads of a program: CUDA and HIP start no larger blocks on any GPU."""


@irdl_op_definition
class UnaryOp(InferredTypeOp):
    """
    An elementwise function of one operand.

    ```mlir
    %y = tl.unary exp %x : tensor<64xf32>
    ```
    """

    name = "tl.unary"
    kind = prop_def(UnaryKindAttr)
    input = operand_def()
    traits = traits_def(Pure())
    assembly_format = "$kind $input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, kind: UnaryKind, input: SSAValue | Operation):
        super().__init__([input], {"kind": UnaryKindAttr(kind)})

    def infer_type(self) -> Attribute:
        return self.input.type

    def verify_(self) -> None:
        if not isinstance(element_of(self.input.type), AnyFloat):
            raise VerifyException(
                f"'{self.name}' op {self.kind.data} of {self.input.type}, "
                "expected floats"
            )
        super().verify_()


@irdl_op_definition
class BinaryOp(InferredTypeOp):
    """
    An elementwise function of two operands, which broadcast as in Triton.

    Their element types are equal; a constexpr on the right takes any integer type.

    ```mlir
    %z = tl.binary add %x, %y : (tensor<64x1xf32>, f32) -> tensor<64x1xf32>
    ```
    """

    name = "tl.binary"
    kind = prop_def(BinaryKindAttr)
    lhs = operand_def()
    rhs = operand_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$kind $lhs `,` $rhs attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self, kind: BinaryKind, lhs: SSAValue | Operation, rhs: SSAValue | Operation
    ):
        super().__init__([lhs, rhs], {"kind": BinaryKindAttr(kind)})

    def infer_type(self) -> Attribute:
        return self.broadcast(element_of(self.lhs.type), self.lhs, self.rhs)

    def verify_(self) -> None:
        kind, element = self.kind.data, element_of(self.lhs.type)
        if not isinstance(self.rhs.type, ConstexprType) or isinstance(
            element, AnyFloat
        ):
            expect_type(self, "element of rhs", element_of(self.rhs.type), element)
        if (element == i1) != (kind in MASK_KINDS):
            raise VerifyException(f"'{self.name}' op {kind} of {element}")
        if kind in INTEGER_KINDS and isinstance(element, AnyFloat):
            raise VerifyException(f"'{self.name}' op {kind} of {element}")
        super().verify_()


@irdl_op_definition
class CmpOp(InferredTypeOp):
    """
    A comparison of two operands, which broadcast; the result is a mask.

    ```mlir
    %mask = tl.cmp lt %offs, %N : (tensor<64xi32>, i32) -> tensor<64xi1>
    ```
    """

    name = "tl.cmp"
    kind = prop_def(CompareKindAttr)
    lhs = operand_def()
    rhs = operand_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$kind $lhs `,` $rhs attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self, kind: CompareKind, lhs: SSAValue | Operation, rhs: SSAValue | Operation
    ):
        super().__init__([lhs, rhs], {"kind": CompareKindAttr(kind)})

    def infer_type(self) -> Attribute:
        return self.broadcast(i1, self.lhs, self.rhs)

    def verify_(self) -> None:
        element = element_of(self.lhs.type)
        expect_type(self, "element of rhs", element_of(self.rhs.type), element)
        super().verify_()


@irdl_op_definition
class WhereOp(InferredTypeOp):
    """
    `then` where the mask holds, `otherwise` elsewhere; all three broadcast.

    ```mlir
    %y = tl.where %mask, %x, %ninf : (tensor<64xi1>, tensor<64xf32>, f32)
      -> tensor<64xf32>
    ```
    """

    name = "tl.where"
    mask = operand_def()
    then = operand_def()
    otherwise = operand_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$mask `,` $then `,` $otherwise attr-dict "
        "`:` functional-type(operands, results)"
    )

    def __init__(
        self,
        mask: SSAValue | Operation,
        then: SSAValue | Operation,
        otherwise: SSAValue | Operation,
    ):
        super().__init__([mask, then, otherwise])

    def infer_type(self) -> Attribute:
        return self.broadcast(element_of(self.then.type), *self.operands)

    def verify_(self) -> None:
        expect_type(self, "element of the mask", element_of(self.mask.type), i1)
        element = element_of(self.then.type)
        expect_type(
            self, "element of the other case", element_of(self.otherwise.type), element
        )
        super().verify_()


@irdl_op_definition
class RandOp(InferredTypeOp):
    """
    Numbers of [0, 1), in f32, by Philox 4x32-10; seed and offset broadcast.

    Triton counts in 64 bits for offsets of i64, before version 3.9 by another Philox.

    ```mlir
    %u = tl.rand %seed, %offs : (i64, tensor<64xi32>) -> tensor<64xf32>
    ```
    """

    name = "tl.rand"
    seed = operand_def()
    offset = operand_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$seed `,` $offset attr-dict `:` functional-type(operands, results)"
    )

    def __init__(self, seed: SSAValue | Operation, offset: SSAValue | Operation):
        super().__init__([seed, offset])

    def infer_type(self) -> Attribute:
        return self.broadcast(f32, *self.operands)

    def verify_(self) -> None:
        seed = element_of(self.seed.type)
        if seed not in (i32, i64):
            expect_type(self, "element of the seed", seed, i64)
        expect_type(self, "element of the offset", element_of(self.offset.type), i32)
        super().verify_()


@irdl_op_definition
class CastOp(IRDLOperation):
    """
    Convert the element type.

    ```mlir
    %y = tl.cast %x : tensor<64xf16> -> tensor<64xf32>
    ```
    """

    name = "tl.cast"
    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation, element: Attribute):
        input = SSAValue.get(input)
        super().__init__(
            operands=[input],
            result_types=[block_of(element, shape_of(input.type))],
        )

    def verify_(self) -> None:
        element = element_of(self.result.type)
        if isinstance(element, PtrType):
            raise VerifyException(f"'{self.name}' op cannot cast to {element}")
        expected = block_of(element, shape_of(self.input.type))
        expect_type(self, "result", self.result.type, expected)


@irdl_op_definition
class ReduceOp(InferredTypeOp):
    """
    Reduce one axis of a block; the only axis of a block gives a scalar.

    ```mlir
    %m = tl.reduce max %x axis 1 : tensor<64x32xf32> -> tensor<64xf32>
    ```
    """

    name = "tl.reduce"
    kind = prop_def(ReduceKindAttr)
    input = operand_def()
    axis = prop_def(IntegerAttr[I64])
    traits = traits_def(Pure())
    assembly_format = (
        "$kind $input `axis` $axis attr-dict `:` type($input) `->` type($result)"
    )

    def __init__(self, kind: ReduceKind, input: SSAValue | Operation, axis: int):
        super().__init__(
            [input], {"kind": ReduceKindAttr(kind), "axis": IntegerAttr(axis, i64)}
        )

    def infer_type(self) -> Attribute:
        shape, axis = list(shape_of(self.input.type)), self.axis.value.data
        if not 0 <= axis < len(shape):
            raise VerifyException(
                f"'{self.name}' op axis {axis} of a block of rank {len(shape)}"
            )
        shape.pop(axis)
        return block_of(element_of(self.input.type), shape)


@irdl_op_definition
class CumsumOp(InferredTypeOp):
    """
    The sums of the elements up to each one, along an axis.

    ```mlir
    %ends = tl.cumsum %tiles axis 0 : tensor<64xi32> -> tensor<64xi32>
    ```
    """

    name = "tl.cumsum"
    input = operand_def()
    axis = prop_def(IntegerAttr[I64])
    traits = traits_def(Pure())
    assembly_format = (
        "$input `axis` $axis attr-dict `:` type($input) `->` type($result)"
    )

    def __init__(self, input: SSAValue | Operation, axis: int):
        super().__init__([input], {"axis": IntegerAttr(axis, i64)})

    def infer_type(self) -> Attribute:
        shape, axis = shape_of(self.input.type), self.axis.value.data
        if not 0 <= axis < len(shape):
            raise VerifyException(
                f"'{self.name}' op axis {axis} of a block of rank {len(shape)}"
            )
        return self.input.type


@irdl_op_definition
class DotOperandOp(InferredTypeOp):
    """
    Prepare a block for `tl.dot`: bf16 becomes f32 in Triton's interpreter only.

    The interpreter multiplies bf16 blocks as raw 16-bit integers. On a device this is
    the identity.

    ```mlir
    %a = tl.dot_operand %x : tensor<64x32xbf16>
    ```
    """

    name = "tl.dot_operand"
    input = operand_def()
    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue | Operation):
        super().__init__([input])

    def infer_type(self) -> Attribute:
        return self.input.type


@irdl_op_definition
class DotOp(IRDLOperation):
    """
    Multiply two matrices, and add to an accumulator if there is one.

    ```mlir
    %c1 = tl.dot %a, %b acc %c0 : tensor<64x32xf32> precision ieee
      : tensor<64x16xf32>, tensor<16x32xf32> -> tensor<64x32xf32>
    ```
    """

    name = "tl.dot"
    lhs = operand_def()
    rhs = operand_def()
    acc = opt_operand_def()
    precision = opt_prop_def(PrecisionAttr)
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$lhs `,` $rhs (`acc` $acc^ `:` type($acc))? (`precision` $precision^)? "
        "attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"
    )

    def __init__(
        self,
        lhs: SSAValue | Operation,
        rhs: SSAValue | Operation,
        acc: SSAValue | Operation | None,
        element: Attribute,
        precision: Precision | None = None,
    ):
        lhs, rhs = SSAValue.get(lhs), SSAValue.get(rhs)
        shape = (shape_of(lhs.type)[0], shape_of(rhs.type)[1])
        super().__init__(
            operands=[lhs, rhs, [] if acc is None else [acc]],
            properties={
                "precision": None if precision is None else PrecisionAttr(precision)
            },
            result_types=[block_of(element, shape)],
        )

    def verify_(self) -> None:
        lhs, rhs = shape_of(self.lhs.type), shape_of(self.rhs.type)
        if len(lhs) != 2 or len(rhs) != 2 or lhs[1] != rhs[0]:
            raise VerifyException(
                f"'{self.name}' op cannot multiply {self.lhs.type} and {self.rhs.type}"
            )
        element = element_of(self.lhs.type)
        expect_type(self, "element of rhs", element_of(self.rhs.type), element)
        expected = block_of(element_of(self.result.type), (lhs[0], rhs[1]))
        expect_type(self, "result", self.result.type, expected)
        if self.acc is not None:
            expect_type(self, "accumulator", self.acc.type, expected)
