"""The plots of reports, each of plain numbers; needs the extra `report`."""

# Some environments that check types have no matplotlib, which has few types anyway.
# pyright: reportMissingImports=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from math import ceil, inf
from pathlib import Path
from typing import ClassVar, TypeAlias

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import NullLocator

from comet.codegen.chrome_trace import Process
from comet.report.front import Point
from comet.report.numbers import MORE, Roofline, Room, Stack, Unit

INK, MUTED, ON = "#1b1f24", "#59636e", "#fefefe"
"""The colours of text, of secondary text, and of text on a dark colour."""

COLOURS = ("#2f6db5", "#d9730d", "#2b8a6e", "#8a5fbf", "#b8860b", "#c0392b", "#708090")
VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    ON: "var(--on)",
    **{colour: f"var(--c{place})" for place, colour in enumerate(COLOURS)},
}
"""The CSS variable of each colour, as a page has a light and a dark theme."""

BRIGHT = (COLOURS[1], COLOURS[4])
"""The colours on which text is black, in both themes."""

KIND_COLOURS = {
    "compute": COLOURS[0],
    "first reads": COLOURS[1],
    "last writes": COLOURS[4],
    "collective": COLOURS[3],
    "iterations": COLOURS[6],
    "busy": COLOURS[0],
    "launch": COLOURS[1],
    "synchronization": COLOURS[3],
    "communication": COLOURS[3],
    "wait": COLOURS[6],
    "barrier": COLOURS[5],
    "signal": COLOURS[4],
    "locality": COLOURS[2],
}
"""The colours of slices, and of taxes; that of a node is only an outline."""

PLAIN = "{x:,.10g}"
"""The format of numbers at an axis."""

LEGEND_COLUMNS = 6
"""The most entries in a row of a legend above a plot."""

NARROW = 1000
"""A slice shorter than the time divided by this is not drawn."""


@contextmanager
def _styled() -> Generator[None]:
    """Set the style of reports for the body."""
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


def _place(axes: Axes, width: float, height: float) -> None:
    """
    Leave room for tick labels, axis labels and a legend above in `width` x `height`.

    The layouts of matplotlib draw all texts twice to measure them.
    """
    line = mpl.rcParams["font.size"] / 72
    label = 1.7 * line if axes.get_ylabel() else 0
    left = 1.3 * line + _widest_label(axes) + label
    below = 1.8 * line + (1.6 * line if axes.get_xlabel() else 0)
    above = line + 1.7 * line * _legend_rows(axes)
    axes.set_position(
        (
            left / width,
            below / height,
            1 - (left + 1.5 * line) / width,
            1 - (below + above) / height,
        )
    )


def _widest_label(axes: Axes) -> float:
    """Return the inches that the widest name of a row or tick at the left takes."""
    names = (t for t in axes.texts if t.get_horizontalalignment() == "right")
    labels = [name.get_text() for name in names]
    if not labels:
        places = [*axes.yaxis.get_major_locator()()]
        labels = axes.yaxis.get_major_formatter().format_ticks(places)
    font = FontProperties(size=mpl.rcParams["font.size"])
    measure = text_to_path.get_text_width_height_descent
    widths = (measure(label, font, ismath=False)[0] for label in labels)
    return max(widths, default=0) / 72


def _legend_rows(axes: Axes) -> int:
    """Return how many lines the legend above has; one inside has a title."""
    legend = axes.get_legend()
    if legend is None or legend.get_title().get_text():
        return 0
    return ceil(len(legend.get_texts()) / LEGEND_COLUMNS)


Draw: TypeAlias = Callable[[Axes], None]


@dataclass(frozen=True)
class Plot:
    """One drawing."""

    kind: ClassVar[str] = "plot"
    name: str
    width: float
    """Inches, as the height."""
    height: float
    draw: Draw

    def figure(self) -> Figure:
        """Return the plot as a figure."""
        with _styled():
            figure = Figure(figsize=(self.width, self.height))
            axes = figure.subplots()
            self.draw(axes)
            _place(axes, self.width, self.height)
        return figure

    def save(self, folder: Path) -> None:
        """Write the plot as SVG and as PNG, on white."""
        figure = self.figure()
        for suffix in ("svg", "png"):
            path = folder / f"{self.name}.{suffix}"
            with _styled():
                figure.savefig(path, dpi=200, facecolor="white", bbox_inches="tight")

    def inline(self) -> str:
        """Return the plot as an `svg` element; its identifiers begin with its name."""
        text, figure = StringIO(), self.figure()
        with _styled():
            figure.savefig(text, format="svg", metadata={"Date": None})
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


@dataclass(frozen=True)
class Box:
    """A horizontal bar in a row, or a part of one."""

    left: float
    length: float
    row: float
    """The place of its middle."""
    colour: str
    """`none` for an outline."""
    height: float = 0.7

    @property
    def corners(self) -> Sequence[tuple[float, float]]:
        """The places of its corners."""
        right, low = self.left + self.length, self.row - self.height / 2
        high = low + self.height
        return (self.left, low), (self.left, high), (right, high), (right, low)


