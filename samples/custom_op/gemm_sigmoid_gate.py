"""
A named op that lives outside comet, with what it is in elementary ops.

    comet-opt samples/custom_op/gemm_sigmoid_gate.mlir \\
      --load-dialect-plugin samples/custom_op/gemm_sigmoid_gate.py -p decompose

A package publishes the dialect to every xDSL tool, and to `import comet`, by the entry
point of samples/custom_pass and `Universe(all_dialects={"sample": lambda: SAMPLE})`.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import irdl_op_definition

from comet.dialects.compound import MapKind
from comet.dialects.compound.named import FORMAT, CompoundOp
from comet.passes.graph.decompose.site import Site


@irdl_op_definition
class GemmSigmoidGateOp(CompoundOp):
    """
    `g / (1 + exp(-a b))`: a gate, the sigmoid of a product, on another value.

    ```mlir
    %y = sample.gemm_sigmoid_gate %a, %b, %g : (tensor<256x128xf16>,
        tensor<128x512xf16>, tensor<256x512xf16>) -> tensor<256x512xf16>
    ```
    """

    name = "sample.gemm_sigmoid_gate"
    OPERANDS: ClassVar = (("M", "K"), ("K", "N"), ("M", "N"))
    RESULT: ClassVar = ("M", "N")
    assembly_format = FORMAT

    def decompose(self, site: Site) -> SSAValue:
        """Emit contract, the denominator and the quotient."""
        emit = site.emit
        a, b, g = site.operands
        c = emit.contract(a, b, site.dims["K"], site.accumulator, name="c")
        minus = emit.fill(-1.0, site.accumulator, name="minus")
        one = emit.fill(1.0, site.accumulator, name="one")
        e = emit.map(MapKind.EXP, emit.map(MapKind.MULT, c, minus), name="e")
        divisor = emit.map(MapKind.ADD, e, one, name="divisor")
        return emit.map(MapKind.DIV, site.wide(g), divisor, name="y")


SAMPLE = Dialect("sample", [GemmSigmoidGateOp])
