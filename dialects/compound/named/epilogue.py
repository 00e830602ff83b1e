"""The named ops of a product with an elementwise epilogue or a softmax."""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from comet.dialects.compound.named import FORMAT, CompoundOp


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
