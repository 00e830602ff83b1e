"""Loops that end where a mask hides all that follows: the results stay."""

import json
from pathlib import Path

from covering import EVERY_CASE, exhaustive, some
from interpreting import write_modules
from masked_programs import (
    causal,
    decode,
    first_rows_see_nothing,
    window,
    with_constant,
    with_term,
)
from paths import SAMPLES
from torch_python import run_python
from triton_modules import emitted, hardware, wrong

CHOSEN = f"{hardware('h200x1.yaml')},triton-distributed"
ONE_GPU = f"{CHOSEN}{{strategy=full}}"


def test_bounded_loops_mean_the_same(tmp_path: Path):
    programs = {
        **({"causal": causal(32, 160)} if EVERY_CASE else {}),
        "odd": causal(37, 301),
        "lengths": decode(200),
        **({"single": causal(1, 200)} if EVERY_CASE else {}),
        **({"term": with_term(1.7e38)} if EVERY_CASE else {}),
        "blind": first_rows_see_nothing(),
        "window": window(150, 20),
        **({"blind window": window(70, 0)} if EVERY_CASE else {}),
    }
    sources = {name: emitted(text, ONE_GPU) for name, text in programs.items()}
    parts = PARTS if EVERY_CASE else {name: PARTS[name] for name in FEW}
    for name, (text, options) in parts.items():
        passes = (
            f"{hardware('h200x1.yaml')},triton-distributed{{strategy=full {options}}}"
        )
        sources[name] = emitted(text, passes)
    for name, (text, options) in some(SHARDS.items(), 3):
        sources[name] = emitted(text, f"{hardware('h200x8.yaml')},{options}")
    assert [name for name in sources if ", stop, BLOCK_" not in sources[name]] == []
    assert "range(start, stop, BLOCK_" in sources["window"]
    assert not wrong(sources, tmp_path)


TILES = (
    'split="S=4" factors="m: S_part={} B={} H=2 G=1; m_s_in: S_in=2; products_d: D=1"'
)
ROWS = 'split="N=4" factors="m: N_part=4 B=1 H=2 M=2; m_n_in: N_in=2; products_d: D=1"'
PARTS = {
    "parts": (decode(128), TILES.format(4, 3)),
    "two parts a program": (decode(64), TILES.format(2, 3)),
    "two lengths a program": (decode(96), TILES.format(4, 2)),
    "a mask where needed": (decode(64), f"unmask=all {TILES.format(4, 3)}"),
    "causal parts": (causal(16, 64), ROWS),
    "blind parts": (first_rows_see_nothing(), ROWS),
}
"""Functions whose keys are split over programs, and options."""
FEW = ("two parts a program", "causal parts")

SHARDS = {
    "shards": (
        decode(256),
        "triton-distributed{ranks=2 dim=S split=none strategy=full}",
    ),
    "causal shards": (
        causal(8, 256),
        "triton-distributed{ranks=2 split=none strategy=full}",
    ),
    "window over shards": (
        window(192, 20),
        "triton-distributed{ranks=2 dim=N split=none strategy=full}",
    ),
}
"""Functions whose keys are sharded over ranks, and passes."""

SKIPPED = """
import json, sys, torch
from comet.runtime.program import load_module, program_of
from comet.runtime.check import random_inputs
module = load_module(sys.argv[1])
q, k, v, _ = random_inputs(program_of(module, sys.argv[1]), 0, "cpu")
lens = torch.tensor([5, 80, 128], dtype=torch.int32)
before = module.main(q, k, v, lens).clone()
for values, length in zip(v, (16, 80, 128)):
    values[:, length:] = torch.nan
print(json.dumps(torch.equal(module.main(q, k, v, lens), before)))
"""


@exhaustive
def test_parts_beyond_the_length_load_nothing(tmp_path: Path):
    """Values after the last tile of a sequence are no numbers, and change nothing."""
    text, options = PARTS["parts"]
    passes = f"{hardware('h200x1.yaml')},triton-distributed{{{options}}}"
    (path,) = write_modules({"parts": emitted(text, passes)}, tmp_path)
    done = run_python(["-c", SKIPPED, path], {"TRITON_INTERPRET": "1"})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


def test_a_small_mask_bounds_no_loop():
    """Scores of 1e5 are seen through a mask of -3e4."""
    for text in (with_constant("hidden", -3e4), with_term(3e4)):
        assert " in range(0, stop," not in emitted(text, ONE_GPU)


def test_scans_end_at_the_last_time_and_store_no_condition():
    """Two kernels compare the same positions, each for itself."""
    source = emitted((SAMPLES / "ssm_scan.mlir").read_text(), CHOSEN)
    assert source.count(" in range(0, stop,") == 2
    assert "past_ptr" not in source
