"""The sample that is written at the dataflow level: right on the ranks it is for."""

import re
from pathlib import Path

import pytest
from covering import exhaustive
from paths import ROOT
from rank_runs import outcomes
from semantics import assert_close, parse_module, random_inputs, run_passes
from triton_modules import to_triton
from xdsl.utils.exceptions import PassFailedException

from comet.interpreter import run

SAMPLE = (ROOT / "samples/dataflow_all_gather_gemm.mlir").read_text()
HARDWARE = f'attach-hardware{{path="{ROOT / "samples/hardware/h200x8.yaml"}"}}'
RANKS = (2, 4, 8)


def on_ranks(ranks: int) -> str:
    """Return the sample for another number of ranks; tiles stay as they are."""
    share = 128 // ranks
    text = SAMPLE.replace("rank = 4", f"rank = {ranks}")
    text = text.replace("tensor<64x32xf16", f"tensor<64x{share}xf16")
    text = text.replace("g1: K = 2", f"g1: K = {share // 16}")
    return text.replace("[K = 4, K = 2]", f"[K = {ranks}, K = {share // 16}]")


@pytest.mark.parametrize("ranks", RANKS)
def test_it_means_the_product(ranks: int):
    module = parse_module(on_ranks(ranks))
    a, b = random_inputs(module, "all_gather_gemm")
    assert_close(run(module, "all_gather_gemm", [a, b]), [a @ b])


@exhaustive
def test_it_runs(tmp_path: Path):
    lower = f"{HARDWARE},lower-channels,verify-sync"
    sources = {
        f"ranks_{ranks}": to_triton(run_passes(parse_module(on_ranks(ranks)), lower))
        for ranks in RANKS[:2]
    }
    assert outcomes(sources, tmp_path, seeds=1) == dict.fromkeys(sources, "right")


@pytest.mark.parametrize("pattern", ["push", "auto"])
def test_it_keeps_its_channels(pattern: str):
    module = run_passes(parse_module(SAMPLE), HARDWARE)
    after = run_passes(module, f"bsp-to-dataflow{{pattern={pattern}}}")
    assert str(after) == str(module)


@pytest.mark.parametrize("pattern", ["bsp", "wait", "pull", "fused"])
def test_other_patterns_do_not_apply(pattern: str):
    reason = (
        f"pattern={pattern} does not apply to @all_gather_gemm: it already has "
        "channels, with another pattern; push and auto apply"
    )
    module = run_passes(parse_module(SAMPLE), HARDWARE)
    with pytest.raises(PassFailedException, match=re.escape(reason)):
        run_passes(module, f"triton-distributed{{ranks=4 pattern={pattern}}}")
