"""
The best mapping of every fusion strategy by exact search, on the paper's shapes.

    python benchmarks/strategies.py FILE.csv [--time-limit 20] [--only TEXT]

Searches for what the file has no lines yet, adds them, and prints the tables of
docs/evaluation.md. Each shape is searched by `comet-explore --compare-strategies` under
`paper`, one strategy after the other.
"""

from __future__ import annotations

import argparse
import csv
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from markdown import markdown
from paper_programs import GEMMS, HARDWARE, program

Line: TypeAlias = Mapping[str, str]
"""A line of the file: one strategy of a case."""

OPS = ("gemm_softmax", "gemm_layernorm")
STRATEGIES = ("none", "isolate_contractions", "partial", "full")
CASE = ("op", "machine", "shape")
FIGURES = (
    *("strategy", "latency_cycles", "energy_pj", "lower_bound", "gap_percent"),
    *("structures", "structures_closed", "seconds", "mapping", "error"),
)


def searched(
    op: str, machine: str, shape: Sequence[int], limit: float
) -> Sequence[Line]:
    """Return a line for each strategy."""
    with tempfile.TemporaryDirectory() as folder:
        path, table = Path(folder) / "in.mlir", Path(folder) / "out.csv"
        path.write_text(program(op, tuple(shape)))
        command = [
            str(Path(sys.executable).with_name("comet-explore")),
            str(path),
            f"--hardware={HARDWARE / machine}.yaml",
            f"--time-limit={limit}",
            f"--csv={table}",
            "--compare-strategies",
            "--jobs=1",
        ]
        subprocess.run(command, capture_output=True, check=False)
        found = list(csv.DictReader(table.read_text().splitlines()))
    case: dict[str, str] = {
        "op": op,
        "machine": machine,
        "shape": " x ".join(map(str, shape)),
    }
    return [case | {name: line[name] for name in FIGURES} for line in found]


def complete(path: Path, only: str, limit: float) -> list[Line]:
    """Return the lines of the file, to which those of missing cases are added."""
    known: list[Line] = []
    if path.exists():
        known += csv.DictReader(path.read_text().splitlines())
    cases = {tuple(line[name] for name in CASE) for line in known}
    with path.open("a", newline="") as file:
        table = csv.DictWriter(file, [*CASE, *FIGURES], lineterminator="\n")
        if not known:
            table.writeheader()
        for op in OPS:
            for machine, shapes in GEMMS.items():
                for shape in shapes:
                    name = " x ".join(map(str, shape))
                    if (op, machine, name) in cases or only not in f"{op} {name}":
                        continue
                    found = searched(op, machine, shape, limit)
                    table.writerows(found)
                    file.flush()
                    known += found
    return known


def figures(lines: Sequence[Line]) -> Iterator[list[str]]:
    """Yield the cells of each case: cycles and gap of every strategy."""
    for case in dict.fromkeys(tuple(line[name] for name in CASE) for line in lines):
        own = {x["strategy"]: x for x in lines if tuple(x[n] for n in CASE) == case}
        yield [*case, *(_cell(own.get(strategy)) for strategy in STRATEGIES)]


def _cell(line: Line | None) -> str:
    if line is None or not line["latency_cycles"]:
        return "-"
    gap = float(line["gap_percent"])
    cycles = f"{float(line['latency_cycles']):,.0f}"
    return cycles if gap < 1e-9 else f"{cycles} ({gap:.1f} %)"


def means(lines: Sequence[Line]) -> Iterator[list[str]]:
    """Yield, for each op, the mean gains of each strategy over `none`."""
    for op in OPS:
        for figure in ("latency_cycles", "energy_pj"):
            cells = [op, figure.split("_")[0]]
            for strategy in STRATEGIES[1:]:
                gains = list(_gains(lines, op, strategy, figure))
                cells.append(f"{_mean(gains):.2f} of {len(gains)}" if gains else "-")
            yield cells


def _gains(
    lines: Sequence[Line], op: str, strategy: str, figure: str
) -> Iterator[float]:
    """Yield how many times less a strategy costs than `none`, for shapes with both."""
    by_case: dict[tuple[str, ...], dict[str, float]] = {}
    for line in lines:
        if line["op"] == op and line[figure]:
            case = tuple(line[name] for name in CASE)
            by_case.setdefault(case, {})[line["strategy"]] = float(line[figure])
    for costs in by_case.values():
        if {strategy, "none"} <= costs.keys():
            yield costs["none"] / costs[strategy]


def _mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def main() -> None:
    """Search what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--only", default="", help="cases whose name has this text")
    options = parser.parse_args()
    lines = complete(options.file, options.only, options.time_limit)
    print(markdown((*CASE, *STRATEGIES), figures(lines)), end="\n\n")
    print(markdown(("op", "gain in", *STRATEGIES[1:]), means(lines)))


if __name__ == "__main__":
    main()
