"""benchmarks/gpu_candidates.py: the tilings that the model ranks first."""

from dataclasses import replace

import pytest
from covering import one_of
from gpu_by_hand import by_hand
from gpu_candidates import with_tiling
from gpu_emit import emitted_program
from gpu_programs import SAMPLES, candidates, of_one_rank

SMALL = {"M": 16, "N": 32, "K": 16}
CHOSEN = of_one_rank("gemm", SMALL, "bfloat16")


def test_the_first_tiling_is_what_comet_chooses() -> None:
    programs = candidates("gemm", SMALL, 3).values()
    first, *others = (emitted_program(each).text for each in programs)
    assert first == emitted_program(CHOSEN).text
    assert all(others)
    assert len({first, *others}) == 3


def test_there_are_no_more_tilings_than_fit() -> None:
    made = emitted_program(replace(CHOSEN, place=999))
    assert made.inapplicable
    assert made.refused.endswith("candidate 999 does not apply: 12 tilings fit")
    assert with_tiling(CHOSEN) == CHOSEN


@one_of(2)
@pytest.mark.parametrize("sample", ["gemm", "gemm_layernorm", "attention"])
def test_tilings_by_hand_have_the_tiles_of_their_names(sample: str) -> None:
    extents = {**SAMPLES[sample], "M": 256, "N": 512}
    name, program = next(iter(by_hand(sample, extents).items()))
    compiler = replace(program.compiler, split="none")
    text = emitted_program(replace(program, compiler=compiler)).text
    rows, columns = name.split("x")[:2]
    for line in (f"BLOCK_M={rows}", f"BLOCK_N={columns}", "num_warps=8"):
        assert f"        {line},\n" in text
