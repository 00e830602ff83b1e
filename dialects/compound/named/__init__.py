"""
The named compound ops: whole patterns of a model on plain tensors (the graph level).

An op says how the dimensions of its operands and its result are called; the shared
verifier checks shapes against these names, and `decompose` starts from them.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, Float64Type, FloatAttr, TensorType, f64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    MessageConstraint,
    irdl_op_definition,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.dims import COUNT_TENSOR, FLOAT_TENSOR, element_type_of

PLAIN_TENSOR = MessageConstraint(
    FLOAT_TENSOR | COUNT_TENSOR, "expected a tensor of floats, or of i32 for counts"
)

AT_MOST = "compound.at_most"
"""The attribute of a function's argument that counts: from 1 to this."""


class CompoundOp(IRDLOperation, ABC):
    """A named compound op; subclasses say how their tensors' axes are called."""

    OPERANDS: ClassVar[tuple[tuple[str, ...], ...]]
    """The dimension names of each operand, in axis order."""
    RESULT: ClassVar[tuple[str, ...]]
    """The dimension names of the result, in axis order."""

    INNER: ClassVar[tuple[str, ...]] = ()
    """Dimensions of values in between that no operand and no result has."""

    LENGTHS: ClassVar[Mapping[int, str]] = {}
    """
    Which operands are i32, and count elements: the first ones of the given dimension.
    """

    inputs = var_operand_def(PLAIN_TENSOR)
    result = result_def(PLAIN_TENSOR)
    traits = traits_def(Pure())

    def __init__(
        self,
        inputs: Iterable[SSAValue],
        result_type: TensorType[AnyFloat],
        properties: Mapping[str, Attribute] | None = None,
    ):
        super().__init__(
            operands=[list(inputs)],
            result_types=[result_type],
            properties=properties or {},
        )

    def named_extents(self) -> dict[str, int]:
        """
        Return the extent of each named dimension of the operands.

        Raises VerifyException if a rank or an extent does not fit the names.
        """
        extents: dict[str, int] = {}
        for index, (value, names) in enumerate(
            zip(self.inputs, self.OPERANDS, strict=True)
        ):
            for name, extent in zip(names, self._shape(value, names), strict=True):
                if extents.setdefault(name, extent) != extent:
                    raise VerifyException(
                        f"'{self.name}' op operand {index} has extent {extent} for "
                        f"dimension {name}, an earlier operand has {extents[name]}"
                    )
        return extents

    def verify_(self) -> None:
        """Check ranks, extents and element types of all operands and the result."""
        if len(self.inputs) != len(self.OPERANDS):
            raise VerifyException(
                f"'{self.name}' op takes {len(self.OPERANDS)} operands, "
                f"got {len(self.inputs)}"
            )
        extents = self.named_extents()
        names = self.RESULT
        expected = tuple(extents[name] for name in names)
        if self._shape(self.result, names) != expected:
            raise VerifyException(
                f"'{self.name}' op result is {' x '.join(names)} = "
                f"{'x'.join(map(str, expected))}, got {self.result.type}"
            )
        self._verify_element_types()

    def _verify_element_types(self) -> None:
        """Check that counts are i32, and all else of one type of floats."""
        for index, value in enumerate(self.inputs):
            if COUNT_TENSOR.verifies(value.type) != (index in self.LENGTHS):
                wanted = "i32" if index in self.LENGTHS else "floats"
                raise VerifyException(
                    f"'{self.name}' op operand {index} is a tensor of {wanted}, got "
                    f"{value.type}"
                )
        computed = [v for i, v in enumerate(self.inputs) if i not in self.LENGTHS]
        if len({element_type_of(v) for v in (*computed, self.result)}) > 1:
            raise VerifyException(f"'{self.name}' op operands share one element type")

    def _shape(self, value: SSAValue, names: Sequence[str]) -> tuple[int, ...]:
        type_ = value.type
        shape = type_.get_shape() if isinstance(type_, TensorType) else ()
        if len(shape) != len(names):
            raise VerifyException(
                f"'{self.name}' op expects {' x '.join(names)}, got {type_}"
            )
        if any(extent < 1 for extent in shape):
            raise VerifyException(
                f"'{self.name}' op extents are static and positive, got {type_}"
            )
        return shape


FORMAT = "$inputs attr-dict `:` functional-type(operands, results)"
"""How ops without properties are written."""
FORMAT_EPSILON = (
    "$inputs (`epsilon` $epsilon^)? attr-dict `:` functional-type(operands, results)"
)
"""How ops with an epsilon are written."""


class NormalisingOp(CompoundOp, ABC):
    """A named op that adds `epsilon` to a variance or a mean square."""

    epsilon = prop_def(FloatAttr[Float64Type], default_value=FloatAttr(1e-5, f64))

    def __init__(
        self,
        inputs: Iterable[SSAValue],
        result_type: TensorType[AnyFloat],
        epsilon: float = 1e-5,
    ):
        super().__init__(inputs, result_type, {"epsilon": FloatAttr(epsilon, f64)})

    def verify_(self) -> None:
        """Check the shapes, and that epsilon is positive."""
        super().verify_()
        if not self.epsilon.value.data > 0:
            raise VerifyException(f"'{self.name}' op epsilon is positive")


