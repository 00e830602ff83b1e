"""Plots of the evaluation: what each strategy costs, as a fraction of unfused."""

# matplotlib is in the extra `plot`, which the environment of `make test` goes without.
# pyright: reportMissingImports=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, product
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from paper_programs import SHAPES
from paper_runs import MODELS, Row, strategies_for

from comet.cost.estimate import ModelName

mpl.rcParams.update({"font.size": 8, "axes.spines.top": False})
TOP = 1.3
"""The height of the plots; what is taller is cut, and its height written into it."""

COLOURS = (
    *("#8d99ae", "#e76f51", "#e9c46a", "#2a9d8f", "#264653"),
    *("#adb5bd", "#f4a261", "#9d4edd", "#d00000"),
)


def plot(rows: Sequence[Row], folder: Path) -> Iterator[Path]:
    """Write `evaluation-OP.png` for every op and yield the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for op, group in groupby(rows, key=lambda row: row.op):
        members = list(group)
        figure = Figure(figsize=(10, 9), layout="constrained")
        figure.suptitle(f"{op}: best mapping found, as a fraction of unfused")
        grid = figure.subplots(2 * len(MODELS), len(SHAPES[op]), sharey="row")
        panels = product(("latency", "energy"), MODELS)
        for line, (name, model) in zip(grid, panels, strict=True):
            for axes, machine in zip(line, SHAPES[op], strict=True):
                own = [row for row in members if row.machine == machine]
                _bars(axes, own, name, model)
                axes.set_title(f"{name}, {machine}, model {model}")
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5)
        path = folder / f"evaluation-{op.replace('_', '-')}.png"
        figure.savefig(path, dpi=110)
        yield path


def _write_height(axes: Axes, offset: float, height: float) -> None:
    """Write the height of a bar that is cut."""
    style = {"rotation": 90, "fontsize": 6, "color": "white"}
    axes.text(offset, TOP, f"{height:.1f} ", ha="center", va="top", fontdict=style)


def _bars(axes: Axes, rows: Sequence[Row], name: str, model: ModelName) -> None:
    """Draw one group of bars per shape, one bar per strategy."""
    strategies = strategies_for(rows[0].op)
    width = 0.8 / len(strategies)
    for place, strategy in enumerate(strategies):
        gains = [row.gain(strategy, model, name) for row in rows]
        heights = [0 if gain is None else 1 / gain for gain in gains]
        offsets = [
            i + (place - (len(strategies) - 1) / 2) * width for i in range(len(rows))
        ]
        axes.bar(offsets, heights, width, label=strategy, color=COLOURS[place])
        for offset, height in zip(offsets, heights, strict=True):
            if height > TOP:
                _write_height(axes, offset, height)
    axes.set_xticks(range(len(rows)), [" x ".join(map(str, row.shape)) for row in rows])
    axes.tick_params(axis="x", labelrotation=15)
    axes.set_ylim(0, TOP)
