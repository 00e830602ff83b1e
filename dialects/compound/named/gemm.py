"""The named ops that are products of matrices, and what ranks make of them."""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from comet.dialects.compound.named import FORMAT, CompoundOp


@irdl_op_definition
class GemmOp(CompoundOp):
    """
    `a b`.

    With K sharded over the ranks, every rank has terms of the product: an all-reduce
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
    `a b`, where each rank holds a shard of a and all need the whole product.

    The argument a says by `collective.shard` which dimension its shards split: K, as in
    "Eliminating Multi-GPU Performance Taxes" (arXiv 2511.02168), or M. An op that is
    not sharded needs a whole, so that an all-gather of a goes before the product.

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

    Every expert has T slots; a router has put the tokens into them, zeros fill the
    rest. Ranks that hold slots for their own tokens (x sharded along T) and the weights
    of their own experts (w sharded along E) exchange the tokens by an all-to-all.

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
