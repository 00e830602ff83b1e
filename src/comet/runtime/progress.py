"""
How long an interpreted run will take, and its progress, for stderr.

What interprets a kernel counts its programs here. Nothing prints without `reported`.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from comet.runtime.program import Program, RankProgram

INTERPRETED = 2e7
"""
Products per second that Triton's interpreter adds up. Measured on one core of a
server: 6e7 for f16 matrix products, 1e7 for attention.
"""
REFERENCE = 1e9
"""The same for the numpy reference, whose `einsum` reaches at most 4e9."""
WORTH_SAYING = 20
"""Seconds; a shorter run is not announced."""
EVERY = 5.0
"""Seconds between lines of progress; on a terminal it is updated each second."""


@dataclass(frozen=True)
class Expected:
    """Seconds that a run is expected to take, within a factor of about three."""

    interpreter: float
    """One launch."""
    reference: float
    """The reference for one launch."""
    launches: int

    @property
    def total(self) -> float:
        """All launches and their references."""
        return self.launches * (self.interpreter + self.reference)

    def sentence(self, targets: str) -> str:
        """Say how long the run takes, and what is faster."""
        launch, reference = duration(self.interpreter), duration(self.reference)
        parts = f"{launch} for the launch and {reference} for its reference"
        ways = "smaller sizes in the program take less"
        if self.launches > 1:
            parts = f"{self.launches} times {launch}, and {reference} for its reference"
            ways = "smaller sizes in the program or --epochs 1 take less"
        return (
            "Triton's interpreter and the numpy reference will take about "
            f"{duration(self.total)} on this CPU, {parts}; {ways}, --compile {targets} "
            "checks the kernels and runs nothing, Ctrl-C stops"
        )


def expected_time(program: Program | RankProgram, launches: int) -> Expected:
    """
    Estimate a run by its longest sum: each element of a result needs its products.

    That is exact for a matrix product, and half of attention.
    """
    elements = sum(math.prod(output.shape) for output in program.outputs)
    products = elements * max((tensor.terms for tensor in program.inputs), default=1)
    return Expected(products / INTERPRETED, products / REFERENCE, launches)


def duration(seconds: float) -> str:
    """Return a time as people write it: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


class Stage:
    """A part of a run, with its numbers of launched and ended programs."""

    def __init__(self, name: str):
        self.name = name
        self.launched = 0
        self.done = 0
        self.began = time.monotonic()

    def end(self) -> None:
        """Count one ended program."""
        self.done += 1

    def text(self) -> str:
        """Return the progress of the stage."""
        if not self.launched:
            return self.name
        text = f"{self.name}: {self.done} of {self.launched} programs done"
        if 0 < self.done < self.launched:
            spent = time.monotonic() - self.began
            rest = spent * (self.launched / self.done - 1)
            text += f", about {duration(rest)} left"
        return text


class Progress:
    """The progress of a run: the newest of its stages."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin a run."""
        self._start = time.monotonic()
        self._entered = set[str]()
        self.stage = Stage("the inputs")

    def enter(self, name: str) -> None:
        """Begin a stage, unless another rank has begun it; some ranks may be behind."""
        if name not in self._entered:
            self._entered.add(name)
            self.stage = Stage(name)

    def launch(self, programs: int) -> Stage:
        """Count `programs` more to run; return the stage that counts them."""
        self.stage.launched += programs
        return self.stage

    def text(self) -> str:
        """Return the progress of the run."""
        so_far = duration(time.monotonic() - self._start)
        return f"{self.stage.text()} ({so_far} so far)"


PROGRESS = Progress()
"""The progress of this process."""


@contextmanager
def reported(every: float = EVERY) -> Generator[None]:
    """Print the progress on stderr while the body runs."""
    ended, terminal = threading.Event(), sys.stderr.isatty()
    PROGRESS.restart()

    def report() -> None:
        while not ended.wait(1.0 if terminal else every):
            start, end = ("\r\x1b[K", "") if terminal else ("", "\n")
            text = f"{start}comet-run: {PROGRESS.text()}{end}"
            print(text, end="", file=sys.stderr, flush=True)

    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        if terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
