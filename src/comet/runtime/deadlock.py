"""The report of a deadlock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from comet.runtime.memory import MemoryMap, Operation

SHOWN = 24
"""The most programs that a report names."""


@dataclass(frozen=True)
class Waiting:
    """A program or host that cannot continue, and what it waits for."""

    operation: Operation
    """The rank, the program or host, and its location."""
    reason: str

    def __str__(self) -> str:
        """Return its line of the report."""
        return f"{self.operation}: {self.reason}"


class DeadlockError(Exception):
    """Every program and host that has not ended is waiting."""

    def __init__(self, waiting: Sequence[Waiting], summary: str):
        lines = [f"  {entry}" for entry in waiting[:SHOWN]]
        if len(waiting) > SHOWN:
            lines.append(f"  and {len(waiting) - SHOWN} more")
        super().__init__("\n".join([summary, *lines]))
        self.waiting = tuple(waiting)
        self.summary = summary

    def __reduce__(self) -> tuple[object, ...]:
        """Make the error picklable, to pass it between processes."""
        return type(self), (self.waiting, self.summary)


def flag_name(memory: MemoryMap, address: int) -> str:
    """Return the name of a flag with its rank, for reports."""
    region = memory.find(address)
    if region is None:
        return f"address {address:#x}"
    return f"{region.element(address)} of rank {region.rank}"
