"""
The named compound ops: whole patterns of a model on plain tensors (the graph level).

Each op names the dimensions of its operands and result; the shared verifier checks
shapes against these names, and `decompose` starts from them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from xdsl.dialects.builtin import AnyFloat, Float64Type, FloatAttr, TensorType, f64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    MessageConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound_dims import FLOAT_TENSOR, element_type_of

PLAIN_TENSOR = MessageConstraint(FLOAT_TENSOR, "expected a tensor of floats")


class CompoundOp(Operation, ABC):
    """A named compound op; subclasses say how their tensors' axes are called."""

    @abstractmethod
    def operand_names(self) -> tuple[tuple[str, ...], ...]:
        """Return the dimension names of each operand, in axis order."""

    @abstractmethod
    def result_names(self) -> tuple[str, ...]:
        """Return the dimension names of the result, in axis order."""

    def named_extents(self) -> dict[str, int]:
        """
        Return the extent of each named dimension of the operands.

        Raises VerifyException if a rank or an extent does not fit the names.
        """
        extents: dict[str, int] = {}
        for index, (value, names) in enumerate(
            zip(self.operands, self.operand_names(), strict=True)
        ):
            for name, extent in zip(names, self._shape(value, names), strict=True):
                if extents.setdefault(name, extent) != extent:
                    raise VerifyException(
                        f"'{self.name}' op operand {index} has extent {extent} for "
                        f"dimension {name}, an earlier operand has {extents[name]}"
                    )
        return extents

    def verify_named_shapes(self) -> None:
        """Check ranks, extents and element types of all operands and the result."""
        extents = self.named_extents()
        names = self.result_names()
        expected = tuple(extents[name] for name in names)
        if self._shape(self.results[0], names) != expected:
            raise VerifyException(
                f"'{self.name}' op result is {' x '.join(names)} = "
                f"{'x'.join(map(str, expected))}, got {self.results[0].type}"
            )
        types = {element_type_of(v) for v in (*self.operands, *self.results)}
        if len(types) > 1:
            raise VerifyException(f"'{self.name}' op operands share one element type")

    def _shape(self, value: SSAValue, names: tuple[str, ...]) -> tuple[int, ...]:
        type_ = value.type
        shape = type_.get_shape() if FLOAT_TENSOR.verifies(type_) else ()
        if len(shape) != len(names):
            raise VerifyException(
                f"'{self.name}' op expects {' x '.join(names)}, got {type_}"
            )
        if any(extent < 1 for extent in shape):
            raise VerifyException(
                f"'{self.name}' op extents are static and positive, got {type_}"
            )
        return shape


@irdl_op_definition
class GemmSoftmaxOp(IRDLOperation, CompoundOp):
    """
    `softmax(a b)` over the last dimension, N.

    ```mlir
    %p = compound.gemm_softmax %a, %b : (tensor<256x128xf16>, tensor<128x512xf16>)
        -> tensor<256x512xf16>
    ```
    """

    name = "compound.gemm_softmax"
    a = operand_def(PLAIN_TENSOR)
    b = operand_def(PLAIN_TENSOR)
    result = result_def(PLAIN_TENSOR)
    traits = traits_def(Pure())
    assembly_format = (
        "$a `,` $b attr-dict `:` `(` type($a) `,` type($b) `)` `->` type($result)"
    )

    def __init__(self, a: SSAValue, b: SSAValue, result_type: TensorType[AnyFloat]):
        super().__init__(operands=[a, b], result_types=[result_type])

    def operand_names(self) -> tuple[tuple[str, ...], ...]:
        return ("M", "K"), ("K", "N")

    def result_names(self) -> tuple[str, ...]:
        return ("M", "N")

    def verify_(self) -> None:
        self.verify_named_shapes()


@irdl_op_definition
class GemmLayernormOp(IRDLOperation, CompoundOp):
    """
    LayerNorm of `a b` over the last dimension, N, with scale gamma and shift beta.

    The variance is the biased one; `epsilon` is added to it.

    ```mlir
    %y = compound.gemm_layernorm %a, %b, %gamma, %beta epsilon 1.000000e-05
        : (tensor<256x128xf16>, tensor<128x512xf16>, tensor<512xf16>, tensor<512xf16>)
        -> tensor<256x512xf16>
    ```
    """

    name = "compound.gemm_layernorm"
    a = operand_def(PLAIN_TENSOR)
    b = operand_def(PLAIN_TENSOR)
    gamma = operand_def(PLAIN_TENSOR)
    beta = operand_def(PLAIN_TENSOR)
    epsilon = prop_def(FloatAttr[Float64Type], default_value=FloatAttr(1e-5, f64))
    result = result_def(PLAIN_TENSOR)
    traits = traits_def(Pure())
    assembly_format = (
        "$a `,` $b `,` $gamma `,` $beta (`epsilon` $epsilon^)? attr-dict `:` `(` "
        "type($a) `,` type($b) `,` type($gamma) `,` type($beta) `)` `->` type($result)"
    )

    def __init__(
        self,
        operands: Sequence[SSAValue],
        result_type: TensorType[AnyFloat],
        epsilon: float = 1e-5,
    ):
        super().__init__(
            operands=list(operands),
            result_types=[result_type],
            properties={"epsilon": FloatAttr(epsilon, f64)},
        )

    def operand_names(self) -> tuple[tuple[str, ...], ...]:
        return ("M", "K"), ("K", "N"), ("N",), ("N",)

    def result_names(self) -> tuple[str, ...]:
        return ("M", "N")

    def verify_(self) -> None:
        self.verify_named_shapes()
        if not self.epsilon.value.data > 0:
            raise VerifyException(f"'{self.name}' op epsilon is positive")
