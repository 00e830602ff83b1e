"""The reference interpreter on tile trees: every combiner, iter_args, ragged tiles."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from semantics import assert_close, parse_module, random_inputs
from xdsl.utils.exceptions import InterpretationError, VerifyException

from comet.interpreter import run
from comet.interpreter.tensor import Array

GENERATOR = np.random.default_rng(7)
A, B = GENERATOR.standard_normal((5, 7)), GENERATOR.standard_normal((7, 11))

TYPES = """
!MK = tensor<5x7xf64, #compound.dims<M, K @GB>>
!KN = tensor<7x11xf64, #compound.dims<K, N @GB>>
!MN = tensor<5x11xf64, #compound.dims<M, N @GB>>
!M = tensor<5xf64, #compound.dims<M @GB>>
!MNt = tensor<2x4xf64, #compound.dims<M, N @OB>>
!Mt = tensor<2xf64, #compound.dims<M @OB>>
"""


def results(text: str, *inputs: Array, verify: bool = True) -> list[Array]:
    """Run `@f` of a module whose types are declared above."""
    return run(parse_module(TYPES + text, verify), "f", inputs)


def test_temporal_add_sums_short_tiles():
    text = """
!MKt = tensor<2x3xf64, #compound.dims<M, K @IB>>
!KNt = tensor<3x4xf64, #compound.dims<K, N @WB>>
func.func @f(%a: !MK, %b: !KN) -> !MN {
  %c = schedule.temporal [M = 3, N = 3, K = 3] ins(%a, %b : !MK, !KN) outs(!MN)
      combine ["add"] {
  ^bb0(%at: !MKt, %bt: !KNt):
    %ct = compound.contract %at, %bt : !MKt, !KNt -> !MNt
    schedule.yield %ct : !MNt
  }
  func.return %c : !MN
}
"""
    assert_close(results(text, A, B), [A @ B])


def test_spatial_tiles_may_be_short_or_empty():
    """N = 11 over 8 instances in tiles of 2: the sixth is short, two are empty."""
    text = """
collective.mesh @m {x = 4, y = 2}
!MNs = tensor<5x2xf64, #compound.dims<M, N @OB>>
!Ms = tensor<5xf64, #compound.dims<M @OB>>
func.func @f(%c: !MN) -> (!M, !M, !MN) {
  %max, %sum, %neg = schedule.spatial on @m [x: N = 4, y: N = 2] ins(%c : !MN)
      outs(!M, !M, !MN) combine ["max", "add", "none"] {
  ^bb0(%t: !MNs):
    %m = compound.reduce max %t : !MNs -> !Ms
    %s = compound.reduce add %t : !MNs -> !Ms
    %n = compound.map neg %t : !MNs -> !MNs
    schedule.yield %m, %s, %n : !Ms, !Ms, !MNs
  }
  func.return %max, %sum, %neg : !M, !M, !MN
}
"""
    c = A @ B
    assert_close(results(text, c), [c.max(axis=1), c.sum(axis=1), -c])


ONLINE_SOFTMAX = """
!MNp = tensor<2x11xf64, #compound.dims<M, N @GB>>
!Mp = tensor<2xf64, #compound.dims<M @GB>>
func.func @f(%c: !MN) -> (!M, !M, !MN) {
  %m, %l, %d = schedule.spatial on grid [g0: M = 3] ins(%c : !MN)
      outs(!M, !M, !MN) {
  ^bb0(%cp: !MNp):
    %low = compound.fill -1.0e30 : !Mt
    %zero = compound.fill 0.0 : !Mt
    %mp, %lp, %dp = schedule.temporal [N = 3] ins(%cp : !MNp)
        iter_args(%low, %zero : !Mt, !Mt) outs(!Mt, !Mt, !MNp)
        combine ["fold", "fold", "none"] {
    ^bb0(%t: !MNt, %m0: !Mt, %l0: !Mt):
      %mt = compound.reduce max %t : !MNt -> !Mt
      %m1 = compound.map max %m0, %mt : !Mt, !Mt -> !Mt
      %gap = compound.map sub %m0, %m1 : !Mt, !Mt -> !Mt
      %scale = compound.map exp %gap : !Mt -> !Mt
      %l1 = compound.map mult %l0, %scale : !Mt, !Mt -> !Mt
      %below = compound.map sub %t, %m1 : !MNt, !Mt -> !MNt
      %e = compound.map exp %below : !MNt -> !MNt
      %lt = compound.reduce add %e : !MNt -> !Mt
      %l2 = compound.map add %l1, %lt : !Mt, !Mt -> !Mt
      %double = compound.map add %t, %t : !MNt, !MNt -> !MNt
      schedule.yield %m1, %l2, %double : !Mt, !Mt, !MNt
    }
    schedule.yield %mp, %lp, %dp : !Mt, !Mt, !MNp
  }
  func.return %m, %l, %d : !M, !M, !MN
}
"""


def test_carries_run_tile_by_tile():
    c = A @ B
    maximum = c.max(axis=1)
    total = np.exp(c - maximum[:, None]).sum(axis=1)
    assert_close(results(ONLINE_SOFTMAX, c), [maximum, total, 2 * c])


def test_spatial_fold_merges_the_instances():
    """The fourth instance of N is short, the fifth empty: it yields its iter_arg."""
    text = """
