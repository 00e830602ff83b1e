"""The relative error that a check accepts grows with the roundings on the way."""

from math import sqrt
from pathlib import Path

import pytest
from covering import exhaustive
from gpu_graphs import H200
from semantics import parse_module
from triton_modules import check_all, emitted
from xdsl.dialects import func

from comet.codegen.rounding import expected_roundings
from comet.passes.analysis.functions import compute_functions
from comet.passes.graph.decompose import keep_reference

HALF, BRAIN, SINGLE = 2.0**-10, 2.0**-7, 2.0**-23
T = "tensor<64xbf16, #compound.dims<M>>"
SQUARES = f"""
func.func @f(%x: {T}) -> {T} {{
  %2 = compound.map mult %x, %x : {T}, {T} -> {T}
  %4 = compound.map mult %2, %2 : {T}, {T} -> {T}
  %8 = compound.map mult %4, %4 : {T}, {T} -> {T}
  %16 = compound.map mult %8, %8 : {T}, {T} -> {T}
  %32 = compound.map mult %16, %16 : {T}, {T} -> {T}
  func.return %32 : {T}
}}"""
"""The error of a square is twice that of its operand, and one rounding."""

TYPES = """
!MK = tensor<5x16xf16, #compound.dims<M, K>>
!KN = tensor<16x3xf16, #compound.dims<K, N>>
!W = tensor<5x3xf32, #compound.dims<M, N>>
!H = tensor<5x3xf16, #compound.dims<M, N>>
!M = tensor<5xf32, #compound.dims<M>>
!HN = tensor<3x4xf16, #compound.dims<N, L>>
!W2 = tensor<5x4xf32, #compound.dims<M, L>>
!H2 = tensor<5x4xf16, #compound.dims<M, L>>
"""
PRODUCT = "%c = compound.contract %a, %b : !MK, !KN -> !W\n"
CASES = {
    "sum": (PRODUCT + "func.return %c : !W", 4 * SINGLE),
    "cast": (
        PRODUCT + "%h = compound.cast %c : !W -> !H\nfunc.return %h : !H",
        4 * SINGLE + HALF,
    ),
    "wider": (
        PRODUCT
        + """%h = compound.cast %c : !W -> !H
        %w = compound.cast %h : !H -> !W
        %m = compound.reduce max %w : !W -> !M
        func.return %m : !M""",
        4 * SINGLE + HALF,
    ),
    "chain": (
        PRODUCT
        + """%h = compound.cast %c : !W -> !H
        %d = compound.contract %h, %e : !H, !HN -> !W2
        %k = compound.cast %d : !W2 -> !H2
        func.return %k : !H2""",
        (4 + sqrt(3)) * SINGLE + 2 * HALF,
    ),
    "root of a sum": (
        PRODUCT
        + """%s = compound.reduce add %c : !W -> !M
        %r = compound.map rsqrt %s : !M -> !M
        func.return %r : !M""",
        ((4 + sqrt(3)) / 2 + 1) * SINGLE,
    ),
    "argument": ("func.return %a : !MK", HALF),
}


def function_of(text: str) -> func.FuncOp:
    (function,) = compute_functions(parse_module(text))
    return function


@pytest.mark.parametrize("case", CASES)
def test_roundings_of_a_path_are_counted(case: str) -> None:
    body, expected = CASES[case]
    returned = body.rsplit(" ", 1)[1]
    text = (
        f"{TYPES}func.func @f(%a: !MK, %b: !KN, %e: !HN) -> {returned} {{\n{body}\n}}"
    )
    function = function_of(text)
    found = expected_roundings(function, tuple(function.function_type.outputs))
    assert found == [pytest.approx(expected)]


@exhaustive
def test_a_chain_in_a_narrow_type_is_right(tmp_path: Path) -> None:
    module = parse_module(SQUARES)
    (function,) = compute_functions(module)
    results = tuple(function.function_type.outputs)
    assert expected_roundings(function, results) == [31 * BRAIN]
    keep_reference(module, function)
    source = emitted(str(module), f"{H200},triton-distributed")
    wrong = source.replace("x_4 = ", "x_4 = 3 * ", 1)
    reports = check_all({"right": source, "wrong": wrong}, tmp_path)
    assert (reports["right"]["ok"], reports["wrong"]["ok"]) == (True, False)
    error = reports["right"]["max_error"]
    assert isinstance(error, float)
    assert error > 4 * BRAIN, "one rounding would have been too little to expect"
