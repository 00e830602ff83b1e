"""Conditions, positions and selections in Triton kernels."""

from pathlib import Path

import pytest
from triton_modules import check_all, compile_all, emitted, hardware

ONE_GPU = f"{hardware('h200x1.yaml')},triton-distributed{{strategy=full}}"

TYPES = """
!x = tensor<33x50xf16, #compound.dims<M, N>>
!b = tensor<33x50xi1, #compound.dims<M, N>>
!m = tensor<33xf16, #compound.dims<M>>
!n = tensor<50xi32, #compound.dims<N>>
!g = tensor<33xi1, #compound.dims<M>>
!i = tensor<i32, #compound.dims<>>
!s = tensor<f16, #compound.dims<>>
"""

PROGRAMS = {
    "selected": """
    func.func @main(%x: !x, %y: !x, %l: tensor<33xi32, #compound.dims<M>>) -> (!x, !m) {
      %n = compound.index : !n
      %two = compound.fill 2.0 : !i
      %even = compound.map mult %n, %two : !n, !i -> !n
      %seen = compound.map gt %l, %even : tensor<33xi32, #compound.dims<M>>, !n -> !b
      %less = compound.map ge %x, %y : !x, !x -> !b
      %both = compound.map select %seen, %less, %seen : !b, !b, !b -> !b
      %low = compound.fill -1.0 : !s
      %z = compound.map select %both, %x, %low : !b, !x, !s -> !x
      %r = compound.reduce max %z : !x -> !m
      func.return %z, %r : !x, !m
    }""",
    "hidden": """
    func.func @main(%x: !x) -> !m {
      %zero = compound.fill 0.0 : !s
      %low = compound.fill -1.0e-3 : !s
      %some = compound.map gt %x, %zero : !x, !s -> !b
      %logs = compound.map log %x : !x -> !x
      %z = compound.map select %some, %logs, %low : !b, !x, !s -> !x
      %r = compound.reduce add %z : !x -> !m
      func.return %r : !m
    }""",
    "stored": """
    func.func @main(%x: !x, %y: !x, %g: !g) -> (!b, !n, tensor<33x50xf32,
        #compound.dims<M, N>>) {
      %n = compound.index : !n
      %two = compound.fill 2.0 : !i
      %even = compound.map mult %n, %two : !n, !i -> !n
      %more = compound.map gt %x, %y : !x, !x -> !b
      %same = compound.map eq %more, %g : !b, !g -> !b
      %ones = compound.cast %same : !b -> tensor<33x50xf32, #compound.dims<M, N>>
      func.return %same, %even, %ones : !b, !n, tensor<33x50xf32, #compound.dims<M, N>>
    }""",
    "returned": """
    func.func @main(%x: !m) -> (!m, !n, tensor<50xf16, #compound.dims<N>>) {
      %y = compound.map neg %x : !m -> !m
      %n = compound.index : !n
      %h = compound.index : tensor<50xf16, #compound.dims<N>>
      func.return %y, %n, %h : !m, !n, tensor<50xf16, #compound.dims<N>>
    }""",
    "known": """
    func.func @main(%x: !m) -> (!m, tensor<1xf16, #compound.dims<T>>) {
      %i = compound.index : tensor<1xi32, #compound.dims<T>>
      %b = compound.map ge %i, %i : tensor<1xi32, #compound.dims<T>>,
        tensor<1xi32, #compound.dims<T>> -> tensor<1xi1, #compound.dims<T>>
      %c = compound.cast %b : tensor<1xi1, #compound.dims<T>>
        -> tensor<1xf16, #compound.dims<T>>
      %y = compound.map neg %x : !m -> !m
      func.return %y, %c : !m, tensor<1xf16, #compound.dims<T>>
    }""",
}


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    """Emit every program for one GPU."""
    return {name: emitted(TYPES + text, ONE_GPU) for name, text in PROGRAMS.items()}


@pytest.mark.filterwarnings("ignore:.*encountered in log")
def test_conditions_are_right_in_kernels(sources: dict[str, str], tmp_path: Path):
    """Of "hidden" half of the logarithms are NaN, and no sum has one of them."""
    reports = check_all(sources, tmp_path)
    assert {name: report["ok"] for name, report in reports.items()} == dict.fromkeys(
        PROGRAMS, True
    )


def test_positions_are_offsets_as_they_are(sources: dict[str, str]):
    assert "even = offs_n * 2  # compound.map mult" in sources["selected"]
    assert "tl.where(both, " in sources["selected"]


def test_conditions_are_stored_as_bytes(sources: dict[str, str], tmp_path: Path):
    assert 'expect_tensor("g", g, (33,), "bool")' in sources["stored"]
    usage = compile_all({"stored": sources["stored"]}, tmp_path)
    assert {str(kernel["target"]) for kernel in usage} == {"sm_90", "gfx942"}
    assert [kernel for kernel in usage if kernel["spills"]] == []
