"""The triton target: expressions, names, errors."""

import ast
import re
from io import StringIO

import pytest
from semantics import comet_context, parse_module
from xdsl.utils.exceptions import DiagnosticException

from comet.codegen.triton import TritonTarget
from comet.codegen.triton.expressions import (
    CALLED,
    COMPARE,
    INFIX,
    REDUCE,
    UNARY,
    shortest,
)
from comet.dialects.tl.types import BinaryKind, CompareKind, ReduceKind, UnaryKind

HOST = """
func.func @f(%x: tensor<16xf32>) -> tensor<16xf32> {
  %y = tl.empty : tensor<16xf32>
  tl.launch @k grid [1] on %x, %y : tensor<16xf32>, tensor<16xf32>
  func.return %y : tensor<16xf32>
}
func.func private @f__reference(%x: tensor<16xf32, #compound.dims<M>>)
    -> tensor<16xf32, #compound.dims<M>> attributes {comet.reference} {
  func.return %x : tensor<16xf32, #compound.dims<M>>
}
"""


def printed(text: str) -> str:
    """Print IR text as a Triton module, which is Python at least."""
    output = StringIO()
    TritonTarget().emit(comet_context(), parse_module(text), output)
    ast.parse(output.getvalue())
    return output.getvalue()


def kernel_lines(body: str) -> list[str]:
    """Print a kernel of one input and one output; return the lines of its body."""
    parameters = "%x_ptr: !tl.ptr<f32>, %y_ptr: !tl.ptr<f32>, %BLOCK: !tl.constexpr<16>"
    source = printed(f"tl.kernel @k({parameters}) {{ {body} }} {HOST}")
    lines = source.split("def k(")[1].split("\n\n\n")[0].splitlines()
    return [line.removeprefix("    ") for line in lines[1:]]


def test_operators_keep_their_grouping():
    lines = kernel_lines(
        """
        %a = tl.program_id 0
        %b = tl.num_programs 1
        %0 = tl.binary add %a, %b : (i32, i32) -> i32
        %1 = tl.binary mul %0, %a : (i32, i32) -> i32
        %2 = tl.binary sub %b, %1 : (i32, i32) -> i32
        %3 = tl.binary sub %a, %2 : (i32, i32) -> i32
        %4 = tl.binary mod %3, %b : (i32, i32) -> i32
        %c = tl.binary floordiv %4, %BLOCK : (i32, !tl.constexpr<16>) -> i32
        %5 = tl.cmp lt %a, %b : (i32, i32) -> i1
        %6 = tl.cmp ge %a, %c : (i32, i32) -> i1
        %7 = tl.cmp eq %b, %c : (i32, i32) -> i1
        %8 = tl.binary or %5, %6 : (i1, i1) -> i1
        %d = tl.binary and %8, %7 : (i1, i1) -> i1
        """
    )
    assert lines == [
        "a = tl.program_id(0)",
        "b = tl.num_programs(1)",
        "c = (a - (b - (a + b) * a)) % b // BLOCK",
        "d = ((a < b) | (a >= c)) & (b == c)",
    ]


def test_functions_of_triton():
    lines = kernel_lines(
        """
        %x = tl.load %x_ptr : !tl.ptr<f32> -> f32
        %0 = tl.unary neg %x : f32 -> f32
        %a = tl.unary exp2 %0 : f32 -> f32
        %1 = tl.binary max %x, %a : (f32, f32) -> f32
        %2 = tl.unary neg %1 : f32 -> f32
        %b = tl.binary min %2, %x : (f32, f32) -> f32
        %w = tl.full -1.5 : f32 dims %BLOCK : !tl.constexpr<16> -> tensor<16xf32>
        %3 = tl.expand_dims %w [0] : tensor<16xf32> -> tensor<1x16xf32>
        %c = tl.broadcast_to %3 to %BLOCK, %BLOCK
          : tensor<1x16xf32>, !tl.constexpr<16>, !tl.constexpr<16> -> tensor<16x16xf32>
        %d = tl.permute %c [1, 0] : tensor<16x16xf32> -> tensor<16x16xf32>
        %4 = tl.dot %c, %d precision tf32x3
          : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
        %e = tl.reduce min %4 axis 0 : tensor<16x16xf32> -> tensor<16xf32>
        %f = tl.expand_dims %d [0] : tensor<16x16xf32> -> tensor<1x16x16xf32>
        %g = tl.permute %f [2, 0, 1] : tensor<1x16x16xf32> -> tensor<16x1x16xf32>
        tl.debug_barrier
        tl.store %y_ptr, %b : !tl.ptr<f32>, f32
        """
    )
    assert lines == [
        "x = tl.load(x_ptr)",
        "a = tl.exp2(-x)",
        "b = tl.minimum(",
        "    -tl.maximum(x, a, propagate_nan=tl.PropagateNan.ALL),",
        "    x,",
        "    propagate_nan=tl.PropagateNan.ALL,",
        ")",
        "w = tl.full((BLOCK,), -1.5, dtype=tl.float32)",
        "c = tl.broadcast_to(w[None, :], (BLOCK, BLOCK))",
        "d = tl.trans(c)",
        'e = tl.min(tl.dot(c, d, input_precision="tf32x3"), axis=0)',
        "f = d[None, :, :]",
        "g = tl.permute(f, (2, 0, 1))",
        "tl.debug_barrier()",
        "tl.store(y_ptr, b)",
    ]


