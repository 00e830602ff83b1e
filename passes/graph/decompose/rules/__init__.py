"""How each named compound op becomes elementary ops: a file and a line per op."""

from __future__ import annotations

from xdsl.ir import Operation

from comet.dialects.compound.attention import AttentionOp, FlashDecodeOp
from comet.dialects.compound.gemm import AgGemmOp, ExpertGemmOp, GemmOp
from comet.dialects.compound.named import (
    GatedMlpOp,
    GemmBiasReluOp,
    GemmGeluOp,
    GemmGemmOp,
    GemmLayernormOp,
    GemmRmsnormOp,
    GemmSiluOp,
    GemmSoftmaxOp,
)
from comet.dialects.compound.scan import SsmScanOp
from comet.passes.graph.decompose.attention import decompose_attention
from comet.passes.graph.decompose.expert_gemm import decompose_expert_gemm
from comet.passes.graph.decompose.flash_decode import decompose_flash_decode
from comet.passes.graph.decompose.gated_mlp import decompose_gated_mlp
from comet.passes.graph.decompose.gemm import decompose_gemm
from comet.passes.graph.decompose.gemm_bias_relu import decompose_gemm_bias_relu
from comet.passes.graph.decompose.gemm_gelu import decompose_gemm_gelu
from comet.passes.graph.decompose.gemm_gemm import decompose_gemm_gemm
from comet.passes.graph.decompose.gemm_layernorm import decompose_gemm_layernorm
from comet.passes.graph.decompose.gemm_rmsnorm import decompose_gemm_rmsnorm
from comet.passes.graph.decompose.gemm_silu import decompose_gemm_silu
from comet.passes.graph.decompose.gemm_softmax import decompose_gemm_softmax
from comet.passes.graph.decompose.site import Decomposition
from comet.passes.graph.decompose.ssm_scan import decompose_ssm_scan

DECOMPOSITIONS: dict[type[Operation], Decomposition] = {
    AgGemmOp: decompose_gemm,
    AttentionOp: decompose_attention,
    ExpertGemmOp: decompose_expert_gemm,
    FlashDecodeOp: decompose_flash_decode,
    GatedMlpOp: decompose_gated_mlp,
    GemmBiasReluOp: decompose_gemm_bias_relu,
    GemmGeluOp: decompose_gemm_gelu,
    GemmGemmOp: decompose_gemm_gemm,
    GemmLayernormOp: decompose_gemm_layernorm,
    GemmOp: decompose_gemm,
    GemmRmsnormOp: decompose_gemm_rmsnorm,
    GemmSiluOp: decompose_gemm_silu,
    GemmSoftmaxOp: decompose_gemm_softmax,
    SsmScanOp: decompose_ssm_scan,
}
