"""The best mapping of every fusion strategy, one search each."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path

from comet.api.answer import FIGURES, Answer
from comet.api.question import Question
from comet.api.source import Source
from comet.batch.answering import Result
from comet.passes.explore.constraints import read_constraints
from comet.passes.schedule.fuse.strategy import STRATEGIES
from comet.tools.diagnostics import UsageError
from comet.tools.extras import loaded
from comet.yaml_file import read_yaml

NO_FIGURES = ("versions", "pruned_by", "closed_by", "rejected_by")
"""The keys of an answer with several values, which a line of CSV leaves out."""


def by_strategy(question: Question) -> dict[str, Question]:
    """
    Return the question for each fusion strategy that its constraints leave open.

    Raises FileFormatError if the constraints are wrong.
    """
    source = question.constraints
    names = read_constraints(source.text, source.name).strategy or STRATEGIES
    texts = read_yaml(source.text, source.name).texts
    texts_by_key = texts if isinstance(texts, dict) else {}
    return {
        name: replace(
            question,
            constraints=Source(
                json.dumps({**texts_by_key, "strategy": name}), source.name
            ),
        )
        for name in names
    }


def as_csv(results: Mapping[str, Result]) -> str:
    """Return a line for each strategy: the figures of its answer, or its error."""
    names = [name for name in FIGURES if name not in NO_FIGURES]
    text = StringIO()
    table = csv.DictWriter(text, ["strategy", *names, "error"], lineterminator="\n")
    table.writeheader()
    for strategy, result in results.items():
        if isinstance(result, Answer):
            figures = {name: getattr(result, name) for name in names}
        else:
            figures = {"error": str(result)}
        table.writerow({"strategy": strategy, **figures})
    return text.getvalue()


def check_plot(path: Path) -> None:
    """Raise UsageError without matplotlib, or if it cannot write files like `path`."""
    canvas = loaded("matplotlib.figure", "plot", "--plot").Figure().canvas
    endings = canvas.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in endings:
        raise UsageError(
            f"--plot {path}: no image format has this ending; name a file with one of "
            f"{', '.join(endings)}"
        )


def plot(results: Mapping[str, Result], path: Path) -> None:
    """
    Draw latency and energy of each strategy into a file that passes `check_plot`.

    The ending of `path` is the image format. A line marks the lower bound of the
    objective.
    """
    figure = loaded("matplotlib.figure", "plot", "--plot").Figure(
        figsize=(8, 3.5), layout="constrained"
    )
    found = {name: r for name, r in results.items() if isinstance(r, Answer)}
    panels = zip(
        figure.subplots(1, 2), ("latency", "energy"), ("cycles", "pJ"), strict=True
    )
    for axes, what, unit in panels:
        field = "latency_cycles" if what == "latency" else "energy_pj"
        axes.bar([*found], [getattr(answer, field) for answer in found.values()])
        for place, answer in enumerate(found.values()):
            if answer.objective == what and (bound := answer.lower_bound) is not None:
                axes.hlines(bound, place - 0.4, place + 0.4, "black", "dashed")
        axes.set_title(what)
        axes.set_ylabel(unit)
        axes.tick_params("x", labelrotation=20)
    figure.savefig(path, dpi=150)
