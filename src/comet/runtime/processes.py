"""
One process for each rank: real concurrency over shared memory.

Whether it finds an error depends on luck; but atomics between processes are real, and
addresses differ from rank to rank. Inside a process the programs of a kernel take
turns, so they may wait for each other.
"""

from __future__ import annotations

import itertools
import multiprocessing
import shutil
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic

import numpy as np
import torch

from comet.runtime.deadlock import DeadlockError
from comet.runtime.engine import Engine
from comet.runtime.engine_rank import EngineRank
from comet.runtime.heap import HEAP_BYTES
from comet.runtime.memory import MemoryMap
from comet.runtime.ranks import Rank, T, heaps_differ

SHARED = Path("/dev/shm")
SLEEP = 50e-6
"""Seconds to sleep before flags are read again."""


class PeerFailedError(DeadlockError):
    """This rank cannot continue since another one failed; that one says why."""


class _SharedState:
    """Arrays in shared memory outside of the heap, with one number for each rank."""

    def __init__(self, folder: Path, world: int):
        table = np.memmap(folder / "shared", np.int64, "r+", shape=(3, world))
        self.arrived, self.hashes, self.failed = table


class _Timeout:
    """Waits for other processes, up to a timeout."""

    engine: Engine

    def __init__(self, shared: _SharedState, seconds: float):
        self._shared = shared
        self._seconds = seconds
        self._steps = -1
        self._since = 0.0

    def wait(self) -> None:
        """Sleep a little; raise if a peer failed or nothing progresses for too long."""
        if self._shared.failed.any():
            raise PeerFailedError(self.engine.waiting(), "another rank failed")
        now = time.monotonic()
        if self.engine.steps != self._steps:
            self._steps, self._since = self.engine.steps, now
        if now - self._since > self._seconds:
            summary = f"no rank could go on for {self._seconds:g} s"
            raise DeadlockError(self.engine.waiting(), summary)
        time.sleep(SLEEP)


class _ProcessRank(EngineRank):
    """The rank of this process."""

    def __init__(
        self, rank: int, engine: Engine, shared: _SharedState, folder: Path, world: int
    ):
        paths = [folder / f"heap{number}" for number in range(world)]
        heaps = [_mapped(path, path.stat().st_size) for path in paths]
        super().__init__(rank, engine, heaps)
        self.mapped = range(world)
        self.shared = shared

    def run(self, engine: Engine, body: Callable[[Rank], T]) -> T:
        """Run a host program, the only one of an engine, and return its result."""
        results: list[T] = []
        self.add_host(lambda: results.append(body(self)))
        engine.run()
        return results[0]

    def barrier(self) -> None:
        """Count its own arrival, then wait until every rank has the same count."""
        shared, count = self.shared, int(self.shared.arrived[self.rank]) + 1
        shared.hashes[self.rank] = self.heap.log_hash()
        shared.arrived[self.rank] = count
        self._meet(count)
        others = np.flatnonzero(shared.hashes != shared.hashes[self.rank])
        if others.size:
            raise heaps_differ(self.rank, others[0])
        shared.arrived[self.rank] = count + 1
        self._meet(count + 1)

    def _meet(self, count: int) -> None:
        arrived = self.shared.arrived
        self._engine.pause(
            lambda: f"waits for rank {np.argmin(arrived)} at a barrier",
            until=lambda: bool((arrived >= count).all()),
        )


def run(
    body: Callable[[Rank], T],
    world: int,
    *,
    seed: int = 0,
    resident: int | None = None,
    heap_bytes: int = HEAP_BYTES,
    timeout: float = 60.0,
) -> list[T]:
    """
    Run a host program on every rank, each in its own process; return their results.

    `body` and its results must be picklable. The seed decides the order of programs
    only inside each process. `timeout` is in seconds without progress.
    Raises `DeadlockError`, `SymmetryError`, `ProgramError`, or what a host raised.
    """
    folder = shared_folder(world, heap_bytes)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["comet.runtime.engine"])
    try:
        with ProcessPoolExecutor(world, context) as pool:
            workers = [
                _Worker(body, rank, world, seed, resident, folder, timeout)
                for rank in range(world)
            ]
            return _results([pool.submit(worker) for worker in workers])
    finally:
        shutil.rmtree(folder)


def shared_folder(world: int, heap_bytes: int) -> Path:
    """Return a new folder with the memory that processes share, all zeros."""
    parent = SHARED if SHARED.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="comet-", dir=parent))
    sizes = {f"heap{rank}": heap_bytes for rank in range(world)}
    for name, size in {**sizes, "shared": 8 * 3 * world}.items():
        with (folder / name).open("wb") as file:
            file.truncate(size)
    return folder


class AttachedRank:
    """
    The rank of a process that does other work between its host programs.

    The processes map `folder`, which can be removed after that, and run the same host
    programs in the same order. `timeout` is in seconds without progress.
    """

    def __init__(self, folder: Path, rank: int, world: int, timeout: float = 600.0):
        self._shared = _SharedState(folder, world)
        self._timeout = timeout
        engine = _polling_engine(self._shared, rank, None, timeout)
        self._rank = _ProcessRank(rank, engine, self._shared, folder, world)

    def run(self, body: Callable[[Rank], T]) -> T:
        """
        Run a host program; what earlier ones allocated is still there.

        Raises `DeadlockError`, `SymmetryError`, `ProgramError`, or what a host raised.
        """
        rank, shared = self._rank, self._shared
        engine = _polling_engine(shared, rank.rank, None, self._timeout)
        rank.join(engine)
        with _reported(shared, rank.rank):
            return rank.run(engine, body)


@contextmanager
def _reported(shared: _SharedState, rank: int) -> Generator[None]:
    """Tell the other ranks of an error."""
    try:
        yield
    except BaseException:
        shared.failed[rank] = 1
        raise


def _polling_engine(
    shared: _SharedState, seed: int, resident: int | None, seconds: float
) -> Engine:
    """Return an engine that waits for other processes."""
    timeout = _Timeout(shared, seconds)
    engine = Engine(seed, timeout.wait, None, MemoryMap(), resident)
    timeout.engine = engine
    return engine


def _mapped(path: Path, size: int) -> torch.Tensor:
    return torch.from_file(str(path), shared=True, size=size, dtype=torch.uint8)


@dataclass(frozen=True)
class _Worker(Generic[T]):
    """The work of one process."""

    body: Callable[[Rank], T]
    rank: int
    world: int
    seed: int
    resident: int | None
    folder: Path
    timeout: float
    """Seconds without progress."""

    def __call__(self) -> T:
        """Run the rank; report a failure to the others."""
        shared = _SharedState(self.folder, self.world)
        with _reported(shared, self.rank):
            torch.set_num_threads(1)
            seed = self.seed * self.world + self.rank
            engine = _polling_engine(shared, seed, self.resident, self.timeout)
            rank = _ProcessRank(self.rank, engine, shared, self.folder, self.world)
            return rank.run(engine, self.body)


def _results(futures: Sequence[Future[T]]) -> list[T]:
    """Return all results, or raise the first error that is not an echo of another."""
    errors = [error for future in futures if (error := future.exception()) is not None]
    for error in errors:
        if not isinstance(error, DeadlockError):
            raise error
    stuck = [error for error in errors if isinstance(error, DeadlockError)]
    causes = [error for error in stuck if not isinstance(error, PeerFailedError)]
    if causes:
        waiting = itertools.chain.from_iterable(error.waiting for error in stuck)
        raise DeadlockError(tuple(waiting), causes[0].summary)
    return [future.result() for future in futures]
