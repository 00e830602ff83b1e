"""
Random and mutated inputs for the whole compiler: `make fuzz`.

Nothing may end in a traceback, an error that is not one sentence, IR that does not
verify, another value or a hang. Findings go to `out/fuzz`, each with its input and the
command that repeats it; refusals are counted, as a refusal of a legal program is a
weakness.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from itertools import count, cycle
from pathlib import Path
from random import Random
from typing import Self

from fuzz_case import ROOT, Case, Result, Verdict, general
from fuzz_families import FAMILIES, SHARES, case_of
from fuzz_worker import REDUCING, Task
from interpreting import SETTINGS

LONGEST = 180.0
"""Seconds of processor time after which a worker that does not answer is ended."""
IDLE = 100.0
"""Seconds in which a worker uses some processor time, or its compiler answers."""
OUT = ROOT / "out" / "fuzz"
SHOWN = 25
"""Refusals in the report."""


class Worker:
    """A process that judges cases; it is ended and started anew where it hangs."""

    def __init__(self) -> None:
        self._child = _child()

    def __enter__(self) -> Self:
        """Start with the first case."""
        return self

    def __exit__(self, *error: object) -> None:
        """Let the process end."""
        self._end()

    def ask(self, task: Task) -> Result:
        """Return what the process says of a case."""
        start = time.monotonic()
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(asdict(task)) + "\n")
        self._child.stdin.flush()
        what = self._waits_in_vain(LONGEST + task.reducing)
        if not what and (line := self._child.stdout.readline()):
            return _result(line)
        what = what or f"the worker died with code {self._child.wait()}"
        self._end()
        self._child = _child()
        case = None if task.folder else case_of(task.family, task.seed)
        seconds = time.monotonic() - start
        return Result(task.family, task.seed, Verdict("hang", what), case, seconds)

    def _waits_in_vain(self, seconds: float) -> str:
        """Say why the process will not answer; empty once it does, or has died."""
        assert self._child.stdout is not None
        answers = [self._child.stdout]
        start = used = processor_time(self._child.pid)
        while not select.select(answers, [], [], IDLE)[0]:
            before, used = used, processor_time(self._child.pid)
            if used - before < 0.01:
                return f"no work in {IDLE:.0f} s"
            if used - start > seconds:
                return f"no answer in {seconds:.0f} s of processor time"
        return ""

    def _end(self) -> None:
        self._child.kill()
        self._child.communicate()


def processor_time(process: int) -> float:
    """Return the seconds of processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _child() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("fuzz_worker.py"))],
        env={**os.environ, **SETTINGS, "PYTHONWARNINGS": "error::RuntimeWarning"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _result(line: str) -> Result:
    """Return the result that a worker printed."""
    fields = json.loads(line)
    fields["verdict"] = Verdict(**fields["verdict"])
    fields["case"] = None if fields["case"] is None else Case(**fields["case"])
    return Result(**fields)


def hunt(tasks: Iterable[Task], jobs: int = 1) -> Iterator[Result]:
    """Yield what becomes of cases; findings are reduced once for each signature."""
    known: set[str] = set()
    with ExitStack() as stack:
        idle = [stack.enter_context(Worker()) for _ in range(jobs)]
        pool = stack.enter_context(ThreadPoolExecutor(jobs))
        running: dict[Future[Result], Worker] = {}
        waiting = iter(tasks)
        while True:
            while idle and (task := next(waiting, None)) is not None:
                worker = idle.pop()
                task = replace(task, known=tuple(known))
                running[pool.submit(worker.ask, task)] = worker
            if not running:
                return
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                idle.append(running.pop(future))
                result = future.result()
                if result.verdict.is_finding:
                    known.add(result.verdict.signature)
                yield result


def drawn(
    families: Iterable[str], seed: str, seconds: float, reducing: float
) -> Iterator[Task]:
    """Yield tasks of families in turn, as often as each is to be drawn, for a time."""
    end = time.monotonic() + seconds
    turns = [family for family in families for _ in range(SHARES.get(family, 1))]
    Random(seed).shuffle(turns)
    for number, family in zip(count(), cycle(turns)):
        if time.monotonic() > end:
            return
        yield Task(family, f"{seed}-{number}", reducing=reducing)


@dataclass
class Report:
    """What came of all cases."""

    cases: Counter[str] = field(default_factory=Counter[str])
    accepted: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    seconds: Counter[str] = field(default_factory=Counter[str])
    findings: dict[str, list[Result]] = field(default_factory=dict[str, list[Result]])

    def add(self, result: Result) -> None:
        """Count a result; print a finding that is new."""
        verdict, family = result.verdict, result.family
        self.cases[family] += 1
        self.seconds[family] += round(result.seconds)
        if verdict.kind == "accepted":
            self.accepted[family] += 1
        elif verdict.kind == "refused":
            self.refused[family, general(verdict.message)] += 1
        else:
            alike = self.findings.setdefault(verdict.signature, [])
            alike.append(result)
            if len(alike) == 1:
                print(_signalled(result), flush=True)

    def __str__(self) -> str:
        """Return tables of families and refusals."""
        lines = ["family       cases accepted refused findings seconds"]
        for family, cases in self.cases.items():
            refused = sum(n for (of, _), n in self.refused.items() if of == family)
            found = cases - self.accepted[family] - refused
            lines.append(
                f"{family:12}{cases:6}{self.accepted[family]:9}{refused:8}{found:9}"
                f"{self.seconds[family]:8}"
            )
        lines += ["", "refused most:"]
        for (family, message), times in self.refused.most_common(SHOWN):
            lines.append(f"{times:5}  {family}: {message}")
        lines += ["", f"{len(self.findings)} findings"]
        for signature, alike in self.findings.items():
            lines.append(f"{len(alike):5}  {signature}")
        return "\n".join(lines)


def _signalled(result: Result) -> str:
    """Save a finding; return what it is and how to repeat it."""
    folder = OUT / f"{result.family}-{result.seed}"
    lines = [f"\n{result.verdict.kind}: {result.verdict.message[:1000]}"]
    if result.case is not None:
        result.case.save(folder)
        short = folder.relative_to(ROOT)
        lines.append(f"  again: .venv/bin/python tests/support/fuzz.py --again {short}")
        lines.append(f"  tool:  {result.case.command(short)}")
    case = f"{result.family}:{result.seed}"
    lines.append(f"  case:  .venv/bin/python tests/support/fuzz.py --case {case}")
    return "\n".join(lines)


def main() -> int:
    """Try cases for a time, or some again; return 1 where something is to be mended."""
    environment: Mapping[str, str] = os.environ
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=float(environment.get("FUZZ_SECONDS") or 60)
    )
    parser.add_argument(
        "--seed", default=environment.get("FUZZ_SEED") or str(time.time_ns() % 10**6)
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--families", nargs="+", choices=FAMILIES, default=list(FAMILIES)
    )
    parser.add_argument("--again", nargs="+", default=(), metavar="FOLDER")
    parser.add_argument("--case", nargs="+", default=(), metavar="FAMILY:SEED")
    parser.add_argument("--reducing", type=float, default=REDUCING, metavar="SECONDS")
    wanted = parser.parse_args()
    tasks: Iterable[Task] = [
        *(Task("", Path(name).name, folder=name, reducing=0) for name in wanted.again),
        *(Task(*case.split(":", 1), reducing=wanted.reducing) for case in wanted.case),
    ]
    if not tasks:
        print(f"FUZZ_SEED={wanted.seed} FUZZ_SECONDS={wanted.seconds:g}", flush=True)
        tasks = drawn(wanted.families, wanted.seed, wanted.seconds, wanted.reducing)
    report = Report()
    for result in hunt(tasks, wanted.jobs):
        if wanted.again or wanted.case:
            print(f"{result.verdict.kind}: {result.verdict.message}")
        report.add(result)
    print(f"\n{report}")
    return 1 if report.findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
