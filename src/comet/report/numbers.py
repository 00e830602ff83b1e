"""Numbers as a report shows them: with units, and with what they are part of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose
from typing import TypeAlias

MORE = 1.1
"""How much more of each resource is priced."""


@dataclass(frozen=True)
class Unit:
    """
    What numbers are in, and how many digits they have after the point.

    If that would leave fewer than two digits, small numbers have two.
    """

    name: str
    digits: int = 0

    def text(self, number: float) -> str:
        """Return a number."""
        if self.digits and 0 < abs(number) < 10 ** (1 - self.digits):
            return f"{number:#.2g}"
        return f"{number:,.{self.digits}f}"


CYCLES, PICOJOULES, BYTES = Unit("cycles"), Unit("pJ"), Unit("bytes")

MICROSECONDS = Unit("us", 2)

Stack: TypeAlias = "Mapping[str, float]"
"""Numbers in one bar, by what they are for."""


@dataclass(frozen=True)
class Room:
    """What is used of something that has a limit."""

    name: str
    capacity: int
    parts: Stack
    """What is there at the same time."""
    unit: str = "bytes"

    @property
    def used(self) -> float:
        """All parts together."""
        return sum(self.parts.values())


@dataclass(frozen=True)
class Mark:
    """A place in a roofline."""

    name: str
    """Of what, empty if there is only one."""
    intensity: float
    """Operations per byte."""
    reached: float
    """Operations per unit of time."""


@dataclass(frozen=True)
class Roof:
    """What a memory allows."""

    level: str
    bandwidth: float
    """Bytes per unit of time."""
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Roofline:
    """What a unit and the memories that feed it allow, and what is reached."""

    unit: str
    """The name of the unit."""
    rate: str
    """What operations are counted per."""
    peak: float
    """Operations per unit of time."""
    roofs: tuple[Roof, ...]


def percent(part: float, whole: float) -> str:
    """Return a part in percent of the whole."""
    return f"{100 * part / whole:.1f} %"


def conserved(total: float, whole: float, what: str) -> str:
    """Say whether a total is the whole, up to rounding."""
    if isclose(total, whole, rel_tol=1e-9, abs_tol=1e-6):
        return f"= {what}"
    return f"differs from {what} by {total - whole:,.6g}"
