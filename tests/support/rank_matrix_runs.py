"""
Runs modules in Triton's interpreter: what the processes of `rank_matrix` do.

Every process of a run imports this file, so it imports little.
"""

from __future__ import annotations

import random
import warnings
from dataclasses import dataclass

from comet.runtime.child import report
from comet.runtime.request import Request

ROOMS = (None, 1, 2, 5)
"""How many programs of a rank may run at a time; None: all."""


@dataclass(frozen=True)
class Runs:
    """What is to be run of one module."""

    path: str
    backend: str
    seeds: list[int]
    epochs: int


def failure(runs: Runs, seed: int) -> str:
    """Run a module once; return what failed, or nothing."""
    room = random.Random(seed).choice(ROOMS)
    request = Request(runs.path, runs.backend, seed, resident=room, epochs=runs.epochs)
    try:
        facts = report(request)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    else:
        if facts["ok"]:
            return ""
        wrong = f"error {facts['max_error']}, tolerance {facts['tolerance']}"
        reason = str(facts.get("failure", wrong))
    return f"{runs.backend}, seed {seed}, resident {room}: {reason}"


def failures(runs: Runs) -> list[str]:
    """Run a module with every seed; return what failed: warnings of numpy, too."""
    warnings.simplefilter("error", RuntimeWarning)
    return [text for seed in runs.seeds if (text := failure(runs, seed))]