def _draw(axes: Axes, boxes: Sequence[Box], **style: str | float) -> None:
    """Draw boxes as one artist; bars would take several times as long."""
    corners, colours = [box.corners for box in boxes], [box.colour for box in boxes]
    drawn = PolyCollection(corners, facecolors=colours)
    drawn.set(**style)
    axes.add_collection(drawn, autolim=False)


def _name_rows(axes: Axes, count: int, names: Mapping[int, str]) -> None:
    """
    Show `count` rows, the first one above, with their names at the left.

    Ticks would take several times as long as texts.
    """
    for row, name in names.items():
        axes.annotate(
            name,
            (0, row),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            xytext=(-7, 0),
            ha="right",
            va="center_baseline",
        )
    axes.set_yticks(())
    axes.set_ylim(count - 0.5, -0.5)


def _numbered(names: Iterable[str]) -> tuple[int, Mapping[int, str]]:
    """Return how many rows there are, and their names."""
    numbered = dict(enumerate(names))
    return len(numbered), numbered


def waterfall(axes: Axes, bars: Mapping[str, Stack], whole: str, unit: Unit) -> None:
    """Draw bars that each start where the one before ends, then their sum."""
    start, boxes = 0.0, list[Box]()
    causes = list(dict.fromkeys(cause for bar in bars.values() for cause in bar))
    for place, bar in enumerate(bars.values()):
        ends = [start]
        for cause, length in bar.items():
            colour = COLOURS[5] if length < 0 else KIND_COLOURS.get(cause, COLOURS[0])
            boxes.append(Box(ends[-1], length, place, colour))
            ends.append(ends[-1] + length)
        _right_of(axes, unit.text(sum(bar.values())), max(ends), place)
        start = ends[-1]
    boxes.append(Box(0.0, start, len(bars), MUTED))
    _right_of(axes, unit.text(start), start, len(bars))
    _draw(axes, boxes)
    _name_rows(axes, *_numbered([*bars, whole]))
    axes.set_xlim(0, 1.15 * start)
    _label_x(axes, unit.name)
    _legend_of_kinds(axes, causes)


def stacked(axes: Axes, bars: Mapping[str, Stack], label: str) -> None:
    """Draw a stacked bar for each name."""
    causes = list(dict.fromkeys(cause for bar in bars.values() for cause in bar))
    left = [0.0] * len(bars)
    for place, cause in enumerate(causes):
        colour, cut = COLOURS[place % len(COLOURS)], place // len(COLOURS)
        boxes: list[Box] = []
        for row, bar in enumerate(bars.values()):
            if length := bar.get(cause, 0.0):
                boxes.append(Box(left[row], length, row, colour))
                left[row] += length
        _draw(axes, boxes, label=cause, alpha=1 / (1 + cut / 2))
    _name_rows(axes, *_numbered(bars))
    axes.set_xlim(0, 1.05 * max(left))
    _label_x(axes, label)
    _legend_above(axes)


def occupancies(axes: Axes, rooms: Sequence[Room]) -> None:
    """Draw the use of each capacity, in percent, with one colour for each part."""
    parts = list(dict.fromkeys(part for room in rooms for part in room.parts))
    left = [0.0] * len(rooms)
    for place, part in enumerate(parts):
        colour, cut = COLOURS[place % len(COLOURS)], place // len(COLOURS)
        boxes: list[Box] = []
        for row, room in enumerate(rooms):
            if width := 100 * room.parts.get(part, 0) / room.capacity:
                boxes.append(Box(left[row], width, row, colour))
                left[row] += width
        _draw(axes, boxes, label=part, alpha=1 / (1 + cut / 2))
    for row, room in enumerate(rooms):
        text = f"{room.used:,.0f} of {room.capacity:,} {room.unit}"
        _right_of(axes, text, left[row], row)
    _name_rows(axes, *_numbered(room.name for room in rooms))
    axes.set_xlim(0, 130)
    axes.set_xticks(range(0, 101, 25))
    axes.set_xlabel("percent of the capacity")
    if parts:
        _legend_above(axes)


