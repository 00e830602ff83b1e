"""The named ops of matrix products, for one rank or several."""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from comet.dialects.compound.named import FORMAT, CompoundOp


@irdl_op_definition
class GemmOp(CompoundOp):
    """
    `a b`.

    With K sharded over the ranks, every rank has a partial product: an all-reduce
    completes it, or a reduce-scatter if the result is sharded.

    ```mlir
    %c = compound.gemm %a, %b : (tensor<256x128xf16>, tensor<128x512xf16>)
        -> tensor<256x512xf16>
    ```
    """

    name = "compound.gemm"
    OPERANDS: ClassVar = (("M", "K"), ("K", "N"))
    RESULT: ClassVar = ("M", "N")
    assembly_format = FORMAT


@irdl_op_definition
class AgGemmOp(CompoundOp):
    """
    `a b`, where each rank has a shard of a and needs the whole product.

    The attribute `collective.shard` of the argument a names the sharded dimension: K,
    as in "Eliminating Multi-GPU Performance Taxes" (arXiv 2511.02168), or M. The op is
    not sharded and reads all of a, so an all-gather of a comes before the product.

    ```mlir
    %c = compound.ag_gemm %a, %b : (tensor<256x128xf16>, tensor<128x512xf16>)
        -> tensor<256x512xf16>
    ```
    """

    name = "compound.ag_gemm"
    OPERANDS: ClassVar = (("M", "K"), ("K", "N"))
    RESULT: ClassVar = ("M", "N")
    assembly_format = FORMAT


@irdl_op_definition
class ExpertGemmOp(CompoundOp):
    """
    `x[e] w[e]` for each expert E: tokens in slots of fixed capacity times its weights.

    Every expert has T slots; a router has put tokens into some, the others are zero. If
    each rank has its own tokens (x sharded along T) and the weights of its own experts
    (w sharded along E), an all-to-all exchanges the tokens.

    ```mlir
    %y = compound.expert_gemm %x, %w : (tensor<8x64x128xf16>, tensor<8x128x256xf16>)
        -> tensor<8x64x256xf16>
    ```
    """

    name = "compound.expert_gemm"
    OPERANDS: ClassVar = (("E", "T", "D"), ("E", "D", "F"))
    RESULT: ClassVar = ("E", "T", "F")
    assembly_format = FORMAT


@irdl_op_definition
class GemmGemmOp(CompoundOp):
    """
    `(a b) c`: two successive products, with N between them.

    ```mlir
    %y = compound.gemm_gemm %a, %b, %c : (tensor<256x128xf16>, tensor<128x512xf16>,
        tensor<512x64xf16>) -> tensor<256x64xf16>
    ```
    """

    name = "compound.gemm_gemm"
    OPERANDS: ClassVar = (("M", "K"), ("K", "N"), ("N", "L"))
    RESULT: ClassVar = ("M", "L")
    assembly_format = FORMAT
