"""
Tasks of a search that forked processes run ahead of time.

A forked process has a copy of the memory of its parent, and sends back the results of
its tasks. A task returns the same result in every process, so that a search makes the
same choices with any number of processes, only faster.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from select import select
from typing import Generic, TypeAlias, TypeVar, cast

from comet.passes.search.record import session

T = TypeVar("T")
Task: TypeAlias = Callable[[], T]

MOST_PROCESSES = 4
"""A search seldom has more tasks at a time, and each process needs memory."""

MOST_TASKS = 256
"""A byte says which task is next."""

RESULT_BYTES = 1 << 20
"""The results of a process that its parent need not have read for it to go on."""

LENGTH_BYTES = 8
"""The length of a result comes before it."""


def processes_here() -> int:
    """
    Return how many processes may search: one for each core, 1 where forks are not safe.

    A fork copies one thread alone, and locks that others hold stay locked: so Python
    must have a single one, and torch, which has its own, must not be loaded.
    """
    safe = sys.platform == "linux" and threading.active_count() == 1
    if not safe or "torch" in sys.modules:
        return 1
    return min(len(os.sched_getaffinity(0)), MOST_PROCESSES)


def processes() -> int:
    """Return how many processes may search in the open session."""
    with session() as current:
        # What depends on when a process looked at the clock is not the same for all.
        return current.processes if current.deadline == inf else 1


@contextmanager
def ahead(tasks: Sequence[Task[T]], fewest: int = 2) -> Generator[Ahead[T]]:
    """
    Let the processes of the session do tasks; they end with the body.

    If there are less than `fewest` tasks, this process does them alone.
    """
    done = Ahead(tasks)
    try:
        sharing = processes() if len(tasks) >= fewest else 1
        for _ in range(min(sharing, len(tasks)) - 1):
            done.fork()
        yield done
    finally:
        done.close()


class Ahead(Generic[T]):
    """
    The results of tasks that several processes share.

    Each process takes the next task that none has taken; so does this one while it
    waits for the result of another.
    """

    def __init__(self, tasks: Sequence[Task[T]]):
        self._tasks = tasks
        self._results: dict[int, T] = {}
        self._failed = set[int]()
        """Tasks that raised an error, which are done again for it."""
        self._next, last = os.pipe()
        os.write(last, bytes(range(min(len(tasks), MOST_TASKS))))
        os.close(last)
        self._children: dict[int, int] = {}
        """The processes, by the pipes that they write results to."""

    def result(self, number: int) -> T:
        """Return what a task returns, or raise what it raises."""
        self._collect(0)
        while self._children and number not in self._results.keys() | self._failed:
            if (taken := self._take()) is None:
                self._collect(None)
            elif taken == number:
                break
            else:
                self._attempt(taken)
                self._collect(0)
        if number not in self._results:
            self._results[number] = self._done(number)
        return self._results[number]

    def fork(self) -> None:
        """Start one more process."""
        results, written = os.pipe()
        _enlarge(written)
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # Python 3.12 counts threads of BLAS, which are not used here.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            try:
                for inherited in (*self._children, results):
                    os.close(inherited)
                self._serve(written)
            finally:
                os._exit(0)
        os.close(written)
        self._children[results] = child

    def close(self) -> None:
        """End the processes, whatever they do."""
        for child in self._children.values():
            os.kill(child, signal.SIGKILL)
        for results in tuple(self._children):
            self._ended(results)
        os.close(self._next)

    def _serve(self, written: int) -> None:
        """Do tasks in a forked process, until there is none or the parent has gone."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.freeze()
        with session() as current, suppress(BrokenPipeError):
            current.processes = 1
            while (taken := self._take()) is not None:
                self._attempt(taken)
                done = self._results, self._failed
                data = pickle.dumps(done, pickle.HIGHEST_PROTOCOL)
                self._results.clear()
                self._failed.clear()
                _write(written, len(data).to_bytes(LENGTH_BYTES, "little"))
                _write(written, data)

    def _attempt(self, number: int) -> None:
        """Do a task, and keep its result; its error is raised if it is asked for."""
        try:
            self._results[number] = self._done(number)
        except Exception:
            self._failed.add(number)

    def _done(self, number: int) -> T:
        """Do a task, in which no more processes are forked if some are at work."""
        with session() as current:
            outer = current.processes
            current.processes = 1 if self._children else outer
            try:
                return self._tasks[number]()
            finally:
                current.processes = outer

    def _take(self) -> int | None:
        """Return the number of a task that none has taken, None if there is none."""
        read = os.read(self._next, 1)
        return read[0] if read else None

    def _collect(self, seconds: float | None) -> None:
        """Take results that there are; wait for one if `seconds` is None."""
        for results in select(tuple(self._children), (), (), seconds)[0]:
            length = int.from_bytes(_read(results, LENGTH_BYTES), "little")
            data = _read(results, length)
            if data and len(data) == length:
                done, failed = cast("tuple[dict[int, T], set[int]]", pickle.loads(data))
                self._results |= done
                self._failed |= failed
            else:
                self._ended(results)

    def _ended(self, results: int) -> None:
        """Forget a process that has ended, or is about to."""
        os.waitpid(self._children.pop(results), 0)
        os.close(results)


def _write(pipe: int, data: bytes) -> None:
    """Write all of `data`."""
    left = memoryview(data)
    while left:
        left = left[os.write(pipe, left) :]


def _read(pipe: int, length: int) -> bytes:
    """Read `length` bytes, fewer if the pipe ends."""
    found = bytearray()
    while len(found) < length and (part := os.read(pipe, length - len(found))):
        found += part
    return bytes(found)


def _enlarge(pipe: int) -> None:
    """Let a pipe hold more than by default, if the system allows it."""
    from fcntl import F_SETPIPE_SZ, fcntl

    with suppress(OSError):
        fcntl(pipe, F_SETPIPE_SZ, RESULT_BYTES)
