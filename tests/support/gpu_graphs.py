"""Elementary graphs that GPU passes are tried on, by name; each has one function @f."""

from paths import ROOT
from semantics import parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp

from comet.dialects.schedule import SpatialOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.schedule.fuse.gpu.simplify import simplify

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
"""
Attention with heads: a batch dimension, two reduction loops, a contraction in the
second.
"""

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

REDUCED_THEN_KEPT = """
!a = tensor<17x4x2xf32, #compound.dims<K, M, L>>
!b = tensor<17x7xf32, #compound.dims<K, N>>
!c = tensor<4x2x7xf32, #compound.dims<M, L, N>>
!n = tensor<f32, #compound.dims<>>
func.func @f(%a: !a, %b: !b) -> !c {
  %m = compound.reduce max %a : !a -> !n
  %s = compound.map mult %m, %a : !n, !a -> !a
  %c = compound.contract %s, %b : !a, !b -> !c
  func.return %c : !c
}
"""
"""M is reduced, and kept by what reduces K: its loop has to be outside that of K."""

EACH_KEPT_BY_THE_OTHER = """
!a = tensor<4x6x8xf32, #compound.dims<N, M, L>>
!b = tensor<6x8xf32, #compound.dims<M, L>>
!c = tensor<8x4xf32, #compound.dims<L, N>>
func.func @f(%a: !a) -> !c {
  %e = compound.map neg %a : !a -> !a
  %b = compound.contract %e, %a : !a, !a -> !b
  %c = compound.contract %b, %a : !b, !a -> !c
  func.return %c : !c
}
"""
"""One product keeps M and sums N, the other one keeps N and sums M: one is no loop."""

KEY_GRADIENTS = """
!q = tensor<2x3x{M}x8xf32, #compound.dims<K, R, M, E>>
!k = tensor<2x{N}x8xf32, #compound.dims<K, N, E>>
!s = tensor<2x3x{M}x{N}xf32, #compound.dims<K, R, M, N>>
!m = tensor<{M}xi32, #compound.dims<M>>
!n = tensor<{N}xi32, #compound.dims<N>>
!b = tensor<{M}x{N}xi1, #compound.dims<M, N>>
!f = tensor<f32, #compound.dims<>>
func.func @f(%q: !q, %k: !k) -> !k {{
  %s = compound.contract %q, %k : !q, !k -> !s
  %at_m = compound.index : !m
  %at_n = compound.index : !n
  %seen = compound.map ge %at_m, %at_n : !m, !n -> !b
  %low = compound.fill -1.7e+38 : !f
  %w = compound.map select %seen, %s, %low : !b, !s, !f -> !s
  %e = compound.map exp %w : !s -> !s
  %d = compound.contract %e, %q : !s, !q -> !k
  func.return %d : !k
}}"""
"""Scores, K x R heads, a mask; keys of which R x M queries after them see each."""

TWO_SOFTMAXES = """
!x = tensor<3x5x4xf32, #compound.dims<K, L, M>>
!r = tensor<5x4xf32, #compound.dims<L, M>>
!s = tensor<3x5xf32, #compound.dims<K, L>>
!z = tensor<4xf32, #compound.dims<M>>
func.func @f(%x: !x) -> !z {
  %m = compound.reduce max %x : !x -> !r
  %d = compound.map sub %x, %m : !x, !r -> !x
  %e = compound.map exp %d : !x -> !x
  %l = compound.reduce add %e : !x -> !r
  %p = compound.map div %e, %l : !x, !r -> !x
  %n = compound.reduce max %p : !x -> !s
  %c = compound.map sub %p, %n : !x, !s -> !x
  %f = compound.map exp %c : !x -> !x
  %k = compound.reduce add %f : !x -> !s
  %q = compound.map div %f, %k : !x, !s -> !x
  %z = compound.contract %q, %n : !x, !s -> !z
  func.return %z : !z
}
"""
"""Softmax along one dimension, then along another one, and a product with both."""

GRAPHS = {
    "gated_product": GATED_PRODUCT,
    "two_products": TWO_PRODUCTS,
    "attention": ATTENTION,
    "statistics": STATISTICS,
    "total": TOTAL,
    "renamed": RENAMED,
    "reduced_then_kept": REDUCED_THEN_KEPT,
    "each_kept_by_the_other": EACH_KEPT_BY_THE_OTHER,
    "key_gradients": KEY_GRADIENTS.format(M=6, N=6),
    "two_softmaxes": TWO_SOFTMAXES,
}


def kernels(text: str, options: str = "strategy=priority") -> list[list[str | None]]:
    """Return the names of what each kernel of a graph stores."""
    module = run_passes(
        parse_module(text), f"{H200},sink-renames,stream,fuse{{{options}}}"
    )
    nodes = [op for op in module.walk() if isinstance(op, SpatialOp)]
    return [[value.name_hint for value in node.outs] for node in nodes]


def simplified(text: str, pipeline: str) -> ModuleOp:
    """Return a module after some passes, simplified as `fuse` does first."""
    module = run_passes(parse_module(text), pipeline)
    for func in compute_functions(module):
        simplify(func)
    return module
