"""A report as one HTML file that needs no other; needs the extra `report`."""

from __future__ import annotations

import gzip
import shlex
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import isclose
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from xdsl.dialects.builtin import ModuleOp

from comet.api.answer import Answer
from comet.api.question import NOTHING, Question
from comet.cost.estimate import energy_scope
from comet.cost.from_ir.mapping import system_hardware
from comet.report.figures import Figures, figures_of, percent
from comet.report.front import MOST_SECONDS, Point
from comet.report.plots import Plot, plots_of
from comet.report.timeline import chrome_trace

SECTIONS = (
    ("tree", "tile tree"),
    ("latency", "time"),
    ("timeline", "timeline"),
    ("energy", "bytes and energy"),
    ("occupancy", "occupancy"),
    ("roofline", "roofline"),
    ("more", "10 % more"),
    ("front", "latency against energy"),
    ("reproduce", "reproduce"),
)

UNITS = {"latency": "cycles", "energy": "pJ", "edp": "pJ x cycles"}
"""The unit of each objective."""


@dataclass(frozen=True)
class Compared:
    """Another mapping."""

    name: str
    """The file that it is in."""
    figures: Figures
    same_machine: bool


@dataclass(frozen=True)
class Report:
    """What a page shows."""

    question: Question
    answer: Answer
    figures: Figures
    front: tuple[Point, ...]
    """The best mappings by objective; empty if they were not searched for."""
    other: Compared | None

    @property
    def plots(self) -> tuple[Plot, ...]:
        """Return the plots of the page."""
        other = None if self.other is None else self.other.figures
        return plots_of(self.figures, self.front, other)

    def html(self) -> str:
        """Return the page."""
        plots = {plot.name: plot.inline() for plot in self.plots}
        page = _environment().get_template("page.html.jinja")
        return page.render(plots=plots, **_FORMATS, **_values(self))

    def save_plots(self, folder: Path) -> None:
        """Write each plot into a folder, as SVG and as PNG; raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        for plot in self.plots:
            plot.save(folder)


def report_of(
    question: Question,
    answer: Answer,
    front: tuple[Point, ...],
    other: tuple[str, ModuleOp] | None,
) -> Report:
    """
    Return the report of an answer, with the name and module of another mapping.

    Raises CostError if the other module has no mapping that the model can price.
    """
    compared = None
    if other is not None:
        name, module = other
        same = system_hardware(module) == system_hardware(answer.module)
        compared = Compared(name, figures_of(module, question.model), same)
    return Report(
        question, answer, figures_of(answer.module, question.model), front, compared
    )


def command_of(question: Question) -> str:
    """Return the command that asks a question."""
    words = ["comet-explore", question.program.name]
    words += ["--hardware", question.hardware.name]
    if question.constraints != NOTHING:
        words += ["--constraints", question.constraints.name]
    words += ["--model", question.model, "--objective", question.objective]
    words += ["--time-limit", f"{question.time_limit:g}"]
    words += ["--tolerance", f"{question.tolerance:g}"]
    return shlex.join(words)


def _values(report: Report) -> dict[str, object]:
    """Return what the template names, apart from the plots."""
    question, answer, figures = report.question, report.answer, report.figures
    other = report.other
    program, machine = Path(question.program.name), Path(question.hardware.name)
    trace = chrome_trace(figures.slices, f"{program.stem} on {machine.stem}")
    making = ("comet-opt", question.program.name, "-p", answer.pipeline)
    return {
        "title": f"{program.stem} on {machine.stem}",
        "stem": program.stem,
        "sections": (*SECTIONS, *((("compare", "compared"),) if other else ())),
        "answer": answer,
        "figures": figures,
        "unit": UNITS[answer.objective],
        "scope": energy_scope(figures.model),
        "terms": sum(term.cycles for term in figures.parts.terms),
        "spent": sum(figures.energy_by_level.values()),
        "trace": b64encode(gzip.compress(trace.encode(), mtime=0)).decode(),
        "front": report.front,
        "seconds": min(question.time_limit, MOST_SECONDS),
        "other": None if other is None else other.figures,
        "other_name": "" if other is None else other.name,
        "other_machine": other is not None and not other.same_machine,
        "compared": () if other is None else _compared(figures, other.figures),
        "command": command_of(question),
        "pipeline": shlex.join(making),
        "digests": _digests(question),
    }


def _compared(figures: Figures, other: Figures) -> list[tuple[str, float, float]]:
    """Return pairs of figures with their names and units."""
    rows = [
        ("latency, cycles", figures.latency, other.latency),
        ("energy, pJ", figures.energy, other.energy),
        ("energy-delay product, pJ x cycles", figures.edp, other.edp),
    ]
    tables = [
        (
            "cycles",
            *({t.name: t.cycles for t in f.parts.terms} for f in (figures, other)),
        ),
        ("pJ", figures.energy_by_level, other.energy_by_level),
    ]
    for unit, mine, theirs in tables:
        rows += (
            (f"{name}, {unit}", mine.get(name, 0.0), theirs.get(name, 0.0))
            for name in dict.fromkeys((*mine, *theirs))
        )
    return rows


def _digests(question: Question) -> Mapping[str, str]:
    sources = (question.program, question.hardware, question.constraints)
    return {
        source.name: sha256(source.text.encode()).hexdigest()
        for source in sources
        if source != NOTHING
    }


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("comet.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )


def conserved(total: float, whole: float, what: str) -> str:
    """Say whether a total is the whole, up to rounding."""
    if isclose(total, whole, rel_tol=1e-9, abs_tol=1e-6):
        return f"= {what}"
    return f"differs from {what} by {total - whole:,.6g}"


_FORMATS: Mapping[str, Callable[..., str]] = {
    "cycles": "{:,.0f}".format,
    "count": "{:,g}".format,
    "bound": "{:,.6g}".format,
    "short": "{:.4g}".format,
    "percent": percent,
    "conserved": conserved,
}
"""How the template formats numbers."""
