"""Room for the frames of a call of Python, in one chunk of memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SLOTS = 1 << 15
"""Words of a frame for which CPython maps twice as many: the rest has 256 KiB."""


def with_room(work: Callable[[], T]) -> T:
    """
    Return what `work` returns; the frames of its calls are in one chunk of memory.

    CPython has frames in chunks of 16 KiB, and maps and unmaps memory whenever a call
    goes beyond the end of one. Inside of torch, whose calls are deep, a loop of a
    search may sit on such an end: that was half of the time to compile. A frame that is
    larger than a chunk has a larger one, in which those after it find room.
    """
    return work()


with_room.__code__ = with_room.__code__.replace(co_stacksize=SLOTS)
