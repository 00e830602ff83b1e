"""
How good comet-explore is in how much time, each case in a process of its own.

    python benchmarks/explore.py [--only TEXT] [--time-limit 60]

Under `ideal` the programs are those of the peers' figures (AccelForge, 8-bit operands,
perfect overlap), under `paper` the shapes of the COMET paper. Prints a table; `quick`
are the cycles of the mapping that `comet-accelerator` chooses by itself.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from markdown import markdown
from paper_programs import HARDWARE, SHAPES, program

import comet
from comet.cost.estimate import ModelName

PRODUCTS = (
    ("edge", (256, 128, 256)),
    ("edge", (1024, 256, 1024)),
    ("edge", (1, 128, 1024)),
    ("cloud", (256, 512, 256)),
    ("cloud", (1, 512, 4096)),
)
"""Machine and (M, K, N) of the peers' products."""

FUSED = (
    ("gemm_softmax", (256, 256, 128)),
    ("gemm_softmax", (1024, 1024, 256)),
    ("attention", (1, 256, 256, 64)),
    ("attention", (1, 1024, 1024, 64)),
)
"""Op and shape of the peers' fused programs, on edge."""


@dataclass(frozen=True)
class Case:
    """One search."""

    name: str
    machine: str
    text: str
    model: ModelName
    objective: str = "latency"


def product(m: int, k: int, n: int) -> str:
    """Return the text of a product of 8-bit matrices."""
    left, right, result = f"{m}x{k}", f"{k}x{n}", f"{m}x{n}"
    types = [f"tensor<{each}xf8E4M3FN>" for each in (left, right, result)]
    return (
        f"func.func @gemm(%a: {types[0]}, %b: {types[1]}) -> {types[2]} {{\n"
        f"  %c = compound.gemm %a, %b : ({types[0]}, {types[1]}) -> {types[2]}\n"
        f"  func.return %c : {types[2]}\n}}\n"
    )


def cases() -> Iterator[Case]:
    """Yield every case."""
    for machine, (m, k, n) in PRODUCTS:
        for objective in ("latency", "energy", "edp"):
            name = f"gemm {m}x{n}x{k}, {objective}"
            yield Case(name, machine, product(m, k, n), "ideal", objective)
    for op, shape in FUSED:
        name, text = f"{op} {shape}, 8 bits", program(op, shape, "f8E4M3FN")
        yield Case(name, "edge", text, "ideal")
    for op, shapes in SHAPES.items():
        for machine, chosen in shapes.items():
            for shape in chosen:
                name = f"{op} {shape}"
                yield Case(name, machine, program(op, shape), "paper")


def row(case: Case, limit: float) -> list[str]:
    """Search, and return the cells of the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in.mlir"
        path.write_text(case.text)
        machine = HARDWARE / f"{case.machine}.yaml"
        command = [
            str(Path(sys.executable).with_name("comet-explore")),
            str(path),
            f"--hardware={machine}",
            f"--model={case.model}",
            f"--objective={case.objective}",
            f"--time-limit={limit}",
            "--json",
        ]
        mapped = comet.compile(path, machine, quickly(case)).module
        start = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - start
    head = [
        case.name,
        case.machine,
        case.model,
        f"{comet.cost(mapped, case.model).latency:,.0f}",
    ]
    if done.returncode:
        return [*head, done.stderr.strip().splitlines()[-1][:60], *[""] * 6]
    found = cast(dict[str, float], json.loads(done.stdout))
    return [
        *head,
        f"{found['latency_cycles']:,.0f}",
        f"{found['energy_pj'] / 1e6:,.2f}",
        f"{found['lower_bound']:,.0f}",
        "proven" if found["proven"] else f"{found['gap_percent']:.1f} %",
        f"{found['structures_closed']} of {found['structures']}",
        f"{seconds:.1f} s",
        f"`{found['mapping']}`",
    ]


def quickly(case: Case) -> str:
    """Return the pipeline that finds a mapping without an exact search."""
    return f"comet-accelerator{{model={case.model} objective={case.objective}}}"


def main() -> None:
    """Print the table, line by line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--time-limit", type=float, default=60.0)
    options = parser.parse_args()
    rows = [
        row(case, options.time_limit) for case in cases() if options.only in case.name
    ]
    heads = (
        *("case", "machine", "model", "quick", "cycles", "uJ"),
        *("lower bound", "gap", "structures closed", "wall", "mapping"),
    )
    print(markdown(heads, rows))


if __name__ == "__main__":
    main()
