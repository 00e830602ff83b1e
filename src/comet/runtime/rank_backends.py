"""The back ends that run programs of several ranks, by the name users give."""

from __future__ import annotations

from comet.runtime.check_ranks import Epochs, Host, Run
from comet.runtime.deadlock import DeadlockError
from comet.runtime.engine import ProgramError
from comet.runtime.races import RaceError
from comet.runtime.ranks import SymmetryError
from comet.runtime.request import Request

FAILURES = (DeadlockError, RaceError, ProgramError, SymmetryError)
"""What a back end raises where the program is wrong."""


def backend(request: Request) -> Run:
    """Return the back end that is asked for; it is imported only then."""
    runs = {"scheduler": _scheduler, "processes": _processes}
    return runs[request.backend](request)


def _scheduler(request: Request) -> Run:
    from comet.runtime import scheduler

    def run(host: Host, ranks: int, heap_bytes: int) -> list[Epochs]:
        return scheduler.run(
            host,
            ranks,
            seed=request.seed,
            resident=request.resident,
            heap_bytes=heap_bytes,
        )

    return run


def _processes(request: Request) -> Run:
    from comet.runtime import processes

    def run(host: Host, ranks: int, heap_bytes: int) -> list[Epochs]:
        return processes.run(
            host,
            ranks,
            seed=request.seed,
            resident=request.resident,
            heap_bytes=heap_bytes,
        )

    return run
