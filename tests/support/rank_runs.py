"""Emitted modules for several ranks on the scheduler: many of them in one process."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAlias, cast

from interpreting import interpreted, write_modules

from comet.runtime.child import report
from comet.runtime.request import Request

EPOCHS = 3
"""Launches of a program, so that a slot is used twice."""

Outcome: TypeAlias = Literal[
    "right", "wrong result", "RaceError", "DeadlockError", "ProgramError"
]
"""What became of a program; the first failure of any seed."""


def outcomes(
    sources: Mapping[str, str], folder: Path, seeds: int = 2
) -> dict[str, Outcome]:
    """
    Run modules, every other time with one program of a rank after another.

    `folder` may hold Python modules that they import.
    """
    paths = write_modules(sources, folder)
    return dict(zip(sources, interpreted(_outcomes, paths, seeds), strict=True))


def _outcomes(paths: list[Path], seeds: int) -> list[Outcome]:
    sys.path[:0] = {str(path.parent) for path in paths}
    return [_outcome(path, seeds) for path in paths]


def _outcome(path: Path, seeds: int) -> Outcome:
    failures = (_failure(path, seed) for seed in range(seeds))
    return cast("Outcome", next(filter(None, failures), "right"))


def _failure(path: Path, seed: int) -> str:
    """Return the class of the error of one run, or nothing."""
    resident = (None, 1)[seed % 2]
    request = Request(str(path), "scheduler", seed, resident=resident, epochs=EPOCHS)
    facts = report(request)
    failure = facts.get("failure", "" if facts["ok"] else "wrong result")
    return str(failure).partition(":")[0]
