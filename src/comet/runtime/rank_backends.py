"""The back ends for programs whose ranks have a plan, by the names that users give."""

from __future__ import annotations

from comet.runtime import (
    distributed,
    one_rank,
    processes,
    scheduler,
    virtual_interpreted,
)
from comet.runtime.check_ranks import Run, heap_bytes
from comet.runtime.deadlock import DeadlockError
from comet.runtime.engine import ProgramError
from comet.runtime.gpu import Gpu
from comet.runtime.races import RaceError
from comet.runtime.ranks import SymmetryError
from comet.runtime.request import Request
from comet.runtime.virtual import check_on

FAILURES = (DeadlockError, RaceError, ProgramError, SymmetryError)
"""The exceptions of a back end for a wrong program."""


def backend(request: Request) -> Run:
    """Return the requested back end."""
    seed, resident, graph = request.seed, request.resident, request.graph
    match request.backend:
        case "interpreter":
            return one_rank.run
        case "virtual":
            return lambda host: virtual_interpreted.run(
                host, seed=seed, resident=resident, graph=graph
            )
        case "gpu":
            return lambda host: check_on(Gpu(), host, graph=graph)
        case "distributed":
            return lambda host: distributed.run(host, graph=graph)
        case name:
            run = processes.run if name == "processes" else scheduler.run
            return lambda host: run(
                host,
                host.program.ranks,
                seed=seed,
                resident=resident,
                heap_bytes=heap_bytes(host.program),
            )
