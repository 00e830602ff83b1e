"""Property: any chunking and any tree of merges of a fold give the same value."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from semantics import assert_close, parse_module

from comet.interpreter import FoldTree, Merge, Steps, run

EXTENT = 7

TYPES = f"""
!MN = tensor<3x{EXTENT}xf64, #compound.dims<M, N>>
!M = tensor<3xf64, #compound.dims<M>>
!one = tensor<f64, #compound.dims<>>
"""

ONLINE_SOFTMAX = """
func.func @f(%x: !MN) -> (!M, !M) {
  %low = compound.fill -1.0e30 : !M
  %zero = compound.fill 0.0 : !M
  %m, %l = compound.fold over "N" ins(%x : !MN) init(%low, %zero : !M, !M) step {
  ^bb0(%t: !MN, %m0: !M, %l0: !M):
    %mt = compound.reduce max %t : !MN -> !M
    %m1 = compound.map max %m0, %mt : !M, !M -> !M
    %gap = compound.map sub %m0, %m1 : !M, !M -> !M
    %scale = compound.map exp %gap : !M -> !M
    %l1 = compound.map mult %l0, %scale : !M, !M -> !M
    %below = compound.map sub %t, %m1 : !MN, !M -> !MN
    %e = compound.map exp %below : !MN -> !MN
    %lt = compound.reduce add %e : !MN -> !M
    %l2 = compound.map add %l1, %lt : !M, !M -> !M
    compound.yield %m1, %l2 : !M, !M
  } merge {
  ^bb0(%ma: !M, %la: !M, %mb: !M, %lb: !M):
    %m1 = compound.map max %ma, %mb : !M, !M -> !M
    %da = compound.map sub %ma, %m1 : !M, !M -> !M
    %db = compound.map sub %mb, %m1 : !M, !M -> !M
    %ea = compound.map exp %da : !M -> !M
    %eb = compound.map exp %db : !M -> !M
    %sa = compound.map mult %la, %ea : !M, !M -> !M
    %sb = compound.map mult %lb, %eb : !M, !M -> !M
    %l1 = compound.map add %sa, %sb : !M, !M -> !M
    compound.yield %m1, %l1 : !M, !M
  } -> !M, !M
  func.return %m, %l : !M, !M
}
"""

WELFORD = """
func.func @f(%x: !MN) -> (!one, !M, !M) {
  %none = compound.fill 0.0 : !one
  %zero = compound.fill 0.0 : !M
  %n, %mean, %m2 = compound.fold over "N" ins(%x : !MN)
      init(%none, %zero, %zero : !one, !M, !M) step {
  ^bb0(%t: !MN, %n0: !one, %u0: !M, %s0: !M):
    %k = compound.extent "N" of %t : !MN -> !one
    %n1 = compound.map add %n0, %k : !one, !one -> !one
    %off = compound.map sub %t, %u0 : !MN, !M -> !MN
    %shift = compound.reduce add %off : !MN -> !M
    %du = compound.map div %shift, %n1 : !M, !one -> !M
    %u1 = compound.map add %u0, %du : !M, !M -> !M
    %off1 = compound.map sub %t, %u1 : !MN, !M -> !MN
    %prod = compound.map mult %off, %off1 : !MN, !MN -> !MN
    %ds = compound.reduce add %prod : !MN -> !M
    %s1 = compound.map add %s0, %ds : !M, !M -> !M
    compound.yield %n1, %u1, %s1 : !one, !M, !M
  } merge {
  ^bb0(%na: !one, %ua: !M, %sa: !M, %nb: !one, %ub: !M, %sb: !M):
    %n1 = compound.map add %na, %nb : !one, !one -> !one
    %least = compound.fill 1.0 : !one
    %n2 = compound.map max %n1, %least : !one, !one -> !one
    %d = compound.map sub %ub, %ua : !M, !M -> !M
    %fraction = compound.map div %nb, %n2 : !one, !one -> !one
    %du = compound.map mult %d, %fraction : !M, !one -> !M
    %u1 = compound.map add %ua, %du : !M, !M -> !M
    %weight = compound.map mult %na, %fraction : !one, !one -> !one
    %dd = compound.map mult %d, %d : !M, !M -> !M
    %ds = compound.map mult %dd, %weight : !M, !one -> !M
    %s0 = compound.map add %sa, %sb : !M, !M -> !M
    %s1 = compound.map add %s0, %ds : !M, !M -> !M
    compound.yield %n1, %u1, %s1 : !one, !M, !M
  } -> !one, !M, !M
  func.return %n, %mean, %m2 : !one, !M, !M
}
"""


@st.composite
def sizes(draw: st.DrawFn, extent: int) -> tuple[int, ...]:
    """Chunk sizes, some of them 0, that sum to `extent`."""
    cuts = sorted(draw(st.lists(st.integers(0, extent), max_size=4)))
    edges = [0, *cuts, extent]
    return tuple(b - a for a, b in pairwise(edges))


@st.composite
def trees(draw: st.DrawFn, extent: int, depth: int = 3) -> FoldTree:
    """Any tree that consumes `extent` elements; partials may be empty."""
    if depth == 0 or draw(st.booleans()):
        return Steps(draw(sizes(extent)))
    left = draw(st.integers(0, extent))
    return Merge(
        draw(trees(left, depth - 1)),
        draw(trees(extent - left, depth - 1)),
    )


@given(tree=trees(EXTENT), seed=st.integers(0, 2**31))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_online_softmax(tree: FoldTree, seed: int):
    x = np.random.default_rng(seed).standard_normal((3, EXTENT)) * 10
    maximum = x.max(axis=1)
    total = np.exp(x - maximum[:, None]).sum(axis=1)
    module = parse_module(TYPES + ONLINE_SOFTMAX)
    assert_close(run(module, "f", [x], chunks=lambda _: tree), [maximum, total])


@given(tree=trees(EXTENT), seed=st.integers(0, 2**31))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_welford(tree: FoldTree, seed: int):
    x = np.random.default_rng(seed).standard_normal((3, EXTENT)) + 3
    expected = [np.array(float(EXTENT)), x.mean(axis=1), EXTENT * x.var(axis=1)]
    module = parse_module(TYPES + WELFORD)
    assert_close(run(module, "f", [x], chunks=lambda _: tree), expected)


def test_an_init_that_is_not_neutral_shows():
    """A fold that starts from 1 instead of 0 differs between two trees."""
    text = TYPES + ONLINE_SOFTMAX.replace("fill 0.0", "fill 1.0").replace(
        "-1.0e30", "-1.0"
    )
    module, x = parse_module(text), np.zeros((3, EXTENT))
    one = run(module, "f", [x])[1]
    split = run(module, "f", [x], chunks=lambda _: Merge(Steps((3,)), Steps((4,))))[1]
    assert not np.allclose(one, split)
