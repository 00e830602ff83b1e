"""Programs that exchange in groups, on one GPU or several: functions and pipeline."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from gpu_ranks import H200X8, TEXTS
from interpreting import reports, write_modules
from triton_modules import emitted, hardware

from comet.runtime.request import Request

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


ROOMS = ((0, None), (1, 4), (2, None))
"""Seeds, and how many programs of a rank run at the same time."""

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
    became = run_groups(numbered, folder, *ROOMS)
    return dict(zip(every, became.values(), strict=True))


def run_groups(
    sources: Mapping[str, str], folder: Path, *rooms: tuple[int, int | None]
) -> dict[str, str]:
    """Return what became of each module: right, or the first failure of any run."""
    paths = write_modules(sources, folder)
    requests = [
        Request(str(path), "scheduler", seed, resident=resident, epochs=3)
        for path in paths
        for seed, resident in rooms
    ]
    became = [
        "right"
        if report["ok"]
        else str(report.get("failure", "wrong result")).partition(":")[0]
        for report in reports(requests)
    ]
    runs = len(rooms)
    each = (became[runs * i : runs * (i + 1)] for i in range(len(paths)))
    wrong = ([kind for kind in kinds if kind != "right"] for kinds in each)
    worst = ([*kinds, "right"][0] for kinds in wrong)
    return dict(zip(sources, worst, strict=True))
