"""Modules that other processes compile while the GPU is busy with earlier cases."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Condition, Thread
from types import TracebackType
from typing import Self

from gpu_run.work import compile_module
from gpu_run.workers import Task, Workers

COMPILING = 120.0
"""Seconds that a module may take to compile; the case that needs it tries again."""


class Ahead:
    """Compiles modules in their order, in processes of their own, from `start` on."""

    def __init__(
        self, modules: Sequence[Path], jobs: int, log: Path, deadline: float
    ) -> None:
        self._tasks = [Task(str(m), compile_module, (m,), COMPILING) for m in modules]
        self._left = {task.key for task in self._tasks}
        self._deadline = deadline
        self._jobs = jobs
        self._workers = Workers[int](jobs, log)
        self._changed = Condition()
        self._stopped = False
        self._thread = Thread(target=self._compile)

    def __enter__(self) -> Self:
        """Compile nothing before `start`."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the processes, whatever they do."""
        self._stopped = True
        while self._thread.is_alive():
            self._workers.interrupt()
            self._thread.join(0.1)

    def start(self) -> None:
        """Start to compile; a second call does nothing."""
        if self._thread.ident is None:
            print(f"compiling {len(self._tasks)} modules in {self._jobs} processes")
            self._thread.start()

    def wait(self, modules: Iterable[Path]) -> None:
        """Wait until modules are compiled, or known not to be; or time is up."""
        wanted = set(map(str, modules))
        with self._changed:
            self._changed.wait_for(lambda: self._left.isdisjoint(wanted))

    def _compile(self) -> None:
        start = time.monotonic()
        try:
            with self._workers as workers:
                for outcome in workers.outcomes(self._tasks, self._deadline):
                    if self._stopped:
                        return
                    if outcome.lost:
                        name = Path(outcome.key).name
                        print(f"  {name}: {outcome.lost}", flush=True)
                    self._have({outcome.key})
            seconds = time.monotonic() - start
            print(f"  all modules are compiled after {seconds:.0f} s", flush=True)
        finally:
            self._have(set(self._left))

    def _have(self, keys: set[str]) -> None:
        with self._changed:
            self._left -= keys
            self._changed.notify_all()
