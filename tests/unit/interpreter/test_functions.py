"""The reference interpreter on functions, graph ops and elementary ops."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from semantics import (
    assert_close,
    assert_same_meaning,
    parse_module,
    random_inputs,
)
from xdsl.utils.exceptions import InterpretationError

from comet.dialects.compound import MAP_ARITY, MapKind, ReduceKind
from comet.dialects.compound.map import COMPARISONS
from comet.interpreter import Steps, run
from comet.interpreter.compound import MAP
from comet.interpreter.tensor import NEUTRAL, REDUCE, Array

X = np.random.default_rng(11).standard_normal((3, 5))

TYPES = """
!MN = tensor<3x5xf32, #compound.dims<M, N>>
!NM = tensor<5x3xf32, #compound.dims<N, M>>
!M = tensor<3xf32, #compound.dims<M>>
!one = tensor<f32, #compound.dims<>>
"""


def result(body: str, out: str, *inputs: Array) -> Array:
    """Run `body` on `%x`, a `!MN`; it defines `%r` of type `out`."""
    text = f"""{TYPES}
func.func @f(%x: !MN) -> {out} {{
  {body}
  func.return %r : {out}
}}
"""
    return run(parse_module(text), "f", inputs or [X])[0]


def test_every_kind_has_a_meaning():
    assert MAP.keys() == set(MapKind) == MAP_ARITY.keys()
    assert {*EXPECTED, MapKind.SELECT, MapKind.RANDOM} == set(MapKind)
    assert REDUCE.keys() == NEUTRAL.keys() == set(ReduceKind)


def rsqrt(a: float) -> float:
    return 1 / math.sqrt(a)


EXPECTED: dict[MapKind, Callable[..., float]] = {
    MapKind.ADD: float.__add__,
    MapKind.SUB: float.__sub__,
    MapKind.MULT: float.__mul__,
    MapKind.DIV: float.__truediv__,
    MapKind.MAX: max,
    MapKind.MIN: min,
    MapKind.EXP: math.exp,
    MapKind.EXP2: math.exp2,
    MapKind.LOG: math.log,
    MapKind.SQRT: math.sqrt,
    MapKind.RSQRT: rsqrt,
    MapKind.NEG: float.__neg__,
    MapKind.TANH: math.tanh,
    MapKind.ERF: math.erf,
    MapKind.SIN: math.sin,
    MapKind.COS: math.cos,
    MapKind.COPY: float,
    MapKind.GE: float.__ge__,
    MapKind.GT: float.__gt__,
    MapKind.EQ: float.__eq__,
}
"""Of all functions of floats; `select` and `random` have tests of their own."""


@pytest.mark.parametrize("kind", EXPECTED)
def test_map_broadcasts_by_name(kind: MapKind):
    """The second operand is the first transposed, so order by name matters."""
    x = np.abs(X) + 0.1
    arity = MAP_ARITY[kind]
    operands = ("%y, %x", "!NM, !MN") if arity == 2 else ("%y", "!NM")
    out = "tensor<3x5xi1, #compound.dims<M, N>>" if kind in COMPARISONS else "!MN"
    text = f"""{TYPES}
func.func @f(%x: !MN, %y: !NM) -> {out} {{
  %r = compound.map {kind} {operands[0]} : {operands[1]} -> {out}
  func.return %r : {out}
}}
"""
    y = (x + 0.5 * np.cos(X)).T
    actual = run(parse_module(text), "f", [x, np.abs(y)])[0]
    columns = (np.abs(y).T.ravel(), x.ravel())[:arity]
    expected = [EXPECTED[kind](*values) for values in zip(*columns, strict=True)]
    assert_close([actual], [np.reshape(expected, (3, 5))])


def test_select_takes_what_the_other_case_hides():
    """Infinite numbers and NaN stay where they are, and do not spread."""
    body = """%n = compound.index : tensor<5xi32, #compound.dims<N>>
  %two = compound.fill 2.0 : tensor<i32, #compound.dims<>>
  %seen = compound.map ge %two, %n : tensor<i32, #compound.dims<>>,
      tensor<5xi32, #compound.dims<N>> -> tensor<5xi1, #compound.dims<N>>
  %low = compound.fill -1.0 : !one
  %r = compound.map select %seen, %x, %low : tensor<5xi1, #compound.dims<N>>, !MN, !one
      -> !MN"""
    x = X.copy()
    x[0, 3:] = np.inf, np.nan
    expected = np.where(np.arange(5) <= 2, X, -1.0)
    assert_close([result(body, "!MN", x)], [expected])


def test_contract_sums_what_the_result_lacks():
    body = """%y = compound.rename %x : !MN -> tensor<3x5xf32, #compound.dims<P, N>>
  %r = compound.contract %x, %y : !MN, tensor<3x5xf32, #compound.dims<P, N>>
      -> tensor<3x3xf32, #compound.dims<P, M>>"""
    expected = X @ X.T
    actual = result(body, "tensor<3x3xf32, #compound.dims<P, M>>")
    assert_close([actual], [expected.T])


