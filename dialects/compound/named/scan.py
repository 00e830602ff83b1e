"""The named op of a state-space scan."""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from comet.dialects.compound.named import FORMAT, CompoundOp


@irdl_op_definition
class SsmScanOp(CompoundOp):
    """
    A scan over time T: `h_t = a_t h_(t-1) + b_t x_t` and `y_t = c_t h_t`, from h = 0.

    Each head H has a state of S by D numbers: b_t x_t is an outer product, and c_t h_t
    sums over S. The decay is given by its logarithm, `a_t = exp(log_a_t)`, so that
    running products are sums.

    ```mlir
    %y = compound.ssm_scan %x, %log_a, %b, %c : (tensor<8x128x64xf16>,
        tensor<8x128xf16>, tensor<8x128x16xf16>, tensor<8x128x16xf16>)
        -> tensor<8x128x64xf16>
    ```
    """

    name = "compound.ssm_scan"
    OPERANDS: ClassVar = (("H", "T", "D"), ("H", "T"), ("H", "T", "S"), ("H", "T", "S"))
    RESULT: ClassVar = ("H", "T", "D")
    INNER: ClassVar = ("U",)
    assembly_format = FORMAT
