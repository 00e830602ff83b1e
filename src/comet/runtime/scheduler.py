"""
All ranks in one process, one program at a time, in an order that a seed decides.

Runs are exact and can be repeated: the same seed gives the same interleaving. What
cannot go on is reported at once; so is every race, even one that did no harm.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from comet.runtime.deadlock import DeadlockError
from comet.runtime.engine import Actor, Engine
from comet.runtime.heap import Allocation, Heap, aligned_bytes
from comet.runtime.interpreted import observed
from comet.runtime.memory import Kind, MemoryMap, Region
from comet.runtime.races import RaceDetector
from comet.runtime.ranks import Launch, Rank, SymmetryError, T

HEAP_BYTES = 1 << 24


class _Meeting:
    """Where the hosts of all ranks wait for each other."""

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
            lambda: self._missing(count), until=lambda: min(self._arrived) >= count
        )

    def _missing(self, count: int) -> str:
        late = [str(rank) for rank, n in enumerate(self._arrived) if n < count]
        return f"waits at barrier {count} for rank {', '.join(late)}"

    def _all_here(self) -> None:
        expect_same_allocations([rank.heap.log for rank in self._ranks])
        self._engine.host_barrier([rank.actor for rank in self._ranks])


class _ScheduledRank(Rank):
    """One rank among the tasks of an engine."""

    actor: Actor
    meeting: _Meeting

    def __init__(self, rank: int, world: int, engine: Engine, heap_bytes: int):
        self.rank = rank
        self.world = world
        self.heap = Heap(aligned_bytes(heap_bytes), self._allocated)
        self._engine = engine

    def launch_together(self, *launches: Launch) -> None:
        self._engine.launch(self.actor, launches)

    def barrier(self) -> None:
        self.meeting.join(self.rank)

    def write(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        tensor.copy_(value)
        self._engine.host_access(self.actor, Kind.WRITE, tensor)

    def read(self, tensor: torch.Tensor) -> torch.Tensor:
        self._engine.host_access(self.actor, Kind.READ, tensor)
        return tensor.clone()

    def _allocated(self, tensor: torch.Tensor, allocation: Allocation) -> None:
        start, size = tensor.data_ptr(), tensor.nbytes
        if size:
            itemsize = tensor.element_size()
            name = allocation.name
            region = Region(start, size, itemsize, self.rank, name, symmetric=True)
            self._engine.memory.add(region)
            self._engine.host_access(self.actor, Kind.WRITE, tensor)


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
    has ended. `races` says whether to watch for races.
    Raises `DeadlockError`, `RaceError`, `SymmetryError`, `ProgramError`, or what a host
    program raised.
    """
    memory = MemoryMap()
    detector = RaceDetector(memory) if races else None

    def stuck() -> None:
        raise DeadlockError(engine.waiting(), "deadlock: no program can go on")

    engine = Engine(seed, stuck, detector, memory, resident)
    ranks = [_ScheduledRank(rank, world, engine, heap_bytes) for rank in range(world)]
    meeting = _Meeting(ranks, engine)
    results: dict[int, T] = {}
    bases = torch.tensor([rank.heap.base for rank in ranks], dtype=torch.int64)
    for rank in ranks:
        rank.heap_bases = bases.clone()
        rank.meeting = meeting
        rank.actor = engine.add_host(rank.rank, _host(body, rank, results))
    with observed(engine):
        engine.conductor.run()
    return [results[rank] for rank in range(world)]


def _host(
    body: Callable[[Rank], T], rank: Rank, results: dict[int, T]
) -> Callable[[], None]:
    def host() -> None:
        results[rank.rank] = body(rank)

    return host


def expect_same_allocations(logs: list[list[Allocation]]) -> None:
    """Raise `SymmetryError` where a rank allocated other things than rank 0."""
    for rank, log in enumerate(logs):
        for mine, theirs in zip(logs[0], log, strict=False):
            if mine != theirs:
                raise SymmetryError(
                    f"the heaps differ: rank 0 allocated {mine}, rank {rank} {theirs}"
                )
        if len(log) != len(logs[0]):
            raise SymmetryError(
                f"the heaps differ: rank 0 allocated {len(logs[0])} tensors, "
                f"rank {rank} {len(log)}; every rank has to allocate the same"
            )
