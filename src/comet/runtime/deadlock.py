"""What is said where nothing can go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from comet.runtime.memory import MemoryMap

SHOWN = 24
"""A report names at most this many programs."""


@dataclass(frozen=True)
class Waiting:
    """A program or host that cannot go on, and what it waits for."""

    rank: int
    program: str
    """The kernel and the index of the program in its grid, or the host."""
    place: str
    """File and line."""
    reason: str

    def __str__(self) -> str:
        """Return the report's line."""
        return f"rank {self.rank}, {self.program}, {self.place}: {self.reason}"


class DeadlockError(Exception):
    """Every program and host that has not ended waits for something."""

    def __init__(self, waiting: Sequence[Waiting], summary: str):
        lines = [f"  {entry}" for entry in waiting[:SHOWN]]
        if len(waiting) > SHOWN:
            lines.append(f"  and {len(waiting) - SHOWN} more")
        super().__init__("\n".join([summary, *lines]))
        self.waiting = tuple(waiting)
        self.summary = summary

    def __reduce__(self) -> tuple[object, ...]:
        """Let the error pass from process to process."""
        return type(self), (self.waiting, self.summary)


def flag_name(memory: MemoryMap, address: int) -> str:
    """Name a flag and the rank it belongs to."""
    region = memory.find(address)
    if region is None:
        return f"address {address:#x}"
    return f"{region.element(address)} of rank {region.rank}"
