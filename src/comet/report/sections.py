"""The sections that pages on accelerators and on GPUs share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

from comet.api.source import Source
from comet.codegen.chrome_trace import Process
from comet.passes.search.record import Choice
from comet.report.numbers import Roofline, Room, Stack, Unit, percent
from comet.report.page import Code, Folded, Part, Section, Text, Trace, note, table
from comet.report.plots import (
    Plot,
    compare,
    gantt,
    occupancies,
    roofline,
    savings,
)


def timeline_section(
    process: Process, unit: Unit, stem: str, microsecond: str, explained: str
) -> Section:
    """
    Return the section of the timeline, with a link to the trace.

    `microsecond` is the meaning of one microsecond of the trace, as in `Trace.unit`.
    """
    rows = 1 + max(slice_.row for slice_ in process.slices)
    plot = Plot(
        "timeline", 9, 1.2 + 0.3 * rows, partial(gantt, process=process, unit=unit)
    )
    parts = (plot, note(explained), Trace(process, stem, microsecond))
    return Section("timeline", "timeline", "Predicted timeline", parts)


def occupancy_section(rooms: Sequence[Room], explained: str) -> Section:
    """Return the section on the use of capacities."""
    plot = Plot("occupancy", 8, 1 + 0.3 * len(rooms), partial(occupancies, rooms=rooms))
    rows = [
        (
            room.name,
            f"{room.capacity:,} {room.unit}",
            f"{room.used:,.0f}",
            percent(room.used, room.capacity),
            ", ".join(f"{name}: {size:,.0f}" for name, size in room.parts.items()),
        )
        for room in rooms
    ]
    head = ("where", "capacity", "used at most", "part", "by")
    parts = (plot, table(head, rows, words=(4,)), note(explained))
    return Section("occupancy", "occupancy", "Occupancy", parts)


def roofline_section(line: Roofline, explained: str) -> Section:
    """Return the section of a roofline."""
    plot = Plot("roofline", 7, 4, partial(roofline, line=line))
    return Section("roofline", "roofline", "Roofline", (plot, note(explained)))


def more_section(
    latencies: Mapping[str, float], latency: float, unit: Unit, explained: str
) -> Section:
    """Return the section on latencies with 10 % more of each resource."""
    order = sorted(latencies, key=lambda name: latencies[name])
    saved = {name: 100 * (1 - latencies[name] / latency) for name in order}
    plot = Plot("more", 8, 0.8 + 0.22 * len(order), partial(savings, saved=saved))
    rows = [
        (name, unit.text(latencies[name]), f"{saved[name]:.1f} %") for name in order
    ]
    head = ("10 % more", f"latency, {unit.name}", "saved")
    parts = (plot, table(head, rows), note(explained))
    return Section("more", "10 % more", "What 10 % more would give", parts)


@dataclass(frozen=True)
class Pair:
    """The same figure of this program, and of another one."""

    name: str
    unit: Unit
    mine: float
    other: float

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of a table."""
        ratio = f"{self.other / self.mine:.3f} x" if self.mine else ""
        numbers = (self.unit.text(self.mine), self.unit.text(self.other))
        return f"{self.name}, {self.unit.name}", *numbers, ratio


def pairs(unit: Unit, mine: Stack, other: Stack) -> Iterator[Pair]:
    """Yield the numbers of two programs by name; a missing one is 0."""
    for name in dict.fromkeys((*mine, *other)):
        yield Pair(name, unit, mine.get(name, 0.0), other.get(name, 0.0))


def compare_section(
    name: str,
    stacks: tuple[Stack, Stack],
    numbers: Iterable[Pair],
    unit: Unit,
    *more: Part,
) -> Section:
    """Return the section that compares this program with another, in file `name`."""
    mine, other = stacks
    draw = partial(compare, mine=mine, other=other, unit=unit)
    head = ("", "this", "the other", "the other is")
    rows = [pair.cells for pair in numbers]
    plot = Plot("compare", 8, 1 + 0.4 * len({**mine, **other}), draw)
    parts = (plot, table(head, rows), *more)
    return Section("compare", "compared", f"Compared with {name}", parts)


def choices_section(choices: Sequence[Choice], unit: Unit, scale: float) -> Section:
    """
    Return the section on the choices of passes, a table for each.

    Costs times `scale` are in `unit`. Choices within candidates of others are hidden
    until they are clicked.
    """
    outer = [choice for choice in choices if not choice.within]
    inner = [choice for choice in choices if choice.within]
    parts: list[Part] = []
    for choice in reversed(outer):
        parts += _choice(choice, unit, scale)
    if inner:
        folded = [part for choice in inner for part in _choice(choice, unit, scale)]
        parts.append(Folded("The choices within these candidates", folded))
    if not choices:
        parts.append(Text("Every option was given, so there was nothing to choose."))
    return Section("choices", "candidates", "What was chosen from", parts)


def _choice(choice: Choice, unit: Unit, scale: float) -> Iterator[Part]:
    within = f", with {', '.join(choice.within)}" if choice.within else ""
    yield Text(f"{choice.name} for {choice.place}{within}:")
    rows = [
        (
            row.label,
            "" if row.cost is None else unit.text(scale * row.cost.latency),
            "chosen" if number == choice.chosen else "",
            row.limit,
        )
        for number, row in enumerate(choice.rows)
    ]
    head = ("candidate", unit.name, "", "limited by")
    yield table(head, rows, words=(2, 3))


def reproduce_section(
    commands: Mapping[str, str], inputs: Sequence[Source], versions: Mapping[str, str]
) -> Section:
    """Return the section with commands by heading, digests of files, and versions."""
    parts: list[Part] = []
    for what, command in commands.items():
        parts += (Text(f"{what}:"), Code(command))
    digests = [
        (source.name, sha256(source.text.encode()).hexdigest()) for source in inputs
    ]
    parts.append(table(("input", "SHA-256"), digests, words=(1,)))
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    parts.append(Text(f"Versions: {named}."))
    return Section("reproduce", "reproduce", "Reproduce", parts)
