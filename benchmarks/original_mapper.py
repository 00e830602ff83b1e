"""
The mapper of the original COMET tool beside comet-explore, on the paper's shapes.

    python benchmarks/original_mapper.py COMET [--samples 500] [--seed 0]
        [--time-limit 60] [--only TEXT]

COMET is a checkout of the tool's public repository, built, with the program at
build/comet. Its mapper, test/iterative_mapper, fills one template of GEMM-softmax with
8-bit operands by random factors, and runs the tool on each; it is run unchanged, and
needs pandas. We search under `paper`, and compare under `tool`, which prices samples as
the tool does; the other models refuse them, as the template moves a tensor that the
node above does not list. Prints the table of docs/evaluation.md.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown import markdown
from paper_programs import GEMMS, HARDWARE, Machine, program

import comet

MAPPER = Path("test/iterative_mapper")
SCRIPTS = {"edge": "generate_constants.py", "cloud": "generate_constants_cloud.py"}
SUFFIXES = {"edge": "", "cloud": "_cloud"}
"""What the mapper's files of a machine are called."""

SEEDED = """
import random, runpy, sys
random.seed(int(sys.argv[1]))
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a script whose random numbers are to repeat."""

HEADS = (
    *("machine", "shape", "samples that run", "best sample, cycles", "wall"),
    *("comet-explore, cycles", "gap under `paper`", "processor time", "gain"),
)


@dataclass(frozen=True)
class Sampled:
    """What the original's mapper found."""

    best: float
    """The least cycles of a sample."""
    priced: int
    """Samples that run, of those that were drawn."""
    wall: float
    """Seconds."""


@dataclass(frozen=True)
class Searched:
    """What comet-explore found."""

    cycles: float
    """What its files take under `tool`."""
    gap: float
    """Percent, under `paper`."""
    seconds: float
    """Processor time of the search."""


def sampled(
    original: Path, machine: Machine, shape: Sequence[int], samples: int, seed: int
) -> Sampled:
    """Run the mapper in a copy of its folder, and price what it drew."""
    dims = " ".join(f"{n}-{e}" for n, e in zip("MNK", shape, strict=True))
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "build").symlink_to((original / "build").resolve())
        folder = Path(scratch) / MAPPER
        earlier_runs = shutil.ignore_patterns("simulation_*")
        shutil.copytree(original / MAPPER, folder, ignore=earlier_runs)
        command = [
            *(sys.executable, "-c", SEEDED, str(seed), SCRIPTS[machine]),
            f"--constraints_file=constraints{SUFFIXES[machine]}.yaml",
            "--config_folder_name=config",
            "--output_folder_name=output",
            f"--num_iterations={samples}",
            f"--dims={dims}",
        ]
        start = time.monotonic()
        mapper = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        wall = time.monotonic() - start
        prices = list(sample_prices(folder, machine))
    if mapper.returncode or not prices:
        said = (mapper.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise SystemExit(f"the original mapper finds nothing for {dims}: {said}")
    return Sampled(min(prices), len(prices), wall)


def sample_prices(folder: Path, machine: Machine) -> Iterator[float]:
    """Yield the cycles of each sample that the tool accepts."""
    files = folder / "files"
    files.mkdir()
    shutil.copy(folder / f"arch{SUFFIXES[machine]}.yaml", files / "arch.yaml")
    for name in ("problem.yaml", "mapping.yaml"):
        shutil.copy(folder / name, files / name)
    for constants in sorted(folder.glob("simulation_*/config/*.yaml")):
        shutil.copy(constants, files / "constants.yaml")
        try:
            yield comet.cost(files, "tool").latency
        except comet.CometError:
            continue


def searched(machine: Machine, shape: Sequence[int], limit: float) -> Searched:
    """Search the mappings of the product with 8-bit operands."""
    text = program("gemm_softmax", tuple(shape), "f8E4M3FN")
    start = time.process_time()
    answer = comet.explore(text, HARDWARE / f"{machine}.yaml", time_limit=limit)
    seconds = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        answer.emit(folder)
        cycles = comet.cost(folder, "tool").latency
    assert answer.gap_percent is not None, "only `tool` has no lower bound"
    return Searched(cycles, answer.gap_percent, seconds)


def row(case: Sequence[str], its: Sampled, ours: Searched) -> list[str]:
    """Return the cells of a line."""
    return [
        *case,
        *(f"{its.priced}", f"{its.best:,.0f}", f"{its.wall:.0f} s"),
        f"{ours.cycles:,.0f}",
        "proven" if ours.gap == 0 else f"{ours.gap:.1f} %",
        *(f"{ours.seconds:.1f} s", f"{its.best / ours.cycles:.2f}x"),
    ]


def main() -> None:
    """Search each shape by both, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("original", type=Path, metavar="COMET")
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time-limit", type=float, default=60)
    parser.add_argument("--only", default="", help="part of a machine and shape")
    options = parser.parse_args()
    for part in (MAPPER, Path("build/comet")):
        if not (options.original / part).exists():
            parser.error(
                f"there is no {options.original / part}; COMET is a checkout of the "
                "original tool, built"
            )
    rows: list[list[str]] = []
    for machine, shapes in GEMMS.items():
        for shape in shapes:
            case = (machine, " x ".join(map(str, shape)))
            if options.only not in " ".join(case):
                continue
            its = sampled(
                options.original, machine, shape, options.samples, options.seed
            )
            ours = searched(machine, shape, options.time_limit)
            rows.append(row(case, its, ours))
            print(markdown(HEADS, rows[-1:]), file=sys.stderr)
    print(markdown(HEADS, rows))


if __name__ == "__main__":
    main()
