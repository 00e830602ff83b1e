"""
The worker of `make fuzz`: judges one case after another.

For each line of the input, the fields of `Task`, it prints one: a `Result`.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fuzz_case import ROOT, Case, Result, Verdict, load
from fuzz_families import case_of
from fuzz_judge import judge
from fuzz_reduce import reduced

REDUCING = 20.0
"""Seconds of processor time that an input of a finding may be reduced."""


@dataclass(frozen=True)
class Task:
    """A case to judge: by family and seed, or from a folder of `Case.save`."""

    family: str
    seed: str
    known: tuple[str, ...] = ()
    """Signatures of findings whose inputs need no reduction."""
    folder: str = ""
    reducing: float = REDUCING


def done(task: Task) -> Result:
    """Judge a case; reduce its input where it is a finding that is not known."""
    start = time.monotonic()
    case = load(Path(task.folder)) if task.folder else case_of(task.family, task.seed)
    verdict = judge(case)
    if not verdict.is_finding:
        return Result(case.family, task.seed, verdict, None, time.monotonic() - start)
    if task.reducing and verdict.signature not in task.known and verdict.kind != "hang":
        case = reduced(case, lambda other: _alike(other, verdict), task.reducing)
    seconds = time.monotonic() - start
    return Result(case.family, task.seed, replace(verdict), case, seconds)


def _alike(case: Case, verdict: Verdict) -> bool:
    return judge(case).signature == verdict.signature


def main() -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what kernels print is no answer
    os.chdir(ROOT)
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        task = Task(**json.loads(line))
        print(json.dumps(asdict(done(task))), file=answers, flush=True)


if __name__ == "__main__":
    main()
