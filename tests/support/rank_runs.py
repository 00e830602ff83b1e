"""Emitted modules for several ranks on the scheduler: many of them in one process."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
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


Room: TypeAlias = tuple[int, int | None]
"""A seed, and how many programs of a rank run at the same time; None: all."""


def outcomes(
    sources: Mapping[str, str], folder: Path, seeds: int = 2
) -> dict[str, Outcome]:
    """
    Run modules, every other time with one program of a rank after another.

    `folder` may hold Python modules that they import.
    """
    return outcomes_in(
        sources, folder, [(seed, (None, 1)[seed % 2]) for seed in range(seeds)]
    )


def outcomes_in(
    sources: Mapping[str, str], folder: Path, rooms: Sequence[Room]
) -> dict[str, Outcome]:
    """Run each module in one room after another, until it fails."""
    paths = write_modules(sources, folder)
    return dict(zip(sources, interpreted(_outcomes, paths, rooms), strict=True))


def _outcomes(paths: list[Path], rooms: Sequence[Room]) -> list[Outcome]:
    sys.path[:0] = {str(path.parent) for path in paths}
    return [_outcome(path, rooms) for path in paths]


def _outcome(path: Path, rooms: Sequence[Room]) -> Outcome:
    failures = (_failure(path, *room) for room in rooms)
    return cast("Outcome", next(filter(None, failures), "right"))


def _failure(path: Path, seed: int, resident: int | None) -> str:
    """Return the class of the error of one run, or nothing."""
    request = Request(str(path), "scheduler", seed, resident=resident, epochs=EPOCHS)
    facts = report(request)
    failure = facts.get("failure", "" if facts["ok"] else "wrong result")
    return str(failure).partition(":")[0]
