"""Functions that several GPUs share, and the passes that bring them to kernels."""

from gpu_graphs import LAYERNORM, SOFTMAX
from paths import ROOT

H200X8 = f'attach-hardware{{path="{ROOT / "samples" / "hardware" / "h200x8.yaml"}"}}'
MI300X8 = f'attach-hardware{{path="{ROOT / "samples" / "hardware" / "mi300x8.yaml"}"}}'

RMSNORM = """
func.func @f(%a: tensor<{M}x{K}xf16>, %b: tensor<{K}x{N}xf16>, %g: tensor<{N}xf16>)
    -> tensor<{M}x{N}xf16> {{
  %y = compound.gemm_rmsnorm %a, %b, %g : (tensor<{M}x{K}xf16>, tensor<{K}x{N}xf16>,
      tensor<{N}xf16>) -> tensor<{M}x{N}xf16>
  func.return %y : tensor<{M}x{N}xf16>
}}
"""

ATTENTION = """
func.func @f(%q: tensor<2x3x{M}x{K}xf16>, %k: tensor<2x3x{N}x{K}xf16>,
             %v: tensor<2x3x{N}x4xf16>) -> tensor<2x3x{M}x4xf16> {{
  %o = compound.attention %q, %k, %v : (tensor<2x3x{M}x{K}xf16>,
      tensor<2x3x{N}x{K}xf16>, tensor<2x3x{N}x4xf16>) -> tensor<2x3x{M}x4xf16>
  func.return %o : tensor<2x3x{M}x4xf16>
}}
"""

TEXTS = {
    "softmax": SOFTMAX,
    "layernorm": LAYERNORM,
    "rmsnorm": RMSNORM,
    "attention": ATTENTION,
}
"""Functions @f of M, N and K, by the op that they hold."""


SHARED_TEXTS = {
    "ag_gemm": """
func.func @f(%a: tensor<{M}x{K}xf16> {{collective.shard = {{K = ["rank"]}}}},
             %b: tensor<{K}x{N}xf16>) -> tensor<{M}x{N}xf16> {{
  %c = compound.ag_gemm %a, %b : (tensor<{M}x{K}xf16>, tensor<{K}x{N}xf16>)
      -> tensor<{M}x{N}xf16>
  func.return %c : tensor<{M}x{N}xf16>
}}
""",
    "ag_gemm_rows": """
func.func @f(%a: tensor<{M}x{K}xf16> {{collective.shard = {{M = ["rank"]}}}},
             %b: tensor<{K}x{N}xf16>) -> tensor<{M}x{N}xf16> {{
  %c = compound.ag_gemm %a, %b : (tensor<{M}x{K}xf16>, tensor<{K}x{N}xf16>)
      -> tensor<{M}x{N}xf16>
  func.return %c : tensor<{M}x{N}xf16>
}}
""",
    "gemm_all_reduce": """
func.func @f(%a: tensor<{M}x{K}xf16> {{collective.shard = {{K = ["rank"]}}}},
             %b: tensor<{K}x{N}xf16> {{collective.shard = {{K = ["rank"]}}}})
    -> tensor<{M}x{N}xf16> {{
  %c = compound.gemm %a, %b {{collective.shard = {{K = ["rank"]}}}} :
      (tensor<{M}x{K}xf16>, tensor<{K}x{N}xf16>) -> tensor<{M}x{N}xf16>
  func.return %c : tensor<{M}x{N}xf16>
}}
""",
    "gemm_reduce_scatter": """
func.func @f(%a: tensor<{M}x{K}xf16> {{collective.shard = {{K = ["rank"]}}}},
             %b: tensor<{K}x{N}xf16> {{collective.shard = {{K = ["rank"]}}}})
    -> (tensor<{M}x{N}xf16> {{collective.shard = {{M = ["rank"]}}}}) {{
  %c = compound.gemm %a, %b {{collective.shard = {{K = ["rank"]}}}} :
      (tensor<{M}x{K}xf16>, tensor<{K}x{N}xf16>) -> tensor<{M}x{N}xf16>
  func.return %c : tensor<{M}x{N}xf16>
}}
""",
    "ring_attention": """
func.func @f(%q: tensor<2x3x{M}x{K}xf16> {{collective.shard = {{M = ["rank"]}}}},
             %k: tensor<2x3x{N}x{K}xf16> {{collective.shard = {{N = ["rank"]}}}},
             %v: tensor<2x3x{N}x4xf16> {{collective.shard = {{N = ["rank"]}}}})
    -> (tensor<2x3x{M}x4xf16> {{collective.shard = {{M = ["rank"]}}}}) {{
  %o = compound.attention %q, %k, %v {{collective.shard = {{M = ["rank"]}}}} :
      (tensor<2x3x{M}x{K}xf16>, tensor<2x3x{N}x{K}xf16>, tensor<2x3x{N}x4xf16>)
      -> tensor<2x3x{M}x4xf16>
  func.return %o : tensor<2x3x{M}x4xf16>
}}
""",
    "expert_gemm": """
func.func @f(%x: tensor<{N}x{M}x{K}xf16> {{collective.shard = {{T = ["rank"]}}}},
             %w: tensor<{N}x{K}x4xf16> {{collective.shard = {{E = ["rank"]}}}})
    -> (tensor<{N}x{M}x4xf16> {{collective.shard = {{E = ["rank"]}}}}) {{
  %y = compound.expert_gemm %x, %w {{collective.shard = {{E = ["rank"]}}}} :
      (tensor<{N}x{M}x{K}xf16>, tensor<{N}x{K}x4xf16>) -> tensor<{N}x{M}x4xf16>
  func.return %y : tensor<{N}x{M}x4xf16>
}}
""",
}
"""Functions @f of M, N and K that say what ranks share."""


def on_ranks(ranks: int, distribute: str = "") -> str:
    """Return the passes that give a function to GPUs, up to fuse."""
    return (
        f"{H200X8},select-ranks{{ranks={ranks}}},decompose,stream{distribute},"
        "insert-collectives,place-collectives,lower-reductions"
    )


def sharded(ranks: int, dim: str) -> str:
    """Return the passes that spread `dim` of a function over `ranks` GPUs."""
    return on_ranks(ranks, f",distribute{{dim={dim} axes=rank}}")
