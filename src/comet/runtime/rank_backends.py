"""The back ends for programs of several ranks, by the names that users give."""

from __future__ import annotations

from comet.runtime.check_ranks import Epochs, Host, Run, heap_bytes
from comet.runtime.deadlock import DeadlockError
from comet.runtime.engine import ProgramError
from comet.runtime.races import RaceError
from comet.runtime.ranks import SymmetryError
from comet.runtime.request import Request

FAILURES = (DeadlockError, RaceError, ProgramError, SymmetryError)
"""What a back end raises if the program is wrong."""


def backend(request: Request) -> Run:
    """Return the requested back end, which is imported only now."""
    runs = {
        "scheduler": _scheduler,
        "processes": _processes,
        "virtual": _virtual,
        "gpu": _gpu,
        "distributed": _distributed,
    }
    return runs[request.backend](request)


def _scheduler(request: Request) -> Run:
    from comet.runtime import scheduler

    def run(host: Host) -> list[Epochs]:
        return scheduler.run(
            host,
            host.program.ranks,
            seed=request.seed,
            resident=request.resident,
            heap_bytes=heap_bytes(host.program),
        )

    return run


def _processes(request: Request) -> Run:
    from comet.runtime import processes

    def run(host: Host) -> list[Epochs]:
        return processes.run(
            host,
            host.program.ranks,
            seed=request.seed,
            resident=request.resident,
            heap_bytes=heap_bytes(host.program),
        )

    return run


def _virtual(request: Request) -> Run:
    from comet.runtime import virtual_interpreted

    def run(host: Host) -> list[Epochs]:
        return virtual_interpreted.run(
            host, seed=request.seed, resident=request.resident, graph=request.graph
        )

    return run


def _gpu(request: Request) -> Run:
    from comet.runtime.gpu import Gpu
    from comet.runtime.virtual import check_on

    return lambda host: check_on(Gpu(), host, graph=request.graph)


def _distributed(request: Request) -> Run:
    from comet.runtime import distributed

    return lambda host: distributed.run(host, graph=request.graph)
