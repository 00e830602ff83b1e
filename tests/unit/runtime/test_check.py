"""How emitted programs are compared with their references."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from comet.runtime import Program, Tensor, expect_tensor
from comet.runtime.check import check, compare, random_inputs, relative_error, tolerance

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
MATRIX = Tensor((3, 4), "float32", terms=16, rounding=2.0**-20)


def program(shift: float = 0.0, columns: int = 4) -> Program:
    """Return a program that is `shift` away from its reference."""

    def launch(x: torch.Tensor) -> torch.Tensor:
        return 2 * x + shift

    def reference(x: Array) -> Array:
        return 2 * x[:, :columns]

    return Program(
        launch=launch,
        reference=reference,
        inputs=(MATRIX,),
        outputs=(MATRIX,),
    )


def test_right_program():
    result = check(program(), seed=1, device="cpu")
    assert result.ok
    assert result.seconds > 0


def test_wrong_program():
    result = check(program(shift=1e-3), seed=1, device="cpu")
    assert not result.ok
    assert result.max_error > result.tolerance


def test_program_without_finite_result():
    result = check(program(shift=math.inf), seed=1, device="cpu")
    assert not result.ok
    assert math.isnan(result.max_error)


def test_other_shape_is_an_error():
    with pytest.raises(ValueError, match=r"returns shapes \[\(3, 4\)\], its reference"):
        check(program(columns=2), seed=1, device="cpu")


def test_error_is_relative_to_the_element_or_to_the_rms():
    reference = torch.tensor([3.0, 0.0, 0.0, 4.0])
    large, small = reference.clone(), reference.clone()
    large[3] += 0.4
    small[1] += 1.0
    assert relative_error(large, reference) == pytest.approx(0.1)
    assert relative_error(small, reference) == pytest.approx(0.4)


@pytest.mark.parametrize("shape", [(), (1,), (3, 0)])
def test_any_shape_has_an_error(shape: tuple[int, ...]):
    reference = torch.ones(shape)
    error = 0.5 if reference.numel() else 0.0
    assert relative_error(1.5 * reference, reference) == error


def test_rounded_weights_are_no_error_in_rows_of_few_keys():
    """
    In causal attention these rows are larger than most, and some of their sums small.

    An error in a later row is found all the same.
    """
    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    p, v, later = normal(32, 3).softmax(-1), normal(3, 128), 0.01 * normal(3200, 128)
    expected = torch.cat([p @ v, later])
    rounded = torch.cat([p.bfloat16().double() @ v, later])
    accepted = 4 * 2.0**-7
    assert relative_error(rounded.flatten(), expected.flatten()) > accepted
    assert relative_error(rounded, expected) < accepted
    rounded[1000] *= 0.5
    assert relative_error(rounded, expected) > accepted


@pytest.mark.parametrize(
    ("made", "error"),
    [
        ([math.inf, -math.inf, math.nan, 2.2, 2.0], 0.1),
        ([math.inf, math.inf, math.nan, 2.0, 2.0], math.nan),
        ([math.inf, -math.inf, 0.0, 2.0, 2.0], math.nan),
        ([math.inf, -math.inf, math.nan, math.inf, 2.0], math.nan),
        ([math.inf, -math.inf, math.nan, math.nan, 2.0], math.nan),
    ],
)
def test_what_is_not_finite_has_to_be_the_same(made: list[float], error: float):
    reference = torch.tensor([math.inf, -math.inf, math.nan, 2.0, 2.0])
    found = relative_error(torch.tensor(made), reference)
    assert found == pytest.approx(error, nan_ok=True)


def test_nothing_finite_is_right():
    infinite = torch.full((3,), -math.inf)
    assert relative_error(infinite, infinite) == 0


def test_tolerance_is_a_multiple_of_the_rounding():
    assert tolerance(MATRIX) == 4 * 2.0**-20


@pytest.mark.parametrize("error", [2e-3, 5e-2])
def test_tolerance_of_a_sum_that_nearly_cancels(error: float):
    """The reference itself moves when an input is off by one rounding to f16."""
    half = Tensor((2,), "float16", rounding=2.0**-10)
    cancelling = torch.tensor([1.0, -0.998])

    def launch(x: torch.Tensor) -> torch.Tensor:
        return x.sum().reshape(1) * (1 + error / 0.002)

    def reference(x: Array) -> Array:
        return x.sum().reshape(1)

    output = replace(half, shape=(1,))
    sums = Program(launch, reference, (half,), (output,))
    (result,) = compare(sums, [cancelling], [[launch(cancelling)]], 0.0)
    assert result.max_error > tolerance(output)
    assert result.ok == (error == 2e-3)


@pytest.mark.parametrize("shifts", [(0.0, 1e-4), (1e-4, 0.0)])
def test_each_result_has_the_tolerance_of_its_type(shifts: tuple[float, float]):
    """An error that f16 hides is one in f32."""

    def launch(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + shifts[0], (x + shifts[1]).half()

    def reference(x: Array) -> tuple[Array, Array]:
        return x, x

    half = Tensor((3, 4), "float16", rounding=2.0**-10)
    pair = Program(launch, reference, (MATRIX,), (MATRIX, half))
    assert check(pair, seed=1, device="cpu").ok == (shifts[0] == 0)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (torch.zeros(4, 3), r"x is float32 of shape \(4, 3\); the kernel was compiled"),
        (torch.zeros(3, 4, dtype=torch.float16), "x is float16 of shape"),
        (np.zeros((3, 4)), "x is a numpy.ndarray; pass a tensor of torch"),
        (torch.zeros(4, 3).T, r"x is not contiguous; pass x.contiguous\(\)"),
        (torch.zeros(3, 4, requires_grad=True), "x requires a gradient, which emitted"),
    ],
)
def test_kernels_take_only_what_they_were_compiled_for(
    tensor: Any, message: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    expect_tensor("x", torch.zeros(3, 4), (3, 4), "float32")
    with pytest.raises(ValueError, match=message):
        expect_tensor("x", tensor, (3, 4), "float32")


def test_parameters_have_kernels_without_gradients(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with torch.no_grad():
        x = torch.zeros(3, 4, requires_grad=True)
        expect_tensor("x", x, (3, 4), "float32")


def test_tensors_on_the_cpu_need_the_interpreter(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    expect_tensor("x", torch.zeros(3, 4, device="meta"), (3, 4), "float32")
    message = (
        "x is on the CPU, where only Triton's interpreter runs kernels: use comet-run, "
        "or set TRITON_INTERPRET=1 before triton is imported"
    )
    with pytest.raises(ValueError, match=message):
        expect_tensor("x", torch.zeros(3, 4), (3, 4), "float32")


def test_counts_are_drawn_from_one_to_their_bound():
    counts = replace(program(), inputs=(Tensor((1000,), "int32", at_most=7), MATRIX))
    drawn, matrix = random_inputs(counts, seed=0, device="cpu")
    assert drawn.dtype == torch.int32
    assert sorted(set(drawn.numpy().tolist())) == list(range(1, 8))
    assert matrix.dtype == torch.float32


def test_ids_are_drawn_from_zero():
    ids = replace(program(), inputs=(Tensor((1000,), "int32", at_least=0, at_most=7),))
    (drawn,) = random_inputs(ids, seed=0, device="cpu")
    assert sorted(set(drawn.numpy().tolist())) == list(range(8))
