"""The figures of some results; needs the extra `plot`."""

# matplotlib is in the extra `plot`, which the environment of `make test` goes without.
# pyright: reportMissingImports=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from gpu_figures import Ratio, others, rungs
from gpu_model import pairs
from gpu_run.results import Results
from matplotlib.figure import Figure


def plots(results: Results, folder: Path) -> Iterator[Path]:
    """Draw what there are figures for; yield the files."""
    folder.mkdir(parents=True, exist_ok=True)
    bars = {
        "gpu-speed.png": (list(others(results)), "times as long as comet"),
        "gpu-ladder.png": (
            list(rungs(results, "graph")),
            "faster than bsp, graphs",
        ),
    }
    for name, (ratios, label) in bars.items():
        if ratios:
            yield _bars(ratios, label, folder / name)
    if pairs(results):
        yield _model(results, folder / "gpu-model.png")


def _bars(ratios: Sequence[Ratio], label: str, path: Path) -> Path:
    """Draw a group of bars for each case, one for each alternative."""
    cases = list(dict.fromkeys(f"{r.case.kind} {r.case.about}" for r in ratios))
    names = list(dict.fromkeys(ratio.name for ratio in ratios))
    figure = Figure(figsize=(8, 1.5 + 0.3 * len(cases)), layout="constrained")
    axes = figure.subplots()
    height = 0.8 / len(names)
    for index, name in enumerate(names):
        own = [ratio for ratio in ratios if ratio.name == name]
        places = [cases.index(f"{r.case.kind} {r.case.about}") for r in own]
        offsets = [place + index * height for place in places]
        axes.barh(offsets, [ratio.value for ratio in own], height, label=name)
    axes.set_yticks(range(len(cases)), cases, fontsize=6)
    axes.invert_yaxis()
    axes.axvline(1.0, color="black", linewidth=0.5)
    axes.set_xlabel(label)
    axes.legend(fontsize=6)
    figure.savefig(path, dpi=120)
    return path


def _model(results: Results, path: Path) -> Path:
    """Draw what was predicted over what was measured, in microseconds."""
    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    found = pairs(results)
    for kind in dict.fromkeys(pair.kind for pair in found):
        own = [pair for pair in found if pair.kind == kind]
        measured = [pair.measured * 1e6 for pair in own]
        axes.loglog(measured, [p.predicted * 1e6 for p in own], ".", label=kind)
    ends = [1e6 * end(p.measured for p in found) for end in (min, max)]
    axes.loglog(ends, ends, color="black", linewidth=0.5)
    axes.set_xlabel("measured, us")
    axes.set_ylabel("predicted, us")
    axes.legend(fontsize=6)
    figure.savefig(path, dpi=120)
    return path
