"""The plots of a report, drawn from its figures; needs the extra `report`."""

# Some environments that check types have no matplotlib, which has few types anyway.
# pyright: reportMissingImports=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TypeAlias

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from comet.report.figures import MORE, Figures
from comet.report.front import Point
from comet.report.timeline import Slice

INK, MUTED = "#1b1f24", "#59636e"
COLOURS = ("#2f6db5", "#d9730d", "#2b8a6e", "#8a5fbf", "#b8860b", "#c0392b", "#708090")
VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    **{colour: f"var(--c{place})" for place, colour in enumerate(COLOURS)},
}
"""What stands for each colour in a page, which has a light and a dark set."""

KIND_COLOURS = {
    "compute": COLOURS[0],
    "first reads": COLOURS[1],
    "last writes": COLOURS[4],
    "collective": COLOURS[3],
    "iterations": COLOURS[6],
}
"""The colours of slices; that of a node is only an outline."""

NARROW = 1000
"""A slice that takes a smaller part of the time is not drawn."""


@contextmanager
def _styled() -> Generator[None]:
    """Let the body draw in the style of reports."""
    with mpl.rc_context():
        mpl.rcParams.update(
            {
                "font.size": 9,
                "text.color": INK,
                "axes.labelcolor": INK,
                "axes.edgecolor": MUTED,
                "xtick.color": MUTED,
                "ytick.color": MUTED,
                "xtick.labelcolor": INK,
                "ytick.labelcolor": INK,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "legend.frameon": False,
                "legend.fontsize": 8,
                "svg.fonttype": "none",
                "svg.hashsalt": "comet",
                "figure.facecolor": "none",
                "axes.facecolor": "none",
                "savefig.facecolor": "none",
            }
        )
        yield


Draw: TypeAlias = Callable[[Axes], None]


@dataclass(frozen=True)
class Plot:
    """One drawing."""

    name: str
    width: float
    """Inches, as the height."""
    height: float
    draw: Draw

    def figure(self) -> Figure:
        """Draw."""
        with _styled():
            figure = Figure(figsize=(self.width, self.height), layout="constrained")
            self.draw(figure.subplots())
            figure.draw_without_rendering()
        return figure

    def save(self, folder: Path) -> None:
        """Write the plot as SVG and as PNG, on white."""
        figure = self.figure()
        for suffix in ("svg", "png"):
            path = folder / f"{self.name}.{suffix}"
            with _styled():
                figure.savefig(path, dpi=200, facecolor="white")

    def inline(self) -> str:
        """Return the plot as an `svg` element; its identifiers begin with its name."""
        text = StringIO()
        with _styled():
            self.figure().savefig(text, format="svg", metadata={"Date": None})
        svg = re.sub(r"(?s)<metadata>.*?</metadata>|<!--.*?-->", "", text.getvalue())
        svg = svg[svg.index("<svg") :]
        svg = re.sub(r' (xmlns(:\w+)?|version)="[^"]*"', "", svg)
        svg = re.sub(r' width="[^"]*pt" height="[^"]*pt"', ' role="img"', svg, count=1)
        svg = re.sub(r'\bid="', f'id="{self.name}-', svg)
        svg = re.sub(r"url\(#", f"url(#{self.name}-", svg)
        svg = svg.replace('xlink:href="#', f'href="#{self.name}-')
        for colour, variable in VARIABLES.items():
            svg = svg.replace(colour, variable)
        return svg


def plots_of(
    figures: Figures, front: Sequence[Point], other: Figures | None
) -> tuple[Plot, ...]:
    """Return the plots of a mapping, and of another one to compare it with."""
    names = len(figures.parts.terms)
    rows = 1 + max(one.row for one in figures.slices)
    plots = [
        Plot("waterfall", 8, 1 + 0.3 * names, lambda axes: waterfall(axes, figures)),
        Plot("timeline", 9, 1 + 0.3 * rows, lambda axes: gantt(axes, figures.slices)),
        Plot("energy", 8, 3, lambda axes: energies(axes, figures)),
        Plot("occupancy", 8, 2.4, lambda axes: occupancies(axes, figures)),
        Plot("roofline", 7, 4, lambda axes: roofline(axes, figures)),
        Plot(
            "more",
            8,
            0.8 + 0.22 * len(figures.gains),
            lambda axes: gains(axes, figures),
        ),
    ]
    if front:
        plots.append(Plot("front", 7, 3.6, lambda axes: pareto(axes, front)))
    if other is not None:
        plots.append(
            Plot("compare", 8, 3.6, lambda axes: compare(axes, figures, other))
        )
    return tuple(plots)


def waterfall(axes: Axes, figures: Figures) -> None:
    """Draw the terms of the latency, each from where the one before ends."""
    start = 0.0
    terms = figures.parts.terms
    for place, term in enumerate(terms):
        colour = COLOURS[5] if term.cycles < 0 else COLOURS[0]
        axes.barh(place, term.cycles, 0.7, left=start, color=colour)
        start += term.cycles
        text = f" {term.cycles:,.0f}"
        axes.text(max(start, start - term.cycles), place, text, va="center")
    axes.barh(len(terms), figures.latency, 0.7, color=MUTED)
    axes.text(figures.latency, len(terms), f" {figures.latency:,.0f}", va="center")
    labels = [*(term.name for term in terms), "latency"]
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * figures.latency)
    axes.set_xlabel("cycles")


