"""Programs of one GPU whose reductions are split over programs."""

from triton_modules import emitted, hardware

H200 = hardware("h200x1.yaml")
MI300X = hardware("mi300x8.yaml")

GEMM = """
!A = tensor<37x60xf16>
!B = tensor<60x43xf16>
!C = tensor<37x43xf16>
func.func @f(%a: !A, %b: !B, %d: tensor<43xf16>) -> !C {
  %c = compound.gemm_bias_relu %a, %b, %d : (!A, !B, tensor<43xf16>) -> !C
  func.return %c : !C
}
"""
DECODE = """
!Q = tensor<3x2x3x8xf16>
!K = tensor<3x2x48x8xf16>
!V = tensor<3x2x48x16xf16>
!L = tensor<3xi32>
!O = tensor<3x2x3x16xf16>
func.func @f(%q: !Q, %k: !K, %v: !V, %lens: !L) -> !O {
  %o = compound.flash_decode %q, %k, %v, %lens : (!Q, !K, !V, !L) -> !O
  func.return %o : !O
}
"""
SPLITS = {"gemm": (GEMM, "K", 3), "decode": (DECODE, "S", 4)}
"""The functions, the dimension that programs split, and into how many parts."""


def merging(name: str, machine: str = H200, options: str = "") -> str:
    """Return the emitted module whose last programs merge."""
    text, dim, parts = SPLITS[name]
    split = f'split="{dim}={parts}" merge=last {options}'
    return emitted(text, f"{machine},triton-distributed{{{split}}}")
