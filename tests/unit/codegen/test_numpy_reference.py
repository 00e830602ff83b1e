"""The reference that emitted modules carry means what the interpreter says."""

import warnings
from collections.abc import Callable
from typing import cast

import numpy as np
import pytest
from semantics import assert_close, parse_module, random_inputs
from xdsl.dialects import func
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import DiagnosticException

from comet.codegen.numpy_reference import (
    MAP_TEXT,
    REDUCE_TEXT,
    ReferencePrinter,
    summed_terms,
)
from comet.dialects.compound import MAP_ARITY, MapKind, ReduceKind
from comet.interpreter import run
from comet.interpreter.tensor import Array

TYPES = """
!MK = tensor<3x4xf64, #compound.dims<M, K>>
!KN = tensor<4x5xf64, #compound.dims<K, N>>
!NM = tensor<5x3xf64, #compound.dims<N, M>>
!MN = tensor<3x5xf64, #compound.dims<M, N>>
!MP = tensor<3x5xf64, #compound.dims<M, P>>
!M = tensor<3xf64, #compound.dims<M>>
!LARGE = tensor<4x8xf64, #compound.dims<M, N>>
!LONG = tensor<4xf64, #compound.dims<M>>
!B = tensor<3x5xi1, #compound.dims<M, N>>
!L = tensor<3xi32, #compound.dims<M>>
!B32 = tensor<3x5xf32, #compound.dims<M, N>>
!L32 = tensor<3xf32, #compound.dims<M>>
!one = tensor<f64, #compound.dims<>>
!X1 = tensor<1x1xf64, #compound.dims<M, N>>
!X2 = tensor<1xf64, #compound.dims<M>>
"""

