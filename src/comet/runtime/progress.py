"""
How long an interpreted run will take, and how far it is: what stderr says of it.

What interprets a kernel counts its programs here. Without `reported`, nothing prints.
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
Products per second that are added up in Triton's interpreter. Measured on one core of
a server: 6e7 for products of matrices in f16, 1e7 for attention.
"""
REFERENCE = 1e9
"""The same in the numpy reference, whose `einsum` takes 4e9 at best."""
WORTH_SAYING = 20
"""Seconds; a shorter run is not announced."""
EVERY = 5.0
"""Seconds between lines of progress; a terminal's own line changes each second."""


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
        """All launches and references."""
        return self.launches * (self.interpreter + self.reference)

    def sentence(self, targets: str) -> str:
        """Say what takes how long, and what takes less."""
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
    Estimate a run by its longest sum: each element of a result takes so many products.

    That is all of a product of matrices, and half of attention.
    """
    elements = sum(math.prod(output.shape) for output in program.outputs)
    products = elements * max((tensor.terms for tensor in program.inputs), default=1)
    return Expected(products / INTERPRETED, products / REFERENCE, launches)


def duration(seconds: float) -> str:
    """Return a time as people say it: 40 s, 12 min, 3.5 h."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


class Progress:
    """What runs now, and how many programs of its kernels have ended."""

    def __init__(self) -> None:
        self.stage = "the inputs"
        self.launched = 0
        self.done = 0
        self._start = self._began = time.monotonic()

    def enter(self, stage: str) -> None:
        """Begin a stage, unless it has begun."""
        if stage != self.stage:
            self.stage, self.launched, self.done = stage, 0, 0
            self._began = time.monotonic()

    def launch(self, programs: int) -> None:
        """Note that so many programs will run."""
        self.launched += programs

    def end(self) -> None:
        """Note that a program has ended."""
        self.done += 1

    def text(self) -> str:
        """Say how far the run is."""
        now = time.monotonic()
        text = f"{self.stage}"
        if self.launched:
            text += f": {self.done} of {self.launched} programs done"
        if 0 < self.done < self.launched:
            rest = (now - self._began) * (self.launched / self.done - 1)
            text += f", about {duration(rest)} left"
        return f"{text} ({duration(now - self._start)} so far)"


PROGRESS = Progress()
"""That of this process."""


@contextmanager
def reported(every: float = EVERY) -> Generator[None]:
    """Print on stderr how far the run is, while the body runs."""
    ended, terminal = threading.Event(), sys.stderr.isatty()

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
