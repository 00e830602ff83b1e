"""Loops that end where a mask hides all that follows: the results stay."""

from pathlib import Path

from masked_programs import (
    causal,
    decode,
    first_rows_see_nothing,
    with_constant,
    with_term,
)
from paths import SAMPLES
from triton_modules import check_all, emitted, hardware

ONE_GPU = f"{hardware('h200x1.yaml')},triton-distributed{{ranks=1}}"


def test_bounded_loops_mean_the_same(tmp_path: Path):
    programs = {
        "causal": causal(64, 256),
        "odd": causal(37, 301),
        "square": causal(128, 128),
        "lengths": decode(200),
        "single": causal(1, 200),
        "term": with_term(1.7e38),
        "blind": first_rows_see_nothing(),
    }
    sources = {name: emitted(text, ONE_GPU) for name, text in programs.items()}
    assert [name for name in sources if " in range(0, stop," not in sources[name]] == []
    reports = check_all(sources, tmp_path)
    assert [name for name, report in reports.items() if not report["ok"]] == []


def test_a_small_mask_bounds_no_loop():
    """Scores of 1e5 are seen through a mask of -3e4."""
    for text in (with_constant("hidden", -3e4), with_term(3e4)):
        assert " in range(0, stop," not in emitted(text, ONE_GPU)


def test_scans_end_at_the_last_time_and_store_no_condition():
    """Two kernels compare the same positions, each for itself."""
    source = emitted((SAMPLES / "ssm_scan.mlir").read_text(), ONE_GPU)
    assert source.count(" in range(0, stop,") == 2
    assert "past_ptr" not in source