FUNCTIONS = {
    "product": """
      func.func @f(%a: !MK, %b: !KN) -> (!MN, !NM, !one) {
        %c = compound.contract %a, %b : !MK, !KN -> !MN
        %d = compound.contract %a, %b : !MK, !KN -> !NM
        %e = compound.contract %c, %d : !MN, !NM -> !one
        func.return %c, %d, %e : !MN, !NM, !one
      }""",
    "broadcast": """
      func.func @f(%x: !MN, %y: !NM, %m: !M) -> (!MN, !NM) {
        %two = compound.fill 2.0 : !one
        %all = compound.fill 0.5 : !M
        %n = compound.extent "N" of %x : !MN -> !one
        %a = compound.map add %x, %y : !MN, !NM -> !MN
        %b = compound.map sub %a, %m : !MN, !M -> !MN
        %c = compound.map mult %b, %two : !MN, !one -> !MN
        %d = compound.map div %c, %n : !MN, !one -> !MN
        %e = compound.map max %d, %all : !MN, !M -> !MN
        %f = compound.map min %y, %m : !NM, !M -> !NM
        func.return %e, %f : !MN, !NM
      }""",
    "one element": """
      func.func @f(%x: !X1, %y: !X1) -> (!X1, !X1, !X2) {
        %g = compound.map ge %x, %y : !X1, !X1 -> tensor<1x1xi1, #compound.dims<M, N>>
        %h = compound.map select %g, %x, %y
          : tensor<1x1xi1, #compound.dims<M, N>>, !X1, !X1 -> !X1
        %c = compound.cast %g : tensor<1x1xi1, #compound.dims<M, N>> -> !X1
        %i = compound.fill 0.0 : tensor<i32, #compound.dims<>>
        %r = compound.gather %x, %i along "N" : !X1, tensor<i32, #compound.dims<>>
          -> !X2
        func.return %c, %h, %r : !X1, !X1, !X2
      }""",
    "functions": """
      func.func @f(%x: !M) -> (!M, !M, !M) {
        %square = compound.map mult %x, %x : !M, !M -> !M
        %one = compound.fill 1.0 : !one
        %y = compound.map add %square, %one : !M, !one -> !M
        %a = compound.map log %y : !M -> !M
        %b = compound.map sqrt %y : !M -> !M
        %c = compound.map rsqrt %y : !M -> !M
        %d = compound.map exp %x : !M -> !M
        %e = compound.map neg %d : !M -> !M
        %f = compound.map tanh %x : !M -> !M
        %g = compound.map erf %x : !M -> !M
        %ab = compound.map sub %a, %b : !M, !M -> !M
        %ce = compound.map div %c, %e : !M, !M -> !M
        %whole = compound.cast %e : !M -> tensor<3xi64, #compound.dims<M>>
        %h = compound.cast %whole : tensor<3xi64, #compound.dims<M>> -> !M
        %sin = compound.map sin %x : !M -> !M
        %cos = compound.map cos %sin : !M -> !M
        %turned = compound.map add %g, %cos : !M, !M -> !M
        %i = compound.map add %turned, %h : !M, !M -> !M
        %fg = compound.map mult %f, %i : !M, !M -> !M
        func.return %ab, %ce, %fg : !M, !M, !M
      }""",
    "conditions": """
      func.func @f(%x: !MN, %y: !NM, %l: !L) -> (!MN, !MN) {
        %n = compound.index : tensor<5xi32, #compound.dims<N>>
        %one = compound.fill 1.0 : tensor<i32, #compound.dims<>>
        %next = compound.map add %n, %one : tensor<5xi32, #compound.dims<N>>,
            tensor<i32, #compound.dims<>> -> tensor<5xi32, #compound.dims<N>>
        %a = compound.map ge %l, %next : !L,
            tensor<5xi32, #compound.dims<N>> -> !B
        %b = compound.map gt %x, %y : !MN, !NM -> !B
        %c = compound.map eq %a, %b : !B, !B -> !B
        %d = compound.map select %a, %b, %c : !B, !B, !B -> !B
        %e = compound.map select %d, %x, %y : !B, !MN, !NM -> !MN
        %ones = compound.cast %a : !B -> !MN
        %twos = compound.map add %ones, %ones : !MN, !MN -> !MN
        func.return %e, %twos : !MN, !MN
      }""",
    "random numbers": """
      func.func @f(%l: !L) -> (!B32, !L32) {
        %n = compound.index : tensor<5xi32, #compound.dims<N>>
        %seed = compound.fill -7.0 : tensor<i64, #compound.dims<>>
        %a = compound.map random %l, %n : !L, tensor<5xi32, #compound.dims<N>> -> !B32
        %b = compound.map random %seed, %l : tensor<i64, #compound.dims<>>, !L -> !L32
        func.return %a, %b : !B32, !L32
      }""",
    "reduction": """
      func.func @f(%x: !MN) -> (!M, !one, !MP) {
        %a = compound.reduce max %x : !MN -> !M
        %b = compound.reduce add %x : !MN -> !one
        %c = compound.rename %x : !MN -> !MP
        func.return %a, %b, %c : !M, !one, !MP
      }""",
    "parts": """
      func.func @f(%x: !MN, %y: !LARGE) -> (!MN, !LARGE, !MN) {
        %a = compound.slice %x "N" [1, 3] : !MN -> tensor<3x3xf64, #compound.dims<M, N>>
        %b = compound.slice %x "N" [4, 1] : !MN -> tensor<3x1xf64, #compound.dims<M, N>>
        %c = compound.concat "N" %b, %a, %b : tensor<3x1xf64, #compound.dims<M, N>>,
          tensor<3x3xf64, #compound.dims<M, N>>, tensor<3x1xf64, #compound.dims<M, N>>
          -> !MN
        %d = compound.rename %y split "N"
          : !LARGE -> tensor<4x2x4xf64, #compound.dims<M, P, Q>>
        %e = compound.map exp %d : tensor<4x2x4xf64, #compound.dims<M, P, Q>>
          -> tensor<2x4x4xf64, #compound.dims<P, M, Q>>
        %f = compound.rename %e merge "P" : tensor<2x4x4xf64, #compound.dims<P, M, Q>>
          -> tensor<8x4xf64, #compound.dims<N, M>>
        %g = compound.map neg %f : tensor<8x4xf64, #compound.dims<N, M>> -> !LARGE
        %h = compound.slice %g "N" [2, 5]
          : !LARGE -> tensor<4x5xf64, #compound.dims<M, N>>
        %i = compound.slice %h : tensor<4x5xf64, #compound.dims<M, N>> -> !MN
        func.return %c, %g, %i : !MN, !LARGE, !MN
      }""",
    "padding": """
      func.func @f(%x: !MN) -> (!M, !MN) {
        %a = compound.pad %x <0.0 from M = 3, N = 5> : !MN -> !LARGE
        %b = compound.pad %a <-inf from N = 5> : !LARGE -> !LARGE
        %top = compound.reduce max %b : !LARGE -> !LONG
        %sum = compound.reduce add %a : !LARGE -> !LONG
        %e = compound.map exp %b : !LARGE -> !LARGE
        %c = compound.map mult %top, %sum : !LONG, !LONG -> !LONG
        %d = compound.slice %c : !LONG -> !M
        %f = compound.slice %e : !LARGE -> !MN
        func.return %d, %f : !M, !MN
      }""",
    "fold": """
      func.func @f(%x: !MN) -> !M {
        %zero = compound.fill 0.0 : !M
        %s = compound.fold over "N" ins(%x : !MN) init(%zero : !M) step {
        ^bb0(%t: !MN, %s0: !M):
          %part = compound.reduce add %t : !MN -> !M
          %s1 = compound.map add %s0, %part : !M, !M -> !M
          compound.yield %s1 : !M
        } merge {
        ^bb1(%p: !M, %q: !M):
          %s2 = compound.map add %p, %q : !M, !M -> !M
          compound.yield %s2 : !M
        } -> !M
        func.return %s : !M
      }""",
}


