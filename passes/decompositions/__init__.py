"""How each named compound op becomes elementary ops: one file and one line per op."""

from __future__ import annotations

from xdsl.ir import Operation

from comet.dialects.compound_named import (
    GemmLayernormOp,
    GemmRmsnormOp,
    GemmSoftmaxOp,
)
from comet.passes.decompositions.gemm_layernorm import decompose_gemm_layernorm
from comet.passes.decompositions.gemm_rmsnorm import decompose_gemm_rmsnorm
from comet.passes.decompositions.gemm_softmax import decompose_gemm_softmax
from comet.passes.decompositions.site import Decomposition

DECOMPOSITIONS: dict[type[Operation], Decomposition] = {
    GemmLayernormOp: decompose_gemm_layernorm,
    GemmRmsnormOp: decompose_gemm_rmsnorm,
    GemmSoftmaxOp: decompose_gemm_softmax,
}
