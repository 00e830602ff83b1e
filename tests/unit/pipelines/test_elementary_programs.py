"""Programs that are written in elementary form: both pipelines take them."""

from pathlib import Path

import pytest
from covering import exhaustive, fraction, one_of
from rank_runs import outcomes
from semantics import parse_module, run_passes
from triton_modules import ROOT, check_all, emitted, hardware
from xdsl.utils.exceptions import PassFailedException

ACCELERATOR = f"{hardware('edge.yaml')},comet-accelerator{{dim=N strategy=full}}"
GPUS = {
    f"{count} GPUs": f"{hardware(f'{machine}.yaml')},triton-distributed{{{options}}}"
    for count, machine, options in (
        (1, "h200x1", "ranks=1 strategy=full"),
        (2, "h200x8", "ranks=2 dim=N strategy=full"),
    )
}

EXP_ROWS = """
!x = tensor<4x8xf32, #compound.dims<M, N>>
!r = tensor<4xf32, #compound.dims<M>>
func.func @main(%x: !x) -> !x {
  %m = compound.reduce max %x : !x -> !r
  %s = compound.map sub %x, %m : !x, !r -> !x
  %e = compound.map exp %s : !x -> !x
  %l = compound.reduce add %e : !x -> !r
  func.return %e : !x
}
"""
"""Nobody needs %l: it is no node of a mapping."""


def sample(name: str) -> str:
    """Return the text of a sample."""
    return (ROOT / "samples" / f"{name}.mlir").read_text()


@one_of(2)
@pytest.mark.parametrize(
    ("name", "gpus"), fraction(["gemm_softmax", "gemm_layernorm"], [*GPUS])
)
def test_what_decompose_prints_is_read_again_for_gpus(name: str, gpus: str):
    pipeline = GPUS[gpus]
    printed = str(run_passes(parse_module(sample(name)), "decompose"))
    assert emitted(printed, pipeline) == emitted(sample(name), pipeline)


def test_what_decompose_prints_is_read_again_for_accelerators():
    module = parse_module(sample("gemm_softmax"))
    printed = str(run_passes(module, "decompose{accumulator=input}"))
    again = run_passes(parse_module(printed), ACCELERATOR)
    assert str(again) == str(run_passes(module, ACCELERATOR))


@pytest.mark.parametrize(
    "options", ["strategy=full", pytest.param("strategy=auto", marks=exhaustive)]
)
def test_an_op_that_nobody_needs_is_no_node(options: str):
    passes = f"{hardware('edge.yaml')},comet-accelerator{{dim=N pad=none {options}}}"
    mapping = str(run_passes(parse_module(EXP_ROWS), passes))
    assert "EXP" in mapping
    assert "ROWSUM" not in mapping


def test_kernels_agree_with_the_reference_of_an_elementary_program(tmp_path: Path):
    one, two = (emitted(EXP_ROWS, pipeline) for pipeline in GPUS.values())
    (report,) = check_all({"one": one}, tmp_path).values()
    assert report["ok"], report
    assert outcomes({"two": two}, tmp_path, seeds=1) == {"two": "right"}


def test_a_function_of_nothing_has_no_nests():
    module = parse_module("func.func @main() { func.return }")
    passes = f"{hardware('edge.yaml')},fuse{{strategy=full}}"
    assert "schedule." not in str(run_passes(module, passes))


def test_a_function_without_results_is_rejected():
    text = EXP_ROWS.replace(") -> !x {", ") {").replace("return %e : !x", "return")
    for passes in (*GPUS.values(), f"{hardware('edge.yaml')},comet-accelerator"):
        with pytest.raises(PassFailedException, match="@main returns nothing"):
            run_passes(parse_module(text), passes)
