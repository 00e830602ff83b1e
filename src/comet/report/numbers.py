"""Numbers in a report: with units, capacities, and rooflines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose
from typing import TypeAlias

MORE = 1.1
"""The factor by which each resource is enlarged."""


@dataclass(frozen=True)
class Unit:
    """
    A unit, and the digits after the point of its numbers.

    Numbers that are too small for two digits are written with two significant ones.
    """

    name: str
    digits: int = 0

    def text(self, number: float) -> str:
        """Return a number as text."""
        if self.digits and 0 < abs(number) < 10 ** (1 - self.digits):
            return f"{number:#.2g}"
        return f"{number:,.{self.digits}f}"


CYCLES, PICOJOULES, BYTES = Unit("cycles"), Unit("pJ"), Unit("bytes")

MICROSECONDS = Unit("us", 2)

Stack: TypeAlias = "Mapping[str, float]"
"""The numbers of one bar by name."""


@dataclass(frozen=True)
class Room:
    """A capacity, and its use."""

    name: str
    capacity: int
    parts: Stack
    """The use at one time, by tensor or program."""
    unit: str = "bytes"

    @property
    def used(self) -> float:
        """The sum of the parts."""
        return sum(self.parts.values())


@dataclass(frozen=True)
class Mark:
    """A point in a roofline plot."""

    name: str
    """The name of the kernel; empty if there is only one point."""
    intensity: float
    """Operations per byte."""
    reached: float
    """Operations per unit of time."""


@dataclass(frozen=True)
class Roof:
    """The roof of a memory level, and the points under it."""

    level: str
    bandwidth: float
    """Bytes per unit of time."""
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Roofline:
    """The roofline model of a unit and its memories, with the points of a program."""

    unit: str
    """The name of the unit."""
    rate: str
    """The unit of time: cycle or second."""
    peak: float
    """Operations per unit of time; infinite if these take none."""
    roofs: tuple[Roof, ...]


def percent(part: float, whole: float) -> str:
    """Return a part in percent of the whole."""
    return f"{100 * part / whole:.1f} %"


def conserved(total: float, whole: float, what: str) -> str:
    """Return a text that says whether a total is the whole, up to rounding."""
    if isclose(total, whole, rel_tol=1e-9, abs_tol=1e-6):
        return f"= {what}"
    return f"differs from {what} by {total - whole:,.6g}"
