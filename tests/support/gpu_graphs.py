"""Elementary graphs that GPU passes are tried on, by name; each has one function @f."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
H200 = f'attach-hardware{{path="{ROOT / "samples" / "hardware" / "h200x1.yaml"}"}}'

SOFTMAX = """
func.func @f(%a: tensor<{M}x{K}xf16>, %b: tensor<{K}x{N}xf16>) -> tensor<{M}x{N}xf16> {{
  %p = compound.gemm_softmax %a, %b : (tensor<{M}x{K}xf16>, tensor<{K}x{N}xf16>)
      -> tensor<{M}x{N}xf16>
  func.return %p : tensor<{M}x{N}xf16>
}}
"""

LAYERNORM = """
func.func @f(%a: tensor<{M}x{K}xf16>, %b: tensor<{K}x{N}xf16>, %g: tensor<{N}xf16>,
             %h: tensor<{N}xf16>) -> tensor<{M}x{N}xf16> {{
  %y = compound.gemm_layernorm %a, %b, %g, %h : (tensor<{M}x{K}xf16>,
      tensor<{K}x{N}xf16>, tensor<{N}xf16>, tensor<{N}xf16>) -> tensor<{M}x{N}xf16>
  func.return %y : tensor<{M}x{N}xf16>
}}
"""

GATED_PRODUCT = """
!x = tensor<6x10xf32, #compound.dims<I, K>>
!w = tensor<10x7xf32, #compound.dims<K, J>>
!y = tensor<6x7xf32, #compound.dims<I, J>>
func.func @f(%x: !x, %w: !w, %r: tensor<6xf32, #compound.dims<I>>) -> !y {
  %e = compound.map tanh %x : !x -> !x
  %g = compound.map mult %e, %x : !x, !x -> !x
  %y = compound.contract %g, %w : !x, !w -> !y
  %z = compound.map add %y, %r : !y, tensor<6xf32, #compound.dims<I>> -> !y
  func.return %z : !y
}
"""
"""Elementwise ops on both sides of a contraction."""

TWO_PRODUCTS = """
!a = tensor<5x4xf32, #compound.dims<M, K>>
!b = tensor<4x12xf32, #compound.dims<K, N>>
!c = tensor<5x12xf32, #compound.dims<M, N>>
!d = tensor<12x3xf32, #compound.dims<N, P>>
!e = tensor<5x3xf32, #compound.dims<M, P>>
func.func @f(%a: !a, %b: !b, %d: !d) -> !e {
  %c = compound.contract %a, %b : !a, !b -> !c
  %t = compound.map tanh %c : !c -> !c
  %e = compound.contract %t, %d : !c, !d -> !e
  func.return %e : !e
}
"""
"""The second product reduces what the first one makes."""

ATTENTION = """
!q = tensor<2x5x4xf32, #compound.dims<H, M, D>>
!k = tensor<2x12x4xf32, #compound.dims<H, N, D>>
!s = tensor<2x5x12xf32, #compound.dims<H, M, N>>
!v = tensor<2x12x3xf32, #compound.dims<H, N, E>>
!o = tensor<2x5x3xf32, #compound.dims<H, M, E>>
!r = tensor<2x5xf32, #compound.dims<H, M>>
func.func @f(%q: !q, %k: !k, %v: !v) -> !o {
  %s = compound.contract %q, %k : !q, !k -> !s
  %m = compound.reduce max %s : !s -> !r
  %c = compound.map sub %s, %m : !s, !r -> !s
  %e = compound.map exp %c : !s -> !s
  %l = compound.reduce add %e : !s -> !r
  %u = compound.contract %e, %v : !s, !v -> !o
  %o = compound.map div %u, %l : !o, !r -> !o
  func.return %o : !o
}
"""
"""Attention with heads: a batch dimension, two sweeps, a contraction in the second."""

STATISTICS = """
!x = tensor<6x10xf32, #compound.dims<R, C>>
!r = tensor<6xf32, #compound.dims<R>>
func.func @f(%x: !x) -> (!x, !r) {
  %n = compound.extent "C" of %x : !x -> tensor<f32, #compound.dims<>>
  %s = compound.reduce add %x : !x -> !r
  %m = compound.map div %s, %n : !r, tensor<f32, #compound.dims<>> -> !r
  %y = compound.map sub %x, %m : !x, !r -> !x
  func.return %y, %m : !x, !r
}
"""
"""Two results of different rank, and the real extent of a row."""

TOTAL = """
!x = tensor<6x10xf32, #compound.dims<R, C>>
!t = tensor<f32, #compound.dims<>>
func.func @f(%x: !x) -> !t {
  %s = compound.reduce add %x : !x -> tensor<6xf32, #compound.dims<R>>
  %t = compound.reduce max %s : tensor<6xf32, #compound.dims<R>> -> !t
  func.return %t : !t
}
"""
"""Nothing is left to split over programs."""

RENAMED = """
!x = tensor<5x4xf32, #compound.dims<M, K>>
!y = tensor<5x4xf32, #compound.dims<N, K>>
!c = tensor<5x5xf32, #compound.dims<M, N>>
func.func @f(%x: !x) -> !c {
  %e = compound.map exp %x : !x -> !x
  %y = compound.rename %e : !x -> !y
  %c = compound.contract %x, %y : !x, !y -> !c
  func.return %c : !c
}
"""
"""A computed value under two names: two kernels."""

GRAPHS = {
    "gated_product": GATED_PRODUCT,
    "two_products": TWO_PRODUCTS,
    "attention": ATTENTION,
    "statistics": STATISTICS,
    "total": TOTAL,
    "renamed": RENAMED,
}
