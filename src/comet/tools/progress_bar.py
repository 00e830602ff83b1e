"""How far a search is: a bar on a terminal, a line from time to time elsewhere."""

from __future__ import annotations

import sys
from threading import Event, Thread
from time import monotonic
from types import TracebackType
from typing import Self

from comet.api.answer import Progress

LINE_EVERY = 10.0
"""Seconds between lines."""

BAR_EVERY = 0.2
"""Seconds between pictures of the bar."""

WIDTH = 20
"""Characters of the bar."""

CLEAR = "\r\x1b[K"
"""Makes a terminal's line empty."""


class ProgressBar:
    """
    Shows on stderr the last progress it was called with, while it is entered.

    A thread shows it, so that a long search in one structure is seen too.
    """

    def __init__(self) -> None:
        self._on_terminal = sys.stderr.isatty()
        self._start = monotonic()
        self._last: Progress | None = None
        self._left = Event()
        self._thread = Thread(target=self._show, daemon=True)

    def __call__(self, progress: Progress) -> None:
        self._last = progress

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._left.set()
        self._thread.join()
        if self._on_terminal:
            print(CLEAR, end="", file=sys.stderr, flush=True)

    def _show(self) -> None:
        while not self._left.wait(BAR_EVERY if self._on_terminal else LINE_EVERY):
            if self._last is not None:
                line = f"{self._last}, {monotonic() - self._start:.0f} s"
                if self._on_terminal:
                    line = f"{CLEAR}{bar(self._last)} {line}"
                end = "" if self._on_terminal else "\n"
                print(line, end=end, file=sys.stderr, flush=True)


def bar(progress: Progress) -> str:
    """Return a bar that is full when the gap is closed."""
    full = round(WIDTH * (1 - progress.gap)) if progress.best < float("inf") else 0
    return f"[{'#' * full}{'-' * (WIDTH - full)}]"
