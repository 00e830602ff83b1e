"""Garbage collection for a process that does one thing, and ends."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def short_lived() -> Generator[None]:
    """
    Run the body, the whole work of a process, with little garbage collection.

    IR is large and linked: collections would visit it again and again, and a last time
    when the process ends.
    """
    gc.freeze()
    gc.set_threshold(1_000_000, 20, 100)
    try:
        yield
    finally:
        gc.freeze()
