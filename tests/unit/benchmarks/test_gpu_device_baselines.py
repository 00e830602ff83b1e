"""benchmarks/gpu_device: what a user of torch would run instead."""

from types import CodeType, FunctionType

import pytest
import torch
from covering import one_of
from gpu_device.baselines import (
    Formula,
    baseline,
    baselines,
    gemm,
    names,
    reason,
    with_own_code,
)
from gpu_device.inputs import Lengths, drawn
from gpu_device.references import KINDS, reference
from timed_ops import operands

from comet.runtime.check import relative_error

COMPILED = ("compile", "compile_graph")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "gemm" in kind])
def test_eager_means_what_the_reference_says(kind: str) -> None:
    inputs = drawn(operands(kind), 3, "cpu")
    work = baseline("eager", kind, inputs).work
    assert work is not None
    assert relative_error(work(), reference(kind, inputs)) < 1e-4


@pytest.mark.parametrize("lengths", ["full", "ragged"])
@pytest.mark.parametrize("name", ["flash", "flash_rows"])
def test_decode_means_what_the_reference_says(name: str, lengths: Lengths) -> None:
    inputs = drawn(operands("flash_decode", D=8, E=8), 3, "cpu", lengths)
    work = baseline(name, "flash_decode", inputs).work
    assert work is not None
    assert relative_error(work(), reference("flash_decode", inputs)) < 1e-4


@one_of(2)
@pytest.mark.parametrize("kind", ["attention", "attention_causal"])
@pytest.mark.parametrize("queries", [5, 19])
def test_attention_means_what_the_reference_says(kind: str, queries: int) -> None:
    inputs = drawn(operands(kind, D=8, E=8, M=queries), 3, "cpu")
    work = baseline("flash", kind, inputs).work
    assert work is not None
    assert relative_error(work(), reference(kind, inputs)) < 1e-4


@one_of(3)
@pytest.mark.parametrize("kind", KINDS)
def test_every_baseline_runs_or_says_why_not(kind: str) -> None:
    found = baselines(kind, drawn(operands(kind, D=8, E=8), 3, "cpu"))
    assert tuple(found) == names(kind)
    for name, each in found.items():
        assert each.name == name
        assert (each.work is None) == bool(each.missing)
        assert "\n" not in each.missing
        assert each.partial == (name == "product")


def test_a_gated_mlp_is_compared() -> None:
    inputs = drawn(operands("gated_mlp"), 3, "cpu")
    found = baselines("gated_mlp", inputs)
    eager, product = found["eager"].work, found["product"].work
    assert eager is not None
    assert product is not None
    assert relative_error(eager(), reference("gated_mlp", inputs)) < 1e-4
    x, gate, _, down = inputs
    assert torch.equal(product(), x @ gate @ down)


def test_nothing_is_compiled_for_a_cpu() -> None:
    found = baselines("gemm", drawn(operands("gemm"), 3, "cpu"))
    for name in COMPILED:
        assert found[name].missing == "torch.compile is compared on GPUs only"


def test_what_torch_raises_is_the_reason() -> None:
    found = baseline("cudnn", "attention", drawn(operands("attention"), 3, "cpu"))
    assert found.work is None
    assert found.missing.startswith("No viable backend for scaled_dot_product")


def test_the_reason_is_what_warnings_say_of_the_back_end() -> None:
    warned = (
        "Memory efficient kernel not used because: (Triggered internally at a.cpp:7.)",
        "Memory Efficient attention has been runtime disabled. (Triggered internally)",
        "Flash attention kernel not used because: (Triggered internally at a.cpp:8.)",
        "Flash Attention does not support non-null attn_mask. (Triggered internally at"
        " a.cpp:9.)\n  return f()",
    )
    assert reason(RuntimeError("No available kernel.\nAborting"), warned) == (
        "No available kernel. Aborting; Flash Attention does not support non-null "
        "attn_mask."
    )


def test_the_reason_is_one_short_line() -> None:
    assert reason(MemoryError(), ()) == "MemoryError"
    error = RuntimeError("backend='inductor' raised:\nno compiler\n" + 900 * "x")
    assert reason(error, ()).startswith("backend='inductor' raised: no compiler xxx")
    assert len(reason(error, ())) == 300


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("eager", "conv", "no baselines for conv"),
        ("eager", "attention", "no baseline eager for attention; there are cudnn, "),
    ],
)
def test_unknown_names_are_errors(name: str, kind: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        baseline(name, kind, ())


def test_copies_of_a_formula_are_compiled_apart() -> None:
    """`torch.compile` knows a function by its code, and compiles it eight times."""
    copies = [with_own_code(gemm) for _ in range(2)]
    assert len({_code(each) for each in (gemm, *copies)}) == 3
    for each in copies:
        product = each(torch.ones(2, 3), torch.ones(3, 1))
        assert torch.equal(product, torch.full((2, 1), 3.0))


def _code(formula: Formula) -> CodeType:
    assert isinstance(formula, FunctionType)
    return formula.__code__