def test_contract_keeps_batch_names():
    body = "%r = compound.contract %x, %x : !MN, !MN -> !M"
    assert_close([result(body, "!M")], [(X * X).sum(axis=1)])


@pytest.mark.parametrize(
    ("kind", "out", "expected"),
    [
        ("add", "!M", X.sum(axis=1)),
        ("max", "tensor<5xf32, #compound.dims<N>>", X.max(axis=0)),
        ("add", "!one", X.sum()),
    ],
)
def test_reduce(kind: str, out: str, expected: Array):
    body = f"%r = compound.reduce {kind} %x : !MN -> {out}"
    assert_close([result(body, out)], [np.asarray(expected)])


def test_reduce_may_reorder():
    out = "tensor<5x3xf32, #compound.dims<P, M>>"
    body = f"""%y = compound.rename %x : !MN -> tensor<3x5xf32, #compound.dims<M, P>>
  %p = compound.map mult %x, %y : !MN, tensor<3x5xf32, #compound.dims<M, P>>
      -> tensor<3x5x5xf32, #compound.dims<M, N, P>>
  %r = compound.reduce add %p : tensor<3x5x5xf32, #compound.dims<M, N, P>> -> {out}"""
    assert_close([result(body, out)], [(X.sum(axis=1)[:, None] * X).T])


def test_slices_are_joined_in_the_order_of_operands():
    part = "tensor<3x2xf32, #compound.dims<M, N>>"
    body = f"""%a = compound.slice %x "N" [3, 2] : !MN -> {part}
  %b = compound.slice %x "N" [0, 3] : !MN -> tensor<3x3xf32, #compound.dims<M, N>>
  %r = compound.concat "N" %a, %b
      : {part}, tensor<3x3xf32, #compound.dims<M, N>> -> !MN"""
    assert_close([result(body, "!MN")], [np.roll(X, 2, axis=1)])


def test_merged_dimensions_are_in_row_major_order():
    out = "tensor<15xf32, #compound.dims<E>>"
    body = f'%r = compound.rename %x merge "M" : !MN -> {out}'
    assert_close([result(body, out)], [X.reshape(15)])


def test_cast_does_not_round():
    out = "tensor<3x5xf16, #compound.dims<M, N>>"
    assert np.all(result(f"%r = compound.cast %x : !MN -> {out}", out) == X)


def test_fill_and_extent():
    body = """%n = compound.extent "N" of %x : !MN -> !one
  %half = compound.fill 0.5 : !M
  %r = compound.map mult %n, %half : !one, !M -> !M"""
    assert_close([result(body, "!M")], [np.full(3, 2.5)])


GRAPH = """
func.func @softmax(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>) -> tensor<3x5xf32> {
  %r = compound.gemm_softmax %a, %b
      : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  func.return %r : tensor<3x5xf32>
}
func.func @norm(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %g: tensor<5xf32>,
    %s: tensor<5xf32>) -> tensor<3x5xf32> {
  %r = compound.gemm_layernorm %a, %b, %g, %s epsilon 0.25
      : (tensor<3x4xf32>, tensor<4x5xf32>, tensor<5xf32>, tensor<5xf32>)
      -> tensor<3x5xf32>
  func.return %r : tensor<3x5xf32>
}
func.func @twice(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %c: tensor<5x2xf32>)
    -> (tensor<3x2xf32>, tensor<3x5xf32>) {
  %p = func.call @softmax(%a, %b)
      : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  %r = compound.gemm_softmax %p, %c
      : (tensor<3x5xf32>, tensor<5x2xf32>) -> tensor<3x2xf32>
  func.return %r, %p : tensor<3x2xf32>, tensor<3x5xf32>
}
func.func private @elsewhere(%a: tensor<3x4xf32>) -> tensor<3x4xf32>
"""


