"""Functions that several GPUs share, and the passes that bring them to kernels."""

from pathlib import Path

from gpu_graphs import LAYERNORM, SOFTMAX

ROOT = Path(__file__).parents[2]
H200X8 = f'attach-hardware{{path="{ROOT / "samples" / "hardware" / "h200x8.yaml"}"}}'

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


def sharded(ranks: int, dim: str) -> str:
    """Return the passes that spread `dim` of a function over `ranks` GPUs."""
    return (
        f"{H200X8},select-ranks{{ranks={ranks}}},decompose,stream,"
        f"distribute{{dim={dim} axes=rank}},insert-collectives,place-collectives"
    )
