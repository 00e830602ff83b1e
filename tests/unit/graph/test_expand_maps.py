"""`expand-maps`: functions that COMET files do not have mean the same with others."""

import numpy as np
import pytest
from semantics import assert_same_meaning, parse_module, random_inputs, run_passes

from comet.dialects.comet.kinds import operation_kind
from comet.dialects.compound import ExtentOp, MapKind, MapOp
from comet.interpreter import run
from comet.passes.graph.expand_maps import EXPANSIONS, needs_expansion

APPROXIMATE = 1.5e-6
"""Largest error of `erf`, absolute: that of the formula, and that of small numbers."""

SHAPES = {1: "5", 2: "3x7", 4: "3x1x5x2", 8: "1x2x1x3x1x2x1x5"}


def program(kind: str, rank: int) -> str:
    """Return a function of values of both signs, the square of them for roots."""
    dims = ", ".join("ABCEFGHI"[:rank])
    of = "%s" if kind == "rsqrt" else "%x"
    operands = f"{of}, %s" if kind == "min" else of
    types = "!X, !X" if kind == "min" else "!X"
    return f"""
      !X = tensor<{SHAPES[rank]}xf32, #compound.dims<{dims}>>
      func.func @main(%x: !X) -> !X {{
        %s = compound.map mult %x, %x : !X, !X -> !X
        %y = compound.map {kind} {operands} : {types} -> !X
        func.return %y : !X
      }}"""


@pytest.mark.parametrize("rank", SHAPES)
@pytest.mark.parametrize("kind", [k for k in EXPANSIONS if k is not MapKind.ERF])
def test_a_function_means_the_same(kind: MapKind, rank: int):
    before = parse_module(program(str(kind), rank))
    after = run_passes(before, "expand-maps")
    assert not needs_expansion(after)
    for op in after.walk():
        assert not isinstance(op, MapOp) or operation_kind(op) is not None
    assert_same_meaning(before, after, "main")


MEAN = """
!X = tensor<3x16xf32, #compound.dims<M, N>>
!M = tensor<3xf32, #compound.dims<M>>
!s = tensor<f32, #compound.dims<>>
func.func @main(%x: !X) -> !M {
  %t = compound.map tanh %x : !X -> !X
  %n = compound.extent "N" of %t : !X -> !s
  %r = compound.reduce add %t : !X -> !M
  %m = compound.map div %r, %n : !M, !s -> !M
  func.return %m : !M
}
"""


def test_an_extent_is_a_number():
    before = parse_module(MEAN)
    after = run_passes(before, "expand-maps")
    assert not any(isinstance(op, ExtentOp) for op in after.walk())
    assert_same_meaning(before, after, "main")
    edge = 'attach-hardware{path="samples/hardware/edge.yaml"}'
    run_passes(before, f"{edge},comet-accelerator{{strategy=full pad=none}}")


def test_padding_hides_an_extent():
    padded = run_passes(parse_module(MEAN), 'pad{to="N=20"}')
    after = run_passes(padded, "expand-maps")
    assert_same_meaning(padded, after, "main")


@pytest.mark.parametrize("kind", [k for k in EXPANSIONS if k is not MapKind.ERF])
def test_dimensions_keep_the_order_of_the_result(kind: MapKind):
    """A map may transpose; the cast after it has the same order."""
    operands = "%x, %x" if kind is MapKind.MIN else "%x"
    types = "!X, !X" if kind is MapKind.MIN else "!X"
    before = parse_module(f"""
      !X = tensor<3x7xf32, #compound.dims<K, M>>
      !Y = tensor<7x3xf32, #compound.dims<M, K>>
      !Z = tensor<7x3xf16, #compound.dims<M, K>>
      func.func @main(%a: !X) -> !Z {{
        %x = compound.map exp %a : !X -> !X
        %y = compound.map {kind} {operands} : {types} -> !Y
        %z = compound.cast %y : !Y -> !Z
        func.return %z : !Z
      }}""")
    after = run_passes(before, "expand-maps")
    assert not needs_expansion(after)
    assert_same_meaning(before, after, "main")


@pytest.mark.parametrize("rank", SHAPES)
def test_the_error_function_is_close(rank: int):
    before = parse_module(program("erf", rank))
    after = run_passes(before, "expand-maps")
    inputs = random_inputs(before, "main")
    (wanted,), (found,) = run(before, "main", inputs), run(after, "main", inputs)
    assert np.max(np.abs(wanted - found)) <= APPROXIMATE


def test_the_error_function_is_close_everywhere():
    text = program("erf", 1).replace("5xf32", "20001xf32")
    before = parse_module(text)
    after = run_passes(before, "expand-maps")
    points = np.concatenate([np.linspace(-6, 6, 20000), [0.0]])
    (wanted,), (found,) = run(before, "main", [points]), run(after, "main", [points])
    assert np.max(np.abs(wanted - found)) <= APPROXIMATE
    assert found[-1] == 0.0


def test_large_numbers_have_their_limits():
    before = parse_module(program("tanh", 1).replace("5xf32", "2xf32"))
    (found,) = run(run_passes(before, "expand-maps"), "main", [[-1e4, 1e4]])
    assert found.tolist() == [-1.0, 1.0]
