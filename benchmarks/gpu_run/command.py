"""The command line of run.py: cases in their order, results after each."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

from gpu_run.ahead import Ahead
from gpu_run.case import GROUPS, MODULES, Case, Manifest, chosen, manifest_in
from gpu_run.results import (
    Alternative,
    Facts,
    Result,
    Results,
    Run,
    is_lost,
    is_wrong,
    results_for,
)
from gpu_run.work import Order, machine, perform
from gpu_run.workers import Outcome, Task, Workers

DEFAULT_JOBS = max(1, min(16, os.cpu_count() or 1) * 3 // 4)
"""Processes that compile while another one launches kernels, which waits for none."""

HERE = Path(__file__).parents[1]
"""The folder that run.py lies in."""

START = 120.0
"""Seconds until a new process must have said what machine it is on."""

VERSIONS = {"torch": ((2, 11), (inf, inf)), "triton": ((3, 6), (3, 9))}
"""The first and the last version of each package that kernels run with."""
SPOKEN = {"torch": "2.11 or newer", "triton": "3.6 to 3.9"}

SHOWN = 12
"""Cases that are named at the end, of those that were not reached."""


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    minutes: float | None
    out: Path
    only: Sequence[str]
    listed: bool
    dry_run: bool
    jobs: int
    rounds: int


@dataclass(frozen=True)
class Session:
    """One call of run.py."""

    folder: Path
    options: Options
    results: Results
    deadline: float
    """Of `time.monotonic`."""

    @property
    def log(self) -> Path:
        """The file that takes what processes print."""
        return self.options.out.with_suffix(".log")

    def pending(self) -> list[Case]:
        """Return the cases that are still to be done, in their order."""
        cases = chosen(self.results.manifest.cases, self.options.only)
        return self.results.pending(cases)

    @property
    def late(self) -> bool:
        """Whether time is up."""
        return time.monotonic() >= self.deadline

    def describe(self) -> Facts:
        """Return what machine this is; `ValueError` where it cannot be used."""
        with Workers[Facts](1, self.log) as workers:
            task = Task("machine", machine, (), START)
            (outcome,) = workers.outcomes([task])
        if outcome.value is None:
            raise ValueError(f"torch or Triton cannot be used: {outcome.lost}")
        if (problem := problem_with(outcome.value, self.options.dry_run)) is not None:
            raise ValueError(problem)
        return outcome.value

    def modules(self, case: Case) -> list[Path]:
        """Return the modules that have to be compiled for a case: none in a dry run."""
        files = () if self.options.dry_run else case.modules.values()
        return [self.folder / MODULES / file for file in files]

    def run(self, case: Case, workers: Workers[Result]) -> None:
        """Do a case, and write down what becomes of it."""
        for outcome in workers.outcomes([self._task(case)], self.deadline):
            result = result_of(outcome)
            self.results.add(case, result)
            print(f"{case.id}: {spoken(result)}", flush=True)

    def _task(self, case: Case) -> Task[Result]:
        """Return what a process is to do, without modules that would end it again."""
        lost = self.results.lost_modules() if case.task == "time" else {}
        left_out = {
            name: f"its kernels are not tried again: {lost[file]}"
            for name, file in case.modules.items()
            if file in lost
        }
        options = self.options
        order = Order(case, self.folder, options.dry_run, left_out, options.rounds)
        return Task(case.id, perform, (order,), case.limit)

    def go(self) -> None:
        """
        Do all that is still to be done.

        Modules are compiled meanwhile, but not while the rates of the machine are
        measured: some are those of the CPU.
        """
        pending = self.pending()
        files = dict.fromkeys(path for case in pending for path in self.modules(case))
        jobs = self.options.jobs
        with (
            Ahead(list(files), jobs, self.log, self.deadline) as ahead,
            Workers[Result](1, self.log) as workers,
        ):
            for case in pending:
                if modules := self.modules(case):
                    ahead.start()
                    ahead.wait(modules)
                if not self.late:
                    self.run(case, workers)


def problem_with(facts: Facts, dry_run: bool) -> str | None:
    """Return why nothing can be run on a machine."""
    if facts["device"] == "cpu" and not dry_run:
        return "torch finds no GPU; use --dry-run to see the steps"
    for package, (first, last) in VERSIONS.items():
        found = re.match(r"(\d+)\.(\d+)", str(facts[package]))
        if found and not first <= (int(found[1]), int(found[2])) <= last:
            return f"{package} is {facts[package]}; this needs {SPOKEN[package]}"
    return None


def result_of(outcome: Outcome[Result]) -> Result:
    """Return what is kept of what became of a case."""
    if outcome.value is None:
        return Result(state="lost", reason=outcome.lost, seconds=outcome.seconds)
    return Result(outcome.value, state="done", seconds=outcome.seconds)


def spoken(result: Result) -> str:
    """Return what became of a case, in a phrase."""
    if is_lost(result):
        return f"LOST: {result.get('reason')}"
    seconds = f"({result.get('seconds', 0.0):.1f} s)"
    found = result.get("alternatives", {})
    words = [f"{name} {said}" for name, each in found.items() if (said := _said(each))]
    return " ".join(["; ".join(words) or "done", seconds])


def _said(found: Alternative) -> str:
    if "missing" in found:
        return f"missing ({found['missing']})"
    times = found.get("times", {}).values()
    said = [" / ".join(f"{time['median'] * 1e6:.1f} us" for time in times)]
    if "ok" in found and not (found["ok"] and times):
        error = found.get("error")
        shown = "not finite" if error is None else f"{error:.1e}"
        said += ["right" if found["ok"] else "WRONG", f"error {shown}"]
    return ", ".join(filter(None, said))


def ending(session: Session) -> Iterator[str]:
    """Yield the lines that say what was done, and what was not."""
    done = session.results.done.values()
    lost, wrong = (sum(map(rule, done)) for rule in (is_lost, is_wrong))
    yield f"{session.options.out} has {len(done)} cases: {lost} lost, {wrong} wrong"
    pending = session.pending()
    if pending:
        groups = Counter(case.group for case in pending)
        counts = ", ".join(f"{count} of {group}" for group, count in groups.items())
        yield f"not reached: {counts}; the same command goes on with"
        yield from (f"  {case.id}" for case in pending[:SHOWN])
        if len(pending) > SHOWN:
            yield f"  and {len(pending) - SHOWN} more, see --list"


def failed(results: Results) -> bool:
    """Whether any case was lost, or any result is wrong."""
    return any(is_lost(result) or is_wrong(result) for result in results.done.values())


def options_of(argv: Sequence[str] | None) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Check and time comet's kernels.")
    parser.add_argument("--minutes", type=float, help="start nothing after that")
    parser.add_argument("--out", type=Path, default=Path("R.json"), help="the results")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=())
    parser.add_argument(
        "--list", dest="listed", action="store_true", help="name what is to be done"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="all steps in the interpreter, on a CPU"
    )
    parser.add_argument(
        "--jobs", type=int, default=DEFAULT_JOBS, help="processes that compile"
    )
    parser.add_argument(
        "--rounds", type=int, default=30, help="times that each alternative is timed"
    )
    return Options(**vars(parser.parse_args(argv)))


def session_of(folder: Path, options: Options) -> Session:
    """
    Return what is to be done.

    Raises `ValueError` where the folder or the results are not what they have to be.
    """
    manifest: Manifest = manifest_in(folder)
    if options.dry_run and not manifest.tiny:
        raise ValueError(
            f"{folder} has programs of real sizes, which no interpreter ends; write "
            "another with benchmarks/gpu.py emit --dry-run"
        )
    files = {file for case in manifest.cases for file in case.modules.values()}
    missing = sorted(f for f in files if not (folder / MODULES / f).exists())
    if missing:
        raise ValueError(
            f"{folder} lacks {len(missing)} of {len(files)} modules, such as "
            f"{missing[0]}; copy it whole, or write it anew with benchmarks/gpu.py emit"
        )
    results = results_for(options.out, manifest)
    seconds = inf if options.minutes is None else 60 * options.minutes
    return Session(folder, options, results, time.monotonic() + seconds)


def run(session: Session) -> int:
    """Do what is to be done; return the exit code."""
    options = session.options
    # Processes that are started later find these.
    os.environ["TRITON_INTERPRET"] = str(int(options.dry_run))
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    if not session.pending():
        print(*ending(session), sep="\n")
        return int(failed(session.results))
    facts = session.describe()
    started = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    session.results.started(
        Run(
            started=started,
            minutes=options.minutes,
            machine=facts,
            dry_run=options.dry_run,
        )
    )
    try:
        session.go()
    except KeyboardInterrupt:
        print("interrupted", *ending(session), sep="\n")
        return 130
    print(*ending(session), sep="\n")
    return int(failed(session.results))


def main(argv: Sequence[str] | None = None, folder: Path = HERE) -> int:
    """Do or list the cases of a folder; return the exit code."""
    options = options_of(argv)
    try:
        session = session_of(folder, options)
        if options.listed:
            print(*(case.id for case in session.pending()), sep="\n")
            return 0
        return run(session)
    except ValueError as error:
        print(f"run: error: {error}", file=sys.stderr)
        return 1
