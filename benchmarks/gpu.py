"""
Checks, times and explains every kernel on the day a GPU is there.

    python benchmarks/gpu.py emit DIR          # anywhere
    python DIR/run.py --minutes 8 --out R.json # on the GPU: torch, Triton and numpy
    python benchmarks/gpu.py table R.json      # anywhere
    python benchmarks/gpu.py plot R.json DIR   # anywhere; needs the extra `plot`
    python benchmarks/gpu.py record R.json     # anywhere: medians in little space
    python benchmarks/gpu.py all               # the first three on one machine

`--dry-run` takes every step at tiny sizes in Triton's interpreter; its times mean
nothing. docs/gpu-benchmarks.md says what is run, and what R.json holds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_run.case import GROUPS
from gpu_run.results import results_in


@dataclass(frozen=True)
class Options:
    """What the command line says; each verb has its part."""

    verb: str
    folder: Path = Path("gpu-cases")
    results: Path = Path("R.json")
    only: Sequence[str] = ()
    minutes: float | None = None
    dry_run: bool = False
    goals: bool = False
    listed: bool = False
    jobs: int = 1


def emit(options: Options) -> None:
    """Write the folder that runs on the GPU, or list what would be in it."""
    from gpu_cases import GOALS, REAL, TINY, cases
    from gpu_emit import bytes_in, write_folder

    sizes = TINY if options.dry_run else GOALS if options.goals else REAL
    wanted = [
        each
        for each in cases(sizes)
        if not options.only or each.case.group in options.only
    ]
    if options.listed:
        print(*(each.case.id for each in wanted), sep="\n")
        return
    start = time.perf_counter()
    folder = options.folder
    manifest = write_folder(folder, wanted, tiny=options.dry_run, jobs=options.jobs)
    seconds = time.perf_counter() - start
    files = {file for case in manifest.cases for file in case.modules.values()}
    print(
        f"{folder}: {len(manifest.cases)} cases, {len(files)} different modules, "
        f"{bytes_in(folder) / 1e6:.1f} MB, in {seconds:.0f} s"
    )
    for case in manifest.cases:
        for name, reason in case.refused.items():
            print(f"no module for {case.id} {name}: {reason}")


def run(options: Options) -> int:
    """Run the cases on this machine; return the exit code of run.py."""
    command = [sys.executable, str(options.folder / "run.py")]
    command += ["--out", str(options.results)]
    if options.minutes is not None:
        command += ["--minutes", str(options.minutes)]
    if options.only:
        command += ["--only", *options.only]
    if options.dry_run:
        command.append("--dry-run")
    return subprocess.run(command, check=False).returncode


def table(options: Options) -> None:
    """Print the summary and the tables of some results."""
    from gpu_table import tables

    print(tables(results_in(options.results)))


def record(options: Options) -> None:
    """Print the medians of some results, to be kept."""
    from gpu_record import record as recorded

    print(recorded(results_in(options.results)))


def plot(options: Options) -> None:
    """Draw the figures of some results; `ValueError` where nothing draws."""
    try:
        from gpu_plot import plots
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{error.name} is not installed; pip install comet-compiler[plot]"
        ) from error

    for path in plots(results_in(options.results), options.folder):
        print(path)


def everything(options: Options) -> int:
    """Emit, run and print on one machine; return the exit code of run.py."""
    emit(options)
    code = run(options)
    if options.results.exists():
        table(options)
    return code


def options_of(argv: Sequence[str] | None) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    emitting = verbs.add_parser("emit", help="write a folder that runs on a GPU")
    emitting.add_argument("folder", type=Path, metavar="DIR")
    emitting.add_argument("--list", dest="listed", action="store_true")
    whole = verbs.add_parser("all", help="emit, run and print on this machine")
    whole.add_argument("--folder", type=Path, default=Options.folder, metavar="DIR")
    whole.add_argument("--out", dest="results", type=Path, default=Options.results)
    whole.add_argument("--minutes", type=float)
    for verb in (emitting, whole):
        verb.add_argument("--only", nargs="+", choices=GROUPS, default=())
        verb.add_argument("--dry-run", action="store_true", help="tiny sizes")
        verb.add_argument(
            "--goals", action="store_true", help="what the goals are about alone"
        )
        verb.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    showing = verbs.add_parser("table", help="print the tables of R.json")
    drawing = verbs.add_parser("plot", help="draw the figures of R.json")
    recording = verbs.add_parser("record", help="print the medians of R.json as JSON")
    for verb in (showing, drawing, recording):
        verb.add_argument("results", type=Path, metavar="R.json")
    drawing.add_argument("folder", type=Path, metavar="DIR", nargs="?", default=".")
    return Options(**vars(parser.parse_args(argv)))


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the arguments say; return the exit code."""
    options = options_of(argv)
    verbs = {
        "emit": emit,
        "table": table,
        "plot": plot,
        "record": record,
        "all": everything,
    }
    try:
        return verbs[options.verb](options) or 0
    except (ValueError, OSError) as error:
        print(f"gpu: error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
