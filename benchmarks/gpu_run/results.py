"""The file of results, which is whole and valid at every moment."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal, TypeAlias, TypedDict

from gpu_run.case import FORMAT, Case, Manifest, manifest_of

Facts: TypeAlias = dict[str, object]


class Times(TypedDict):
    """The times of one alternative in one condition, in seconds."""

    median: float
    lower: float
    upper: float
    n: int


class Alternative(TypedDict, total=False):
    """What became of one alternative of a case; each field may be left out."""

    missing: str
    """Why it was not run: the reason of the compiler, of torch or of the machine."""
    error: float | None
    """The largest relative error of all launches; None: a result was not finite."""
    tolerance: float
    ok: bool
    """Whether the error is within the tolerance."""
    partial: bool
    """Whether it does a part of the work alone, such as the product."""
    remark: str
    """What is odd about the launch."""
    times: dict[str, Times]
    """By condition: cold and warm, or eager and graph."""


class Result(TypedDict, total=False):
    """What became of a case."""

    state: Literal["done", "lost"]
    reason: str
    """Why it was lost."""
    seconds: float
    """What it took, in all."""
    run: int
    """The number of the run, from 0."""
    alternatives: dict[str, Alternative]
    calibration: Facts
    exchanges: dict[str, float]
    """Microseconds of what programs wait for, see `gpu_device.exchanges`."""


def is_lost(result: Result) -> bool:
    """Whether the process of a case ended before the case did."""
    return result.get("state") == "lost"


def is_wrong(result: Result) -> bool:
    """Whether anything that was compared is not what it has to be."""
    return not all(a.get("ok", True) for a in result.get("alternatives", {}).values())


class Run(TypedDict):
    """One call of run.py."""

    started: str
    minutes: float | None
    machine: Facts
    dry_run: bool


class Report(TypedDict):
    """All that the file holds."""

    format: int
    digest: str
    manifest: Facts
    runs: list[Run]
    results: dict[str, Result]


class Results:
    """The results so far, in memory and in their file."""

    def __init__(self, path: Path, manifest: Manifest, report: Report) -> None:
        self.path = path
        self.manifest = manifest
        self.report = report

    @property
    def done(self) -> dict[str, Result]:
        """What is known, by the id of the case."""
        return self.report["results"]

    def pending(self, cases: list[Case]) -> list[Case]:
        """Return the cases that can be run and of which nothing is known."""
        runs = (case for case in cases if case.modules or case.group == "machine")
        return [case for case in runs if case.id not in self.done]

    def lost_modules(self) -> dict[str, str]:
        """Return why the process of a module's own case was lost, by its file."""
        lost: dict[str, str] = {}
        for case in self.manifest.cases:
            result = self.done.get(case.id)
            if result is not None and is_lost(result) and len(case.modules) == 1:
                (file,) = case.modules.values()
                lost[file] = f"{case.id}: {result.get('reason')}"
        return lost

    def started(self, run: Run) -> None:
        """Note that a run starts."""
        self.report["runs"].append(run)
        self._write()

    def add(self, case: Case, result: Result) -> None:
        """Keep what became of a case."""
        result["run"] = len(self.report["runs"]) - 1
        self.done[case.id] = result
        self._write()

    def _write(self) -> None:
        """Replace the file at once: whoever reads it finds the old or the new one."""
        beside = self.path.with_name(self.path.name + ".new")
        beside.write_text(json.dumps(self.report, indent=1))
        os.replace(beside, self.path)


def results_in(path: Path) -> Results:
    """Return the results of a file; `ValueError` where it is no such file."""
    try:
        report: Report = json.loads(path.read_text())
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    try:
        manifest = manifest_of(json.dumps(report["manifest"]), path)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} was not written by run.py") from error
    return Results(path, manifest, report)


def results_for(path: Path, manifest: Manifest) -> Results:
    """
    Return the results of earlier runs, or none where there is no file yet.

    Raises `ValueError` where the file is for other modules.
    """
    if not path.exists():
        report = Report(
            format=FORMAT,
            digest=manifest.digest,
            manifest=json.loads(manifest.text()),
            runs=[],
            results={},
        )
        return Results(path, manifest, report)
    results = results_in(path)
    if results.report["digest"] != manifest.digest:
        raise ValueError(
            f"{path} has results of other modules; name another file with --out"
        )
    return results