def energies(axes: Axes, figures: Figures) -> None:
    """Draw the energy of each level, unit and network, stacked by cause."""
    table = figures.parts.energy
    order = sorted(table, key=lambda name: -sum(table[name].values()))
    shown = [name for name in order if sum(table[name].values()) > 0][:8]
    causes = list(dict.fromkeys(cause for name in shown for cause in table[name]))
    left = [0.0] * len(shown)
    for place, cause in enumerate(causes):
        values = [table[name].get(cause, 0.0) for name in shown]
        colour, cut = COLOURS[place % len(COLOURS)], place // len(COLOURS)
        axes.barh(
            range(len(shown)),
            values,
            0.7,
            left=left,
            color=colour,
            label=cause,
            alpha=1 / (1 + cut),
        )
        left = [a + b for a, b in zip(left, values, strict=True)]
    axes.set_yticks(range(len(shown)), shown)
    axes.invert_yaxis()
    axes.set_xlabel("energy, pJ")
    axes.legend(ncols=2)


def occupancies(axes: Axes, figures: Figures) -> None:
    """Draw how full each buffer is at its largest demand."""
    for place, room in enumerate(figures.rooms):
        left = 0.0
        for number, size in enumerate(room.parts.values()):
            width = 100 * size / room.capacity
            colour = COLOURS[number % len(COLOURS)]
            axes.barh(place, width, 0.7, left=left, color=colour)
            left += width
        text = f" {room.used:,.0f} of {room.capacity:,} bytes"
        axes.text(left, place, text, va="center")
    axes.set_yticks(range(len(figures.rooms)), [room.level for room in figures.rooms])
    axes.invert_yaxis()
    axes.set_xlim(0, 130)
    axes.set_xticks(range(0, 101, 25))
    axes.set_xlabel("percent of the capacity")


def roofline(axes: Axes, figures: Figures) -> None:
    """Draw what each memory and the unit allow, and what the mapping reaches."""
    line = figures.roofline
    ends = [roof.intensity for roof in line.roofs]
    ends += [line.peak / roof.bandwidth for roof in line.roofs]
    low, high = min(ends) / 4, max(ends) * 4
    for place, roof in enumerate(line.roofs):
        colour = COLOURS[place % len(COLOURS)]
        bend = min(max(line.peak / roof.bandwidth, low), high)
        heights = [min(line.peak, x * roof.bandwidth) for x in (low, bend, high)]
        axes.plot((low, bend, high), heights, color=colour, label=roof.level)
        axes.plot(roof.intensity, line.reached, "o", color=colour)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations per byte")
    axes.set_ylabel(f"operations per cycle, {line.unit}")
    axes.legend(title="roof and place of")


def pareto(axes: Axes, front: Sequence[Point]) -> None:
    """Draw latency and energy of mappings; the chosen one is the large point."""
    axes.plot(
        [point.latency for point in front],
        [point.energy for point in front],
        "o--",
        color=COLOURS[0],
        linewidth=0.8,
    )
    for point in front:
        if point.chosen:
            axes.plot(point.latency, point.energy, "o", color=COLOURS[1], markersize=11)
        axes.annotate(
            f" {point.label}",
            (point.latency, point.energy),
            textcoords="offset points",
            xytext=(6, 6),
        )
    axes.margins(0.25)
    axes.set_xlabel("latency, cycles")
    axes.set_ylabel("energy, pJ")


def gains(axes: Axes, figures: Figures) -> None:
    """Draw by how much the latency shrinks with more of each resource."""
    order = sorted(figures.gains, key=lambda gain: gain.latency)
    saved = [100 * (1 - gain.latency / figures.latency) for gain in order]
    axes.barh(range(len(order)), saved, 0.7, color=COLOURS[2])
    axes.set_yticks(range(len(order)), [gain.resource for gain in order])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel(f"percent of the latency that {100 * (MORE - 1):.0f} % more saves")


def compare(axes: Axes, figures: Figures, other: Figures) -> None:
    """Draw the terms of the latencies of two mappings."""
    names = list(dict.fromkeys(t.name for f in (figures, other) for t in f.parts.terms))
    labels = ("this mapping", "the other")
    for number, (label, one) in enumerate(zip(labels, (figures, other), strict=True)):
        known = {term.name: term.cycles for term in one.parts.terms}
        places = [place + 0.38 * number for place in range(len(names))]
        values = [known.get(name, 0.0) for name in names]
        axes.barh(places, values, 0.36, color=COLOURS[number], label=label)
    axes.set_yticks([place + 0.19 for place in range(len(names))], names)
    axes.invert_yaxis()
    axes.set_xlabel("cycles")
    axes.legend()


def gantt(axes: Axes, slices: Sequence[Slice]) -> None:
    """Draw slices over time, what is made of others above its parts."""
    end = max(one.start + one.cycles for one in slices)
    for number, one in enumerate(slices):
        if one.cycles < end / NARROW:
            continue
        colour = KIND_COLOURS.get(one.kind)
        axes.broken_barh(
            [(one.start, one.cycles)],
            (one.row - 0.42, 0.84),
            facecolor="none" if colour is None else colour,
            edgecolor=MUTED,
            linewidth=0.4,
            gid=f"slice-{one.node}-{number}",
        )
        fitting = int(one.cycles / end * 110)
        if fitting >= 4:
            text = (
                one.name if len(one.name) <= fitting else one.name[: fitting - 1] + "…"
            )
            place = one.start + one.cycles / 2, one.row
            axes.text(*place, text, ha="center", va="center", fontsize=7)
    axes.set_yticks([])
    axes.set_ylim(max(one.row for one in slices) + 0.5, -0.5)
    axes.set_xlim(0, end)
    axes.set_xlabel("cycles")
    shown = {one.kind for one in slices}
    for kind, colour in KIND_COLOURS.items():
        if kind in shown:
            axes.barh(0, 0, color=colour, label=kind)
    axes.legend(ncols=5, loc="lower center", bbox_to_anchor=(0.5, 1.0))
