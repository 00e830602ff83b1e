"""
The emitted modules on other versions of Triton than the installed one.

Install them beside it, and name their folders:
`pip install --no-deps --target /tmp/triton-3.9.0 triton==3.9.0`, then
`COMET_TRITON_VERSIONS=/tmp/triton-3.9.0 pytest FILE` with this file.
"""

import os
from pathlib import Path

import pytest
from named_ops import NAMED_OPS
from triton_modules import LOWER, compile_all, emitted, hardware, wrong
from triton_schedules import schedule

FOLDERS = [f for f in os.environ.get("COMET_TRITON_VERSIONS", "").split(":") if f]
SIZES = {"M": 37, "N": 53, "K": 19}
TILES = {"M": 13, "N": 32, "K": 16}
PARTS = {"M": 7, "m": 1, "N": 4}
SCHEDULES = {
    "softmax_recompute": TILES,
    "softmax_spill": TILES,
    "welford": TILES,
    "contractions": TILES,
    "two_kernels": {**TILES, "N": 27},
    "split_twice": PARTS,
}


@pytest.mark.parametrize("folder", FOLDERS)
def test_modules_run_and_compile(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pipeline = f"{hardware('h200x1.yaml')},triton-distributed"
    sources = {
        op.title: emitted(op.text(op.odd, "bf16"), pipeline)
        for op in NAMED_OPS
        if not op.positions
    }
    for name, tiles in SCHEDULES.items():
        sources[name] = emitted(schedule(name, SIZES, tiles), LOWER)
    monkeypatch.setenv("PYTHONPATH", folder)
    assert not wrong(sources, tmp_path)
    usage = compile_all({name: sources[name] for name in SCHEDULES}, tmp_path)
    assert [kernel for kernel in usage if kernel["spills"]] == []
