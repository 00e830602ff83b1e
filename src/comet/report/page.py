"""
A page that needs no other file: sections of plots, tables and text, as HTML.

It says nothing about programs or machines: what it shows is made elsewhere. Needs the
extra `report`.
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


@dataclass(frozen=True)
class Row:
    """A line of a table."""

    cells: tuple[str, ...]
    is_sum: bool = False
    """Whether it is the sum of lines above, which sorting leaves where it is."""


@dataclass(frozen=True)
class Table:
    """Numbers and words; a column with a word is aligned to the left."""

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
    """Whether it explains what is beside it."""


def note(text: str) -> Text:
    """Return a paragraph that explains what is beside it."""
    return Text(text, muted=True)


@dataclass(frozen=True)
class Code:
    """What a user may type."""

    kind: ClassVar[str] = "code"
    text: str


@dataclass(frozen=True)
class Node:
    """A node of a tree, and what is below it."""

    index: int
    style: str
    """What kind of node it is: the name of its style."""
    cells: tuple[str, str, str, str]
    """What it is, where, with which factors, and what it works on."""
    note: str
    children: tuple[Node, ...]


@dataclass(frozen=True)
class Tree:
    """A tree, each node with its children below it."""

    kind: ClassVar[str] = "tree"
    root: Node


@dataclass(frozen=True)
class Trace:
    """A link to a trace, which the page holds."""

    kind: ClassVar[str] = "trace"
    process: Process
    stem: str
    """The name of the file without its ending."""
    unit: str
    """What one microsecond of the trace is, empty if it is one."""

    @property
    def data(self) -> str:
        """The compressed file in base64."""
        text = json.dumps(trace_of([self.process]))
        return b64encode(gzip.compress(text.encode(), mtime=0)).decode()


@dataclass(frozen=True)
class Folded:
    """What is shown when its title is clicked."""

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
    """What limits the time, in a sentence."""
    note: str
    """What the headline rests on."""
    sections: tuple[Section, ...]

    @property
    def plots(self) -> tuple[Plot, ...]:
        """The plots of all sections."""
        parts = (part for section in self.sections for part in _flat(section.parts))
        return tuple(part for part in parts if isinstance(part, Plot))

    def html(self) -> str:
        """Return the file."""
        return _environment().get_template("page.html.jinja").render(page=self)

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


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("comet.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
