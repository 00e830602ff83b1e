"""How often CPython looks for garbage while comet works."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

SELDOM = (1_000_000, 20, 100)
"""
The thresholds of `gc.set_threshold`. IR is large and linked, and little of it becomes
garbage: with the thresholds of CPython it would be visited again and again.
"""


@contextmanager
def seldom_collected() -> Generator[None]:
    """
    Run the body with few collections; afterwards there are as many as before.

    Of several threads or nested calls, the first one restores the thresholds.
    """
    if (before := gc.get_threshold()) == SELDOM:
        yield
        return
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def short_lived() -> Generator[None]:
    """
    Run the body, the whole work of a process, with few collections.

    What was imported before is not visited, and nothing is at the end of the process.
    """
    gc.freeze()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.freeze()
