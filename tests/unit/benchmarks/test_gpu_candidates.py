"""benchmarks/gpu_candidates.py: the tilings that the model ranks first."""

from dataclasses import replace

from gpu_candidates import with_tiling
from gpu_emit import emitted_program
from gpu_programs import candidates, of_one_rank

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