collective.mesh @m {x = 5, y = 2}
!MNs = tensor<3x3xf64, #compound.dims<M, N @OB>>
!MNs2 = tensor<3x2xf64, #compound.dims<M, N @OB>>
!one = tensor<f64, #compound.dims<@OB>>
!Ms = tensor<3xf64, #compound.dims<M @OB>>
func.func @f(%c: !MN) -> !M {
  %r = schedule.spatial on @m [x: N = 5, y: M = 2] ins(%c : !MN) outs(!M)
      combine ["fold"] {
  ^bb0(%t: !MNs):
    %zero = compound.fill 0.0 : !Ms
    %s = schedule.temporal [N = 2] ins(%t : !MNs) iter_args(%zero : !Ms) outs(!Ms)
        combine ["fold"] {
    ^bb0(%t2: !MNs2, %old: !Ms):
      %one = compound.reduce add %t2 : !MNs2 -> !Ms
      %n = compound.extent "N" of %t2 : !MNs2 -> !one
      %two = compound.map add %one, %n : !Ms, !one -> !Ms
      %new = compound.map add %old, %two : !Ms, !Ms -> !Ms
      schedule.yield %new : !Ms
    }
    schedule.yield %s : !Ms
  } merge {
  ^bb0(%p: !Ms, %q: !Ms):
    %pq = compound.map add %p, %q : !Ms, !Ms -> !Ms
    compound.yield %pq : !Ms
  }
  func.return %r : !M
}
"""
    c = A @ B
    assert_close(results(text, c), [c.sum(axis=1) + 11])


SAME = """
collective.mesh @m {x = 2}
!MNs = tensor<5x6xf64, #compound.dims<M, N @GB>>
func.func @f(%c: !MN) -> !M {
  %r = schedule.spatial on @m [x: N = 2] ins(%c : !MN) outs(!M) combine ["same"] {
  ^bb0(%t: !MNs):
    %part = compound.reduce add %t : !MNs -> !M
    %all = collective.all_reduce add %part on @m ["x"] : !M -> !M
    schedule.yield %all : !M
  }
  func.return %r : !M
}
"""


@pytest.mark.parametrize("combiner", ["same", "root"])
def test_explicit_all_reduce_makes_all_instances_the_same(combiner: str):
    c = A @ B
    text = SAME.replace('"same"', f'"{combiner}"')
    assert_close(results(text, c), [c.sum(axis=1)])


def test_root_takes_instance_0():
    text = SAME.replace('"same"', '"root"').replace("yield %all", "yield %part")
    c = A @ B
    assert_close(results(text, c, verify=False), [c[:, :6].sum(axis=1)])


def test_a_gathered_result_is_taken_from_the_root():
    text = SAME.replace('"same"', '"root"').replace(
        '%all = collective.all_reduce add %part on @m ["x"] : !M -> !M',
        '%two = collective.gather "P" %part root 0 on @m ["x"] : !M -> !MP\n'
        "    %all = compound.reduce add %two : !MP -> !M",
    )
    text = "!MP = tensor<5x2xf64, #compound.dims<M, P @GB>>\n" + text
    c = A @ B
    assert_close(results(text, c), [c.sum(axis=1)])
    with pytest.raises(VerifyException, match="combines by same a result that needs"):
        results(text.replace('"root"', '"same"'), c)
    with pytest.raises(VerifyException, match="held by instance 1 of x only"):
        results(text.replace("root 0", "root 1"), c)


def test_same_is_checked():
    text = SAME.replace("yield %all", "yield %part")
    with pytest.raises(InterpretationError, match="is not the same in all tiles"):
        results(text, A @ B, verify=False)


def test_collective_on_an_axis_of_an_outer_node():
    """An all_reduce in a temporal loop over M names the axis of the node around it."""
    text = """
