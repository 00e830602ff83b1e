"""
All ranks in one process, one program at a time, in an order that a seed decides.

Runs can be repeated exactly: the same seed gives the same interleaving. A deadlock is
reported at once; so is every race, even if it did no harm in this run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from comet.runtime.engine import Engine, watched_engine
from comet.runtime.engine_rank import EngineRank
from comet.runtime.heap import HEAP_BYTES, aligned_bytes
from comet.runtime.interpreted import launched_by
from comet.runtime.ranks import Rank, T, expect_same_allocations

if TYPE_CHECKING:
    import torch

    from comet.runtime.program import Program


class _HostBarrier:
    """A barrier of the hosts of all ranks."""

    def __init__(self, ranks: list[_ScheduledRank], engine: Engine):
        self._ranks = ranks
        self._engine = engine
        self._arrived = [0] * len(ranks)

    def join(self, rank: int) -> None:
        """Return when every rank has called this as often as this one."""
        self._arrived[rank] += 1
        count = self._arrived[rank]
        if min(self._arrived) == count:
            self._all_here()
        self._engine.pause(
            lambda: self._missing(count), lambda: min(self._arrived) >= count, self
        )

    def _missing(self, count: int) -> str:
        late = [str(rank) for rank, n in enumerate(self._arrived) if n < count]
        return f"waits at barrier {count} for rank {', '.join(late)}"

    def _all_here(self) -> None:
        expect_same_allocations([rank.heap.log for rank in self._ranks])
        self._engine.host_barrier([rank.actor for rank in self._ranks])
        self._engine.conductor.notify(self)


class _ScheduledRank(EngineRank):
    """One rank among the tasks of an engine."""

    hosts: _HostBarrier

    def barrier(self) -> None:
        self.hosts.join(self.rank)


def run(
    body: Callable[[Rank], T],
    world: int,
    *,
    seed: int = 0,
    resident: int | None = None,
    heap_bytes: int = HEAP_BYTES,
    races: bool = True,
) -> list[T]:
    """
    Run a host program on every rank; return what each returned.

    At most `resident` programs of a rank run at the same time: the next starts when one
    has ended. `races`: whether to check for races.
    Raises `DeadlockError`, `RaceError`, `SymmetryError`, `ProgramError`, or what a host
    program raised.
    """
    engine = watched_engine(seed, resident, races=races)
    heaps = [aligned_bytes(heap_bytes) for _ in range(world)]
    ranks = [_ScheduledRank(rank, engine, heaps) for rank in range(world)]
    hosts = _HostBarrier(ranks, engine)
    results: dict[int, T] = {}
    for rank in ranks:
        rank.hosts = hosts
        rank.add_host(lambda rank=rank: results.update({rank.rank: body(rank)}))
    engine.run()
    return [results[rank] for rank in range(world)]


def scheduled(program: Program, seed: int, resident: int | None) -> Program:
    """
    Return a program of one rank whose launch runs on the scheduler.

    At most `resident` programs run at the same time, all if it is None. The launch
    raises `RaceError` or `ProgramError` if a kernel is wrong.
    """

    def launch(*inputs: torch.Tensor) -> torch.Tensor | tuple[torch.Tensor, ...]:
        def host(rank: Rank) -> torch.Tensor | tuple[torch.Tensor, ...]:
            with launched_by(rank.launch):
                return program.launch(*inputs)

        (results,) = run(host, 1, seed=seed, resident=resident)
        return results

    return replace(program, launch=launch)
