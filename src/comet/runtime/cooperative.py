"""Threads that take turns: one runs at a time, until it lets another one run."""

from __future__ import annotations

import random
import threading
from bisect import bisect
from collections.abc import Callable, Hashable
from itertools import accumulate
from typing import Generic, NoReturn, TypeVar


class Stopped(BaseException):
    """Unwinds a thread whose result is not needed; kernels cannot catch it."""


class Task:
    """A thread that waits for its turn."""

    def __init__(self, body: Callable[[], None], weight: float = 1.0):
        """Run `body`; `weight` is how often it is chosen, relative to other tasks."""
        self.body = body
        self.weight = weight
        self.until: Callable[[], bool] | None = None
        """The condition that it waits for, if it does."""
        self.turn = threading.Lock()
        """Held except when it is the task's turn."""
        self.turn.acquire()
        self.thread: threading.Thread | None = None


T = TypeVar("T", bound=Task)


class Conductor(Generic[T]):
    """
    Runs tasks until all have ended, in an order that a seed decides.

    If no task can run, `stuck` is called: it raises, or waits for another process.
    """

    def __init__(self, seed: int, stuck: Callable[[], None]):
        self._random = random.Random(seed)
        self._stuck = stuck
        self._over = threading.Event()
        self._stopping = False
        self._error: BaseException | None = None
        self._ready: list[T] = []
        self._weights: list[float] | None = None
        """Cumulative weights of the ready tasks, until these change."""
        self._waiting: dict[Hashable | None, list[T]] = {}
        """The waiting tasks, by the event that wakes them; None: any event."""
        self.tasks: list[T] = []
        self.current: T | None = None

    def add(self, task: T) -> None:
        """Add a task; it starts when it is first chosen."""
        self.tasks.append(task)
        self._ready.append(task)
        self._weights = None

    def run(self) -> None:
        """Run all tasks, and those that they add; raise the first error of a task."""
        if self.tasks:
            try:
                self._resume(self._choose())
                self._over.wait()
            finally:
                self._unwind()
        if self._error is not None:
            raise self._error

    def switch(
        self,
        until: Callable[[], bool] | None = None,
        event: Hashable | None = None,
    ) -> None:
        """
        Let another task run; return when the condition, if any, holds.

        With an event, the condition is checked when that event is notified, or when no
        task can run. Without one it is checked at every switch, which is slow.
        """
        task = self.running()
        if until is not None and not until():
            self._suspend(task, until, event)
        try:
            chosen = self._choose()
        except Exception as error:
            self.fail(error)
        if chosen is not task:
            self._resume(chosen)
            task.turn.acquire()
            if self._stopping:
                raise Stopped
        self.current = task

    def notify(self, event: Hashable | None) -> None:
        """Make tasks ready that wait for the event and whose conditions hold."""
        waiting = self._waiting.pop(event, None)
        if waiting is None:
            return
        for task in waiting:
            if task.until is None or task.until():
                task.until = None
                self._ready.append(task)
                self._weights = None
            else:
                self._waiting.setdefault(event, []).append(task)

    def awaited(self) -> tuple[Hashable | None, ...]:
        """Return the events that tasks wait for."""
        return tuple(self._waiting)

    def fail(self, error: BaseException) -> NoReturn:
        """End all tasks with an error; does not return."""
        self._stop(error)
        raise Stopped

    def running(self) -> T:
        """Return the task of the calling thread."""
        if self.current is None or self._stopping:
            raise Stopped
        return self.current

    def _suspend(
        self, task: T, until: Callable[[], bool], event: Hashable | None
    ) -> None:
        task.until = until
        self._ready.remove(task)
        self._weights = None
        self._waiting.setdefault(event, []).append(task)

    def _choose(self) -> T:
        """Draw one of the ready tasks."""
        self.notify(None)
        while not self._ready:
            for event in self.awaited():
                self.notify(event)
            if not self._ready:
                self._stuck()
        if self._weights is None:
            self._weights = list(accumulate(task.weight for task in self._ready))
        drawn = self._random.random() * self._weights[-1]
        return self._ready[bisect(self._weights, drawn, hi=len(self._ready) - 1)]

    def _resume(self, task: T) -> None:
        self.current = task
        if task.thread is None:
            task.thread = threading.Thread(
                target=self._perform, args=(task,), daemon=True
            )
            task.thread.start()
        else:
            task.turn.release()

    def _perform(self, task: T) -> None:
        """Run the task in its thread, then let another run."""
        try:
            task.body()
            self.tasks.remove(task)
            self._ready.remove(task)
            self._weights = None
            if self.tasks:
                self._resume(self._choose())
            else:
                self._over.set()
        except Stopped:
            pass
        except BaseException as error:
            self._stop(error)

    def _stop(self, error: BaseException) -> None:
        if self._error is None:
            self._error = error
        self._stopping = True
        self._over.set()

    def _unwind(self) -> None:
        """End the waiting threads, one after another."""
        self._stopping = True
        for task in self.tasks:
            if task.thread is not None:
                if task.turn.locked():
                    task.turn.release()
                task.thread.join()
