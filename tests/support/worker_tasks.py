"""Tasks for worker processes, which import them by this name."""

from __future__ import annotations

import os
import time
from pathlib import Path

LONG = 60.0
"""Seconds that no task of these tests takes unless it hangs."""


def process_of(number: int) -> tuple[int, int]:
    """Return the number and the process that it was given to."""
    print("said in", number, flush=True)
    return number, os.getpid()


def compile_or_hang(module: Path) -> int:
    """Compile nothing; a module called `hang` takes longer than anybody waits."""
    if module.name == "hang":
        hang()
    return 1


def crash() -> None:
    """End the process at once."""
    os._exit(7)


def stop() -> None:
    """Be ended by a signal, as by one of a driver."""
    os.abort()


def fail() -> None:
    """Raise something with more lines than one."""
    raise ArithmeticError("no room\nbut much to say")


def fail_somewhere() -> None:
    """Raise what says where in the first line, and what in the last."""
    raise ArithmeticError("at 15:14:\nx = 1 / 0\n       ^\nno room")


def hang() -> None:
    """Take longer than anybody waits."""
    time.sleep(LONG)
