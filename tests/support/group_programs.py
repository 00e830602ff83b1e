"""Programs that exchange in groups, on one GPU or several: functions and pipeline."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from covering import EVERY_CASE
from gpu_ranks import H200X8, TEXTS
from rank_runs import Room, outcomes_in
from triton_modules import emitted, hardware

H200 = hardware("h200x1.yaml")
SIZES = {"M": 37, "N": 43, "K": 19}
"""Ragged for groups of 2, 3 and 4, and for blocks of 16."""


def grouped(name: str, ctas: int, options: str = "", ranks: int = 1) -> str:
    """Return the emitted module of one of `TEXTS` for groups of `ctas` programs."""
    text = TEXTS[name].format(**SIZES)
    how = f"ctas={ctas} {options}"
    if ranks == 1:
        return emitted(text, f"{H200},triton-distributed{{{how}}}")
    return emitted(text, f"{H200X8},triton-distributed{{ranks={ranks} {how}}}")


ROOMS: Sequence[Room] = ((0, None), (1, 4), (2, None))[: None if EVERY_CASE else 2]

Mutation: TypeAlias = tuple[str, str, set[str]]
"""A part of an emitted module, what replaces it, and the failures that may follow."""


def run_mutations(
    sources: Mapping[str, str], of: str, mutations: Mapping[str, Mutation], folder: Path
) -> dict[str, str]:
    """Return what became of emitted modules, and of the mutations of the one `of`."""
    every = dict(sources)
    for name, (old, new, _) in mutations.items():
        assert old in sources[of], name
        every[name] = sources[of].replace(old, new)
    numbered = {f"module_{i}": source for i, source in enumerate(every.values())}
    became = outcomes_in(numbered, folder, ROOMS)
    return dict(zip(every, became.values(), strict=True))