collective.mesh @m {x = 2}
!MNs = tensor<5x6xf64, #compound.dims<M, N @GB>>
!MNt2 = tensor<2x6xf64, #compound.dims<M, N @OB>>
func.func @f(%c: !MN) -> !MN {
  %r = schedule.spatial on @m [x: N = 2] ins(%c : !MN) outs(!MN) {
  ^bb0(%s: !MNs):
    %q = schedule.temporal [M = 3] ins(%s : !MNs) outs(!MNs) {
    ^bb0(%t: !MNt2):
      %part = compound.reduce max %t : !MNt2 -> !Mt
      %m = collective.all_reduce max %part on @m ["x"] : !Mt -> !Mt
      %d = compound.map sub %t, %m : !MNt2, !Mt -> !MNt2
      schedule.yield %d : !MNt2
    }
    schedule.yield %q : !MNs
  }
  func.return %r : !MN
}
"""
    c = A @ B
    assert_close(results(text, c), [c - c.max(axis=1, keepdims=True)])


def test_an_idle_axis_is_one_instance():
    """Nothing is split along it, so nothing is combined over it."""
    text = SAME.replace("[x: N = 2]", "[x: N = 1]").replace("5x6", "5x11")
    text = text.replace(' combine ["same"]', "").replace("yield %all", "yield %part")
    text = re.sub(r"%all = .*\n", "", text)
    c = A @ B
    assert_close(results(text, c), [c.sum(axis=1)])


@st.composite
def nests(draw: st.DrawFn) -> tuple[dict[str, int], str]:
    """Extents, and a softmax over N split over a mesh and cut into tiles."""
    extents = {dim: draw(st.integers(1, 9)) for dim in "MNK"}
    mesh = {axis: draw(st.integers(1, 3)) for axis in "xy"}
    share = -(-extents["N"] // (mesh["x"] * mesh["y"]))
    shares = extents | {"N": share}
    tile = {dim: draw(st.integers(1, shares[dim])) for dim in "MNK"}
    rows = ", ".join(f"{dim} = {-(-shares[dim] // tile[dim])}" for dim in "NKM")

    def type_(names: str, sizes: dict[str, int], level: str) -> str:
        shape = "".join(f"{sizes[name]}x" for name in names)
        return f"tensor<{shape}f64, #compound.dims<{', '.join(names)} @{level}>>"

    types = {
        f"!{names}{suffix}": type_(names, sizes, level)
        for names in ("MK", "KN", "MN", "M")
        for suffix, sizes, level in (
            ("g", extents, "GB"),
            ("s", shares, "GB"),
            ("t", tile, "OB"),
        )
    }
    head = "".join(f"{name} = {text}\n" for name, text in types.items())
    return (
        extents,
        f"""{head}
collective.mesh @m {{x = {mesh["x"]}, y = {mesh["y"]}}}
func.func @f(%a: !MKg, %b: !KNg) -> (!MNg, !Mg) {{
  %p, %l = schedule.spatial on @m [x: N = {mesh["x"]}, y: N = {mesh["y"]}]
      ins(%a, %b : !MKg, !KNg) outs(!MNg, !Mg) combine ["none", "add"] {{
  ^bb0(%as: !MKs, %bs: !KNs):
    %c = schedule.temporal [{rows}] ins(%as, %bs : !MKs, !KNs) outs(!MNs)
        combine ["add"] {{
    ^bb0(%at: !MKt, %bt: !KNt):
      %ct = compound.contract %at, %bt : !MKt, !KNt -> !MNt
      schedule.yield %ct : !MNt
    }}
    %m = compound.reduce max %c : !MNs -> !Ms
    %m1 = collective.all_reduce max %m on @m ["x", "y"] : !Ms -> !Ms
    %s = compound.map sub %c, %m1 : !MNs, !Ms -> !MNs
    %e = compound.map exp %s : !MNs -> !MNs
    %part = compound.reduce add %e : !MNs -> !Ms
    %all = collective.all_reduce add %part on @m ["x", "y"] : !Ms -> !Ms
    %d = compound.map div %e, %all : !MNs, !Ms -> !MNs
    schedule.yield %d, %part : !MNs, !Ms
  }}
  func.return %p, %l : !MNg, !Mg
}}
""",
    )


@given(nest=nests())
@settings(max_examples=30, deadline=None, derandomize=True)
def test_any_factors_compute_the_same(nest: tuple[dict[str, int], str]):
    extents, text = nest
    module = parse_module(text)
    a, b = random_inputs(module, "f", extents["M"])
    c = a @ b
    e = np.exp(c - c.max(axis=1, keepdims=True))
    total = e.sum(axis=1)
    assert_close(run(module, "f", [a, b]), [e / total[:, None], total])
