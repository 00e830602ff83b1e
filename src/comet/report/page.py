"""
A self-contained HTML page: sections of plots, tables and text.

It knows nothing about programs or machines. Needs the extra `report`.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined

from comet.codegen.chrome_trace import Process, trace_of
from comet.report.plots import Plot

_TEMPLATE = Environment(
    loader=PackageLoader("comet.report", "."),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
).get_template("page.html.jinja")
"""Compiled when the module is loaded, which is before a search."""


@dataclass(frozen=True)
class Row:
    """A line of a table."""

    cells: tuple[str, ...]
    is_sum: bool = False
    """Whether it is the sum of lines above, which sorting does not move."""


@dataclass(frozen=True)
class Table:
    """A table of numbers and words; columns of words are aligned to the left."""

    kind: ClassVar[str] = "table"
    head: tuple[str, ...]
    rows: Sequence[Row]
    words: frozenset[int] = frozenset()
    """The columns of words, besides the first."""


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    words: Sequence[int] = (),
    sums: Sequence[int] = (),
) -> Table:
    """Return a table; `words` are the columns of words, `sums` the lines of sums."""
    lines = (Row(tuple(cells), n in sums) for n, cells in enumerate(rows))
    return Table(tuple(head), tuple(lines), frozenset(words))


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str
    muted: bool = False
    """Whether it is a note to the part before it."""


def note(text: str) -> Text:
    """Return a note to the part before it."""
    return Text(text, muted=True)


@dataclass(frozen=True)
class Code:
    """A command."""

    kind: ClassVar[str] = "code"
    text: str


@dataclass(frozen=True)
class Node:
    """A node of a tree, with its descendants."""

    index: int
    style: str
    """The name of its CSS style."""
    cells: tuple[str, str, str, str]
    """The kind, the levels, the factors, and the tensors or operation."""
    note: str
    children: tuple[Node, ...]


@dataclass(frozen=True)
class Tree:
    """A tree."""

    kind: ClassVar[str] = "tree"
    root: Node


@dataclass(frozen=True)
class Trace:
    """A link to a trace that is embedded in the page."""

    kind: ClassVar[str] = "trace"
    process: Process
    stem: str
    """The name of the file without its ending."""
    unit: str
    """The meaning of one microsecond of the trace; empty if it is a microsecond."""

    @property
    def data(self) -> str:
        """The compressed file in base64."""
        text = json.dumps(trace_of([self.process]))
        return b64encode(gzip.compress(text.encode(), mtime=0)).decode()


@dataclass(frozen=True)
class Folded:
    """Parts that are hidden until their title is clicked."""

    kind: ClassVar[str] = "folded"
    title: str
    parts: Sequence[Part]


Part: TypeAlias = Plot | Table | Text | Code | Tree | Trace | Folded


@dataclass(frozen=True)
class Section:
    """A part of the page that its head links to."""

    name: str
    """The target of the link."""
    link: str
    """The text of the link."""
    heading: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Page:
    """A page."""

    title: str
    facts: Mapping[str, str]
    """The headline: numbers by name."""
    summary: str
    """A sentence on the bottleneck."""
    note: str
    """The model and the assumptions behind the headline."""
    sections: tuple[Section, ...]

    @property
    def plots(self) -> tuple[Plot, ...]:
        """The plots of all sections."""
        parts = (part for section in self.sections for part in _flat(section.parts))
        return tuple(part for part in parts if isinstance(part, Plot))

    def html(self) -> str:
        """Return the page as HTML."""
        return _TEMPLATE.render(page=self)

    def save_plots(self, folder: Path) -> None:
        """Write each plot into a folder, as SVG and as PNG; raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        for plot in self.plots:
            plot.save(folder)


def _flat(parts: Sequence[Part]) -> Iterator[Part]:
    for part in parts:
        yield part
        if isinstance(part, Folded):
            yield from _flat(part.parts)