@irdl_op_definition
class GemmSoftmaxOp(CompoundOp):
    """
    `softmax(a b)` over the last dimension, N.

    ```mlir
    %p = compound.gemm_softmax %a, %b : (tensor<256x128xf16>, tensor<128x512xf16>)
        -> tensor<256x512xf16>
    ```
    """

    name = "compound.gemm_softmax"
    OPERANDS: ClassVar = (("M", "K"), ("K", "N"))
    RESULT: ClassVar = ("M", "N")
    assembly_format = FORMAT


@irdl_op_definition
class GemmLayernormOp(NormalisingOp):
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
    OPERANDS: ClassVar = (("M", "K"), ("K", "N"), ("N",), ("N",))
    RESULT: ClassVar = ("M", "N")
    assembly_format = FORMAT_EPSILON


@irdl_op_definition
class GemmRmsnormOp(NormalisingOp):
    """
    RMSNorm of `a b` over the last dimension, N, with scale gamma.

    The mean of the squares, plus `epsilon`, is under the root.

    ```mlir
    %y = compound.gemm_rmsnorm %a, %b, %gamma epsilon 1.000000e-05
        : (tensor<256x128xf16>, tensor<128x512xf16>, tensor<512xf16>)
        -> tensor<256x512xf16>
    ```
    """

    name = "compound.gemm_rmsnorm"
    OPERANDS: ClassVar = (("M", "K"), ("K", "N"), ("N",))
    RESULT: ClassVar = ("M", "N")
    assembly_format = FORMAT_EPSILON


@irdl_op_definition
class GemmGeluOp(CompoundOp):
    """
    GELU of `a b`, in the form with tanh.

    `gelu(x) = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`, from Hendrycks and
    Gimpel, "Gaussian Error Linear Units (GELUs)", section 2.

    ```mlir
    %y = compound.gemm_gelu %a, %b : (tensor<256x128xf16>, tensor<128x512xf16>)
        -> tensor<256x512xf16>
    ```
    """

    name = "compound.gemm_gelu"
    OPERANDS: ClassVar = (("M", "K"), ("K", "N"))
    RESULT: ClassVar = ("M", "N")
    assembly_format = FORMAT


@irdl_op_definition
class GemmSiluOp(CompoundOp):
    """
    SiLU of `a b`: `silu(x) = x / (1 + exp(-x))`.

    ```mlir
    %y = compound.gemm_silu %a, %b : (tensor<256x128xf16>, tensor<128x512xf16>)
        -> tensor<256x512xf16>
    ```
    """

    name = "compound.gemm_silu"
    OPERANDS: ClassVar = (("M", "K"), ("K", "N"))
    RESULT: ClassVar = ("M", "N")
    assembly_format = FORMAT


@irdl_op_definition
class GemmBiasReluOp(CompoundOp):
    """
    `max(a b + bias, 0)`: a linear layer.

    ```mlir
    %y = compound.gemm_bias_relu %a, %b, %bias : (tensor<256x128xf16>,
        tensor<128x512xf16>, tensor<512xf16>) -> tensor<256x512xf16>
    ```
    """

    name = "compound.gemm_bias_relu"
    OPERANDS: ClassVar = (("M", "K"), ("K", "N"), ("N",))
    RESULT: ClassVar = ("M", "N")
    assembly_format = FORMAT


@irdl_op_definition
class GemmGemmOp(CompoundOp):
    """
    `(a b) c`: two products in a row, with N between them.

    ```mlir
    %y = compound.gemm_gemm %a, %b, %c : (tensor<256x128xf16>, tensor<128x512xf16>,
        tensor<512x64xf16>) -> tensor<256x64xf16>
    ```
    """

    name = "compound.gemm_gemm"
    OPERANDS: ClassVar = (("M", "K"), ("K", "N"), ("N", "L"))
    RESULT: ClassVar = ("M", "L")
    assembly_format = FORMAT


@irdl_op_definition
class GatedMlpOp(CompoundOp):
    """
    `(silu(x gate) * (x up)) down`: the feed-forward block of a transformer.

    The SwiGLU form of Shazeer, "GLU Variants Improve Transformer".

    ```mlir
    %y = compound.gated_mlp %x, %gate, %up, %down : (tensor<256x128xf16>,
        tensor<128x512xf16>, tensor<128x512xf16>, tensor<512x64xf16>)
        -> tensor<256x64xf16>
    ```
    """

    name = "compound.gated_mlp"
    OPERANDS: ClassVar = (("M", "K"), ("K", "N"), ("K", "N"), ("N", "L"))
    RESULT: ClassVar = ("M", "L")
    assembly_format = FORMAT