def test_swapped_carries_are_assigned_together():
    lines = kernel_lines(
        """
        %zero = tl.constant 0 : i32
        %one = tl.load %x_ptr : !tl.ptr<f32> -> f32
        %two = tl.load %y_ptr : !tl.ptr<f32> -> f32
        %p, %q = tl.for %i : i32 = %zero : i32 to %BLOCK : !tl.constexpr<16>
            step %BLOCK : !tl.constexpr<16> iter_args(%a = %one, %b = %two)
            -> (f32, f32) {
          tl.yield %b, %a : f32, f32
        }
        %0 = tl.binary add %p, %q : (f32, f32) -> f32
        tl.store %y_ptr, %0 : !tl.ptr<f32>, f32
        """
    )
    assert lines == [
        "one = tl.load(x_ptr)",
        "two = tl.load(y_ptr)",
        "",
        "a = one",
        "b = two",
        "for i in range(0, BLOCK, BLOCK):",
        "    a, b = b, a",
        "",
        "tl.store(y_ptr, a + b)",
    ]


def test_names_are_python_and_distinct():
    lines = kernel_lines(
        """
        %lambda = tl.program_id 0
        %tl = tl.binary add %lambda, %lambda : (i32, i32) -> i32
        %x_ptr_0 = tl.binary add %tl, %tl : (i32, i32) -> i32
        %sum = tl.binary add %x_ptr_0, %tl : (i32, i32) -> i32
        """
    )
    assert lines == [
        "lambda_1 = tl.program_id(0)",
        "tl_1 = lambda_1 + lambda_1",
        "x_ptr_1 = tl_1 + tl_1",
        "sum_1 = x_ptr_1 + tl_1",
    ]


def plan_of_one_rank(function: str, argument: str) -> str:
    """Print a module whose launch plan is a class."""
    tensor = "tensor<16xf32, #compound.dims<M>>"
    return printed(f"""
    tl.kernel @k(%x_ptr: !tl.ptr<f32>) {{}}
    func.func @{function}(%x: {tensor}) -> {tensor} {{
      %y = tl.plan ranks 1 ins(%x : {tensor}) split [""] to [""] {{
      ^bb0(%{argument}: {tensor}):
        tl.launch @k grid [1] on %{argument} : {tensor}
        tl.plan_yield %{argument} : {tensor}
      }} -> {tensor}
      func.return %y : {tensor}
    }}
    func.func private @{function}__reference(%x: {tensor}) -> {tensor}
        attributes {{comet.reference}} {{
      func.return %x : {tensor}
    }}""")


def test_an_argument_of_a_plan_does_not_hide_a_kernel():
    assert "rank.launch(k, (1,), k_1, " in plan_of_one_rank("f", "k")


@pytest.mark.parametrize("name", ["tensor", "rank_program"])
def test_the_class_of_a_plan_does_not_hide_those_of_the_runtime(name: str):
    source = plan_of_one_rank(name, "local")
    (plan,) = re.findall(r"^class (\w+):", source, re.MULTILINE)
    assert plan.endswith("Plan")
    assert f"plan={plan}," in source


def test_empty_kernel():
    assert kernel_lines("") == ["pass"]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.1, "0.1"),
        (1 / 257, "0.0038910506"),
        (-3.4028234663852886e38, "-3.402823466e+38"),
        (1e-45, "1e-45"),
        (1.0, "1.0"),
    ],
)
def test_shortest_decimal(number: float, text: str):
    assert shortest(number) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a function is printed, and this module has none; print a"),
        (HOST.split("func.func private")[0].replace("@k", "@f2"), "no private"),
        (
            "func.func @f() { func.return }\n" + HOST.replace("@f(", "@g("),
            "has 2; keep one",
        ),
        (
            "func.func @f() { func.return }\n"
            "func.func private @f__reference() attributes {comet.reference} "
            "{ func.return }",
            "@f takes no tensor",
        ),
    ],
)
def test_what_is_no_program_is_an_error(text: str, message: str):
    kernel = "tl.kernel @{}(%x: !tl.ptr<f32>, %y: !tl.ptr<f32>) {{}}\n"
    with pytest.raises(DiagnosticException, match=message):
        printed(kernel.format("k") + kernel.format("f2") + text)


def test_other_levels_are_an_error():
    level = HOST.replace(
        "tl.launch @k grid [1] on %x, %y : tensor<16xf32>, tensor<16xf32>",
        '"test.op"() : () -> ()',
    )
    with pytest.raises(DiagnosticException, match=r"test\.op in @f is no part of"):
        printed(level)
    with pytest.raises(DiagnosticException, match=r"test\.op cannot be printed"):
        kernel_lines('%z = "test.op"() : () -> f32')


@pytest.mark.parametrize("name", ["torch", "allow_descriptors", "lambda", "f.g"])
def test_names_that_python_cannot_have_are_an_error(name: str):
    renamed = HOST.replace("@f__", f'@"{name}__').replace(
        "__reference(", '__reference"('
    )
    renamed = renamed.replace("@f(", f'@"{name}"(')
    kernel = "tl.kernel @k(%x: !tl.ptr<f32>, %y: !tl.ptr<f32>) {}\n"
    with pytest.raises(DiagnosticException, match=f"@{name} cannot be the name"):
        printed(kernel + renamed)


def test_unsupported_element_type_is_an_error():
    with pytest.raises(DiagnosticException, match="no element type f64"):
        printed(HOST.replace("xf32", "xf64").replace("tl.launch", "// "))


def test_tables_are_total():
    assert set(UNARY) == set(UnaryKind) - {UnaryKind.NEG}
    assert set(INFIX) | set(CALLED) == set(BinaryKind)
    assert set(COMPARE) == set(CompareKind)
    assert set(REDUCE) == set(ReduceKind)
