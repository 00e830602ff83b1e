"""benchmarks/gpu_device: inputs that are drawn, and what kernels are compared with."""

import math

import numpy as np
import pytest
import torch
from covering import one_of
from gpu_device import references
from gpu_device.inputs import Lengths, drawn
from gpu_device.references import (
    KINDS,
    compared,
    full_precision,
    gemm,
    reference,
)
from semantics import parse_module
from timed_ops import op_of, operands

from comet.dialects.compound.named.normalize import NormalizingOp
from comet.interpreter import run
from comet.runtime import Tensor
from comet.runtime.check import random_inputs, to_float64
from comet.runtime.program import Program


@one_of(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", [3, 4096])
def test_references_mean_what_the_interpreter_says(
    kind: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks that divide by nothing, and in one."""
    monkeypatch.setattr(references, "ROWS", block)
    monkeypatch.setattr(references, "SCORES", block * 19)
    if kind == "gemm_rmsnorm":
        monkeypatch.setattr(references, "EPSILON", 1e-3)
    op, inputs = op_of(kind), drawn(operands(kind), 3, "cpu")
    arrays = [to_float64(value) for value in inputs]
    (expected,) = run(parse_module(op.text(op.odd)), "main", arrays)
    result = reference(kind, inputs)
    assert result.dtype == torch.float32
    np.testing.assert_allclose(to_float64(result), expected, rtol=1e-4, atol=1e-5)


def test_epsilon_is_that_of_the_ops() -> None:
    op = op_of("gemm_layernorm")
    ops = parse_module(op.text(op.odd)).walk()
    (found,) = (op for op in ops if isinstance(op, NormalizingOp))
    assert found.epsilon.value.data == references.EPSILON


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(ValueError, match="no reference for conv; there are gemm, "):
        reference("conv", ())


def test_precision_is_full_and_then_as_before() -> None:
    torch.set_float32_matmul_precision("high")
    try:
        with full_precision():
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")


@pytest.mark.parametrize(("shift", "ok"), [(0.0, True), (0.1, False)])
def test_results_are_judged_by_the_element_type(shift: float, ok: bool) -> None:
    expected = torch.linspace(1, 2, 12).reshape(3, 4)
    result = expected.bfloat16() + shift
    output = Tensor((3, 4), "bfloat16", rounding=2.0**-8)
    judged = compared(result, expected, output, 0.5)
    assert judged.ok == ok
    assert judged.seconds == 0.5


def test_another_shape_is_an_error() -> None:
    output = Tensor((3, 4), "float32")
    with pytest.raises(ValueError, match=r"has shape \(4, 3\), its reference \(3, 4\)"):
        compared(torch.ones(4, 3), torch.ones(3, 4), output, 0.0)


def test_inputs_have_the_moments_of_those_that_checks_draw() -> None:
    tensor = Tensor((100, 100), "bfloat16", terms=16)
    (values,) = drawn([tensor], 1, "cpu")
    assert values.dtype == torch.bfloat16
    program = Program(gemm, np.matmul, (tensor,), (tensor,))
    (others,) = random_inputs(program, 1, "cpu")
    for own in (values, others):
        assert own.float().std().item() == pytest.approx(16**-0.25, rel=0.05)
        assert abs(own.float().mean().item()) < 0.02
    assert torch.equal(values, drawn([tensor], 1, "cpu")[0])
    assert not torch.equal(values, drawn([tensor], 2, "cpu")[0])


@pytest.mark.parametrize(("lengths", "least"), [("full", 3), ("ragged", 1)])
def test_lengths_are_full_or_ragged(lengths: Lengths, least: int) -> None:
    (counts,) = drawn([Tensor((99,), "int32", at_most=3)], 0, "cpu", lengths)
    assert counts.dtype == torch.int32
    assert (counts.min().item(), counts.max().item()) == (least, 3)


@pytest.mark.parametrize("lengths", ["full", "ragged"])
def test_ids_are_drawn_whatever_the_lengths(lengths: Lengths) -> None:
    ids = Tensor((999,), "int32", at_least=0, at_most=4)
    (found,) = drawn([ids], 0, "cpu", lengths)
    assert sorted(set(found.numpy().tolist())) == [0, 1, 2, 3, 4]


def test_a_result_that_is_not_finite_is_wrong() -> None:
    output = Tensor((2,), "float32")
    result = torch.tensor([1.0, math.inf])
    judged = compared(result, torch.ones(2), output, 0.0)
    assert not judged.ok
    assert math.isnan(judged.max_error)
