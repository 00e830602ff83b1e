"""The named ops of a product and a normalization, with an epsilon."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable
from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, Float64Type, FloatAttr, TensorType, f64
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.named import CompoundOp

WITH_EPSILON = (
    "$inputs (`epsilon` $epsilon^)? attr-dict `:` functional-type(operands, results)"
)
"""The syntax of ops with an epsilon."""


class NormalizingOp(CompoundOp, ABC):
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
class GemmLayernormOp(NormalizingOp):
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
    assembly_format = WITH_EPSILON


@irdl_op_definition
class GemmRmsnormOp(NormalizingOp):
    """
    RMSNorm of `a b` over the last dimension, N, with scale gamma.

    The root is of the mean of the squares plus `epsilon`.

    ```mlir
    %y = compound.gemm_rmsnorm %a, %b, %gamma epsilon 1.000000e-05
        : (tensor<256x128xf16>, tensor<128x512xf16>, tensor<512xf16>)
        -> tensor<256x512xf16>
    ```
    """

    name = "compound.gemm_rmsnorm"
    OPERANDS: ClassVar = (("M", "K"), ("K", "N"), ("N",))
    RESULT: ClassVar = ("M", "N")
    assembly_format = WITH_EPSILON
