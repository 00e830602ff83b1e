"""
Processes that do one task after another, and may be lost.

A task that crashes, raises, or takes longer than it may loses its process, which is
replaced by a new one: a GPU that a kernel left in disorder is not used again.
"""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Generic, Self, TypeVar

Value = TypeVar("Value")

SPAWN = get_context("spawn")
"""A process that is forked shares the state of torch, which forbids it."""

PATIENCE = 30.0
"""Seconds that a process which was killed has to end."""


@dataclass(frozen=True)
class Task(Generic[Value]):
    """A function at the top of a module, to be called in another process."""

    key: str
    function: Callable[..., Value]
    arguments: tuple[object, ...]
    limit: float
    """Seconds that it may take."""


@dataclass(frozen=True)
class Outcome(Generic[Value]):
    """What became of a task."""

    key: str
    seconds: float
    value: Value | None = None
    """What the function returned."""
    lost: str = ""
    """Why there is no value, in one sentence."""


class _Worker(Generic[Value]):
    """A process, and what it does now."""

    def __init__(self, log: Path) -> None:
        self.connection, theirs = SPAWN.Pipe()
        self._process = SPAWN.Process(target=_serve, args=(theirs, log))
        self._process.start()
        theirs.close()

    def give(self, task: Task[Value], deadline: float) -> None:
        """Let the process do a task, until the deadline at most."""
        self.task, self.start = task, time.monotonic()
        self.end = min(self.start + task.limit, deadline)
        # A process that has died meanwhile is found dead when it is asked.
        with suppress(BrokenPipeError):
            self.connection.send((task.function, task.arguments))

    def outcome(self) -> Outcome[Value]:
        """Return what became of the task, which has ended or is late."""
        seconds = time.monotonic() - self.start
        late = not self.connection.poll()
        if late:
            lost = f"it took longer than {self.task.limit:g} s"
            return Outcome(self.task.key, seconds, lost=lost)
        try:
            value, lost = self.connection.recv()
        except (EOFError, ConnectionResetError):
            return Outcome(self.task.key, seconds, lost=self._death())
        return Outcome(self.task.key, seconds, value, lost)

    def kill(self) -> None:
        """End the process, whatever it does, and those that it started."""
        if self._process.is_alive():
            self.interrupt()
            self._process.kill()
        self._process.join(PATIENCE)
        self.connection.close()

    def interrupt(self) -> None:
        """End the process, as a signal from elsewhere would: its task is lost."""
        if self._process.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _death(self) -> str:
        self._process.join(PATIENCE)
        code = self._process.exitcode
        if code is not None and code < 0:
            return f"its process was ended by {signal.Signals(-code).name}"
        return f"its process ended with code {code}"


class Workers(Generic[Value]):
    """At most so many processes; each writes what it prints to the end of one file."""

    def __init__(self, count: int, log: Path) -> None:
        self._count = count
        self._log = log
        self._idle: list[_Worker[Value]] = []
        self._busy: list[_Worker[Value]] = []

    def __enter__(self) -> Self:
        """Start processes when there are tasks."""
        return self

    def __exit__(self, *error: object) -> None:
        """End all processes, whatever they do."""
        for worker in (*self._idle, *self._busy):
            worker.kill()

    def outcomes(
        self, tasks: Iterable[Task[Value]], deadline: float = inf
    ) -> Iterator[Outcome[Value]]:
        """
        Yield what becomes of tasks as soon as it is known.

        Nothing is yielded of those that the deadline, of `time.monotonic`, cuts short.
        """
        coming = deque(tasks)
        while self._busy or (coming and time.monotonic() < deadline):
            while coming and len(self._busy) < self._count:
                worker = self._idle.pop() if self._idle else _Worker[Value](self._log)
                worker.give(coming.popleft(), deadline)
                self._busy.append(worker)
            end = min(worker.end for worker in self._busy)
            connections = [worker.connection for worker in self._busy]
            wait(connections, max(0.0, end - time.monotonic()))
            now = time.monotonic()
            for worker in list(self._busy):
                if worker.connection.poll() or now >= worker.end:
                    yield from self._ended(worker, deadline)
            if now >= deadline:
                coming.clear()

    def interrupt(self) -> None:
        """End what is done now, from another thread; it is lost."""
        for worker in tuple(self._busy):
            worker.interrupt()

    def _ended(
        self, worker: _Worker[Value], deadline: float
    ) -> Iterator[Outcome[Value]]:
        outcome = worker.outcome()
        self._busy.remove(worker)
        if outcome.lost:
            worker.kill()
        else:
            self._idle.append(worker)
        if not (outcome.lost and time.monotonic() >= deadline):
            yield outcome


def _serve(connection: Connection, log: Path) -> None:
    """Be the process: do tasks until one raises or nobody gives any."""
    os.setsid()  # an interrupt from the keyboard is for the parent alone
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    with suppress(EOFError):
        while True:
            function, arguments = connection.recv()
            try:
                value = function(*arguments)
            except Exception as error:
                traceback.print_exc()
                connection.send((None, sentence(error)))
                return
            connection.send((value, ""))


def sentence(error: Exception) -> str:
    """
    Return what an error says, in one line that tables can show.

    Triton says in the first line where it is, and in the last one what it is.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else "no reason is given"
    if text.endswith(":"):
        text = f"{text} {lines[-1]}"
    return f"{type(error).__name__}: {text}"[:400]