def roofline(axes: Axes, line: Roofline) -> None:
    """
    Draw the roofs of memories and unit, and the points of a program.

    The first roofs have the widest lines, so that equal roofs stay visible.
    """
    ends = [mark.intensity for roof in line.roofs for mark in roof.marks]
    ends += [line.peak / roof.bandwidth for roof in line.roofs if line.peak < inf]
    low, high = min(ends) / 4, max(ends) * 4
    for place, roof in enumerate(line.roofs):
        colour = COLOURS[place % len(COLOURS)]
        bend = min(max(line.peak / roof.bandwidth, low), high)
        heights = [min(line.peak, x * roof.bandwidth) for x in (low, bend, high)]
        width = 1.2 + 0.6 * (len(line.roofs) - 1 - place)
        axes.plot((low, bend, high), heights, color=colour, lw=width, label=roof.level)
        for mark in roof.marks:
            axes.plot(mark.intensity, mark.reached, "o", color=colour)
            if place == 0 and mark.name:
                _annotate(axes, mark.name, mark.intensity, mark.reached)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):  # powers as formulas take longer than plots
        axis.set_major_formatter(PLAIN)
        axis.set_minor_locator(NullLocator())
    axes.set_xlabel("operations per byte")
    axes.set_ylabel(f"operations per {line.rate}, {line.unit}")
    axes.legend(title="roof and place of")


def _annotate(axes: Axes, text: str, x: float, y: float) -> None:
    """Write a text next to a point."""
    axes.annotate(text, (x, y), textcoords="offset points", xytext=(8, 6))


def _right_of(axes: Axes, text: str, x: float, y: float) -> None:
    """Write a text right of the end of a bar."""
    axes.annotate(text, (x, y), textcoords="offset points", xytext=(3, 0), va="center")


def _label_x(axes: Axes, text: str) -> None:
    """Label the horizontal axis, with numbers that have no exponents."""
    axes.set_xlabel(text)
    axes.locator_params("x", nbins=5)
    axes.xaxis.set_major_formatter(PLAIN)


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
        _annotate(axes, point.label, point.latency, point.energy)
    axes.margins(0.25)
    _label_x(axes, "latency, cycles")
    axes.set_ylabel("energy, pJ")
    axes.yaxis.set_major_formatter(PLAIN)


def savings(axes: Axes, saved: Mapping[str, float]) -> None:
    """Draw the percent of the latency that more of each resource saves."""
    _draw(axes, [Box(0, n, row, COLOURS[2]) for row, n in enumerate(saved.values())])
    _name_rows(axes, *_numbered(saved))
    axes.set_xlim(0, 1.05 * max(saved.values()) or 1)
    _label_x(axes, f"percent of the latency that {MORE - 1:.0%} more saves")


def compare(axes: Axes, mine: Stack, other: Stack, unit: Unit) -> None:
    """Draw the numbers of two programs next to each other."""
    names = list(dict.fromkeys((*mine, *other)))
    for number, (label, stack) in enumerate((("this", mine), ("the other", other))):
        colour, place = COLOURS[number], 0.38 * number - 0.19
        values = [stack.get(name, 0.0) for name in names]
        boxes = [Box(0, n, row + place, colour, 0.36) for row, n in enumerate(values)]
        _draw(axes, boxes, label=label)
    _name_rows(axes, *_numbered(names))
    axes.set_xlim(0, 1.05 * max((*mine.values(), *other.values())))
    _label_x(axes, unit.name)
    _legend_above(axes)


def gantt(axes: Axes, process: Process, unit: Unit) -> None:
    """Draw slices over time, each above its parts; those of a node are a group."""
    slices = process.slices
    end = max(slice_.start + slice_.length for slice_ in slices)
    groups: dict[tuple[object, str | None], list[Box]] = {}
    for slice_ in slices:
        if slice_.length < end / NARROW:
            continue
        colour = KIND_COLOURS.get(slice_.kind)
        box = Box(slice_.start, slice_.length, slice_.row, colour or "none", 0.84)
        groups.setdefault((slice_.details.get("node", ""), colour), []).append(box)
        fitting = int(slice_.length / end * 110)
        if fitting >= 4:
            text = (
                slice_.name
                if len(slice_.name) <= fitting
                else slice_.name[: fitting - 1] + "…"
            )
            place = slice_.start + slice_.length / 2, slice_.row
            ink = INK if colour is None else "black" if colour in BRIGHT else ON
            axes.text(*place, text, ha="center", va="center", fontsize=7, color=ink)
    for number, ((node, _), boxes) in enumerate(groups.items()):
        gid = f"slice-{node}-{number}"
        _draw(axes, boxes, edgecolor=MUTED, linewidth=0.4, gid=gid)
    _name_rows(axes, 1 + max(slice_.row for slice_ in slices), process.rows)
    axes.set_xlim(0, end)
    _label_x(axes, unit.name)
    _legend_of_kinds(axes, {slice_.kind for slice_ in slices})


def _legend_of_kinds(axes: Axes, shown: Collection[str]) -> None:
    """Add a legend for the colours of kinds."""
    kinds = [kind for kind in KIND_COLOURS if kind in shown]
    for kind in kinds:
        _draw(axes, [Box(0, 0, 0, KIND_COLOURS[kind])], label=kind)
    if kinds:
        _legend_above(axes)


def _legend_above(axes: Axes) -> None:
    """Add the legend above the plot, where it hides nothing."""
    axes.legend(ncols=LEGEND_COLUMNS, loc="lower center", bbox_to_anchor=(0.5, 1.0))
