"""`sink-casts`: views of values before casts, and casts of the views."""

import pytest
from paths import ROOT
from semantics import assert_same_meaning, parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp

from comet.dialects.compound import CastOp, View

TYPES = """
  !W = tensor<8x4xf32, #compound.dims<M, D>>
  !X = tensor<8x4xf16, #compound.dims<M, D>>
  !K = tensor<8x4xf16, #compound.dims<N, D>>
  !S = tensor<8x8xf32, #compound.dims<M, N>>
  !H = tensor<8x2x2xf16, #compound.dims<M, H, F>>
  !F = tensor<8x2x1xf16, #compound.dims<M, H, F>>
  !L = tensor<16x4xf16, #compound.dims<M, D>>
"""
SCORES = """
  func.func @main(%x: !W) -> (!S, !W) {
    %e = compound.map exp %x : !W -> !W
    %h = compound.cast %e : !W -> !X
    %k = compound.rename %h : !X -> !K
    %s = compound.contract %h, %k : !X, !K -> !S
    func.return %s, %e : !S, !W
  }"""
"""A product of a value with itself, in f16; in f32 the value is a result."""
HALVES = """
  func.func @main(%x: !W) -> !F {
    %h = compound.cast %x : !W -> !X
    %p = compound.rename %h split "D" : !X -> !H
    %f = compound.slice %p "F" [1, 1] : !H -> !F
    %y = compound.map exp %f : !F -> !F
    func.return %y : !F
  }"""
"""A view of a view of a cast."""
JOINED = """
  func.func @main(%x: !W, %y: !W) -> !L {
    %a = compound.cast %x : !W -> !X
    %b = compound.cast %y : !W -> !X
    %c = compound.concat "M" %a, %b : !X, !X -> !L
    %z = compound.map exp %c : !L -> !L
    func.return %z : !L
  }"""
"""Two casts as one value."""
STORED = """
  func.func @main(%x: !W) -> !S {
    %e = compound.map exp %x : !W -> !W
    %h = compound.cast %e : !W -> !X
    %k = compound.rename %h : !X -> !K
    %y = compound.map exp %h : !X -> !X
    %s = compound.contract %y, %k : !X, !K -> !S
    func.return %s : !S
  }"""
"""A cast that the op before it stores."""
PARTLY = """
  func.func @main(%x: !W, %b: !X) -> !L {
    %a = compound.cast %x : !W -> !X
    %c = compound.concat "M" %a, %b : !X, !X -> !L
    %z = compound.map exp %c : !L -> !L
    func.return %z : !L
  }"""
"""A cast and an argument as one value."""
EDGE = f'attach-hardware{{path="{ROOT / "samples/hardware/edge.yaml"}"}}'
FAST = "comet-accelerator{pad=none stream=false strategy=full}"


def shown_casts(module: ModuleOp) -> list[str | None]:
    """Return the names of casts that views show."""
    views = [op for op in module.walk() if isinstance(op, View)]
    shown = (value for view in views for value in view.operands)
    return [value.name_hint for value in shown if isinstance(value.owner, CastOp)]


@pytest.mark.parametrize("program", [SCORES, HALVES, JOINED])
def test_views_of_casts_are_casts_of_views(program: str):
    before = parse_module(TYPES + program)
    after = run_passes(before, "sink-casts")
    assert shown_casts(before)
    assert not shown_casts(after)
    assert_same_meaning(before, after, "main")


@pytest.mark.parametrize("program", [STORED, PARTLY])
def test_casts_that_are_stored_and_joined_with_others_stay(program: str):
    before = parse_module(TYPES + program)
    assert shown_casts(before)
    assert str(run_passes(before, "sink-casts")) == str(before)


@pytest.mark.parametrize("program", [SCORES, HALVES, JOINED])
def test_accelerators_take_views_of_casts(program: str):
    after = run_passes(parse_module(TYPES + program), f"{EDGE},{FAST}")
    assert "comet.mapping" in str(after)