def parsed(text: str) -> func.FuncOp:
    """Return the function @f of IR text."""
    function = SymbolTable.lookup_symbol(parse_module(TYPES + text), "f")
    assert isinstance(function, func.FuncOp)
    return function


def executed(function: func.FuncOp) -> Callable[..., Array | tuple[Array, ...]]:
    """Print the function as Python, and return what Python makes of it."""
    namespace: dict[str, object] = {}
    source = "\n".join(ReferencePrinter(function).lines())
    imports = "import math\nimport numpy as np\nfrom comet.philox import philox"
    exec(f"{imports}\n{source}", namespace)
    return cast("Callable[..., Array | tuple[Array, ...]]", namespace["f"])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_printed_function_agrees_with_the_interpreter(name: str):
    module = parse_module(TYPES + FUNCTIONS[name])
    inputs = random_inputs(module, "f")
    results = executed(parsed(FUNCTIONS[name]))(*inputs)
    found = results if isinstance(results, tuple) else (results,)
    assert_close([np.asarray(x) for x in found], run(module, "f", inputs))


def test_a_condition_of_one_element_keeps_its_axes():
    """Conversions to numpy scalars drop them, unless warnings are errors as here."""
    ones = np.ones((1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        condition, *_ = executed(parsed(FUNCTIONS["one element"]))(ones, ones)
    assert np.asarray(condition).shape == (1, 1)


def test_sums_are_counted():
    function = parsed(FUNCTIONS["product"])
    a, b = function.body.block.args
    terms = summed_terms(function)
    assert (terms[a], terms[b]) == (4, 4)


def test_other_levels_are_an_error():
    function = parsed('func.func @f(%x: !M) { "test.op"() : () -> () func.return }')
    with pytest.raises(DiagnosticException, match=r"test\.op in @f is not elementary"):
        ReferencePrinter(function).lines()


def test_tables_are_total():
    arities = {kind: text.count("{}") for kind, text in MAP_TEXT.items()}
    assert arities == dict(MAP_ARITY)
    assert set(REDUCE_TEXT) == set(ReduceKind)
    assert set(MAP_TEXT) == set(MapKind)