def softmax(x: Array) -> Array:
    weights = np.exp(x)
    return weights / weights.sum(axis=-1, keepdims=True)


def test_gemm_softmax_and_calls():
    module = parse_module(GRAPH)
    a, b, c = random_inputs(module, "twice")
    inner = softmax(a @ b)
    assert_close(run(module, "twice", [a, b, c]), [softmax(inner @ c), inner])


def test_gemm_layernorm():
    module = parse_module(GRAPH)
    a, b, gamma, beta = random_inputs(module, "norm")
    y = a @ b
    centred = y - y.sum(axis=1, keepdims=True) / 5
    variance = (centred**2).sum(axis=1, keepdims=True) / 5
    expected = centred / (variance + 0.25) ** 0.5 * gamma + beta
    assert_close(run(module, "norm", [a, b, gamma, beta]), [expected])


def test_same_meaning_sees_a_difference():
    module = parse_module(GRAPH)
    other = parse_module(GRAPH.replace("epsilon 0.25", "epsilon 0.26"))
    assert_same_meaning(module, module.clone(), "norm")
    with pytest.raises(AssertionError, match="differs by"):
        assert_same_meaning(module, other, "norm")


def test_close_rejects_nan():
    with pytest.raises(AssertionError):
        assert_close([np.array([np.nan])], [np.array([1.0])])


ERRORS = {
    "no function @none": ("none", [X]),
    "no function @elsewhere with a body": ("elsewhere", [np.zeros((3, 4))]),
    "@softmax takes 2 arguments, got 1": ("softmax", [X]),
    r"got an array of shape \(3, 5\)": ("softmax", [X, X]),
}


@pytest.mark.parametrize("message", ERRORS)
def test_arguments_that_do_not_fit(message: str):
    name, inputs = ERRORS[message]
    with pytest.raises(InterpretationError, match=message):
        run(parse_module(GRAPH), name, inputs)


def test_an_op_without_meaning():
    text = """
func.func @f(%a: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %r = "test.op"(%a) : (tensor<3x5xf32>) -> tensor<3x5xf32>
  func.return %r : tensor<3x5xf32>
}
"""
    with pytest.raises(InterpretationError, match=r"'test.op' op has no meaning"):
        run(parse_module(text), "f", [X])


def test_chunks_that_do_not_cover_the_dimension():
    body = """%zero = compound.fill 0.0 : !M
  %r = compound.fold over "N" ins(%x : !MN) init(%zero : !M) step {
  ^bb0(%t: !MN, %old: !M):
    %s = compound.reduce add %t : !MN -> !M
    %new = compound.map add %s, %old : !M, !M -> !M
    compound.yield %new : !M
  } merge {
  ^bb0(%a: !M, %b: !M):
    %c = compound.map add %a, %b : !M, !M -> !M
    compound.yield %c : !M
  } -> !M"""
    text = f"{TYPES}func.func @f(%x: !MN) -> !M {{ {body} func.return %r : !M }}"
    module = parse_module(text)
    assert_close(run(module, "f", [X]), [X.sum(axis=1)])
    with pytest.raises(InterpretationError, match="chunks hold 4 elements, N has 5"):
        run(module, "f", [X], chunks=lambda _: Steps((2, 2)))


def test_a_function_that_branches_has_no_meaning():
    text = """
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      "cf.br"() [^bb1] : () -> ()
    ^bb1:
      func.return %x : tensor<4xf32>
    }"""
    with pytest.raises(InterpretationError, match="@f branches, which has no meaning"):
        run(parse_module(text), "f", [np.zeros(4)])
