"""
The demonstration that `make demo` runs: an accelerator, a GPU, and four GPUs.

It runs the commands that it prints, from the root of the checkout.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from xdsl.dialects.builtin import ModuleOp

from comet.api.program import installed_context, parsed
from comet.cost.estimate import energy_scope
from comet.dialects.comet import MappingOp
from comet.dialects.cost import Figures, estimate_of
from comet.tools.diagnostics import UsageError, one_sentence_errors
from comet.tools.mapping_table import format_table, mapping_rows

SAMPLE = "samples/gemm_softmax.mlir"
EDGE = 'attach-hardware{path="samples/hardware/edge.yaml"},comet-accelerator'
H200 = (
    'attach-hardware{path="samples/hardware/h200x1.yaml"},triton-distributed{ranks=1}'
)
SHARED = "samples/ag_gemm.mlir"
H200S = (
    'attach-hardware{path="samples/hardware/h200x8.yaml"},'
    "triton-distributed{ranks=4 pattern=push}"
)
OUT = Path("out/demo")
MAPPING_FILE = OUT / "mapping.mlir"
COMET_FILES = OUT / "comet"
TRITON_FILE = OUT / "gemm_softmax.py"
RANKS_FILE = OUT / "ag_gemm.py"


def main() -> None:
    """Compile the sample for both targets and show what came out."""
    with one_sentence_errors("demo"):
        if not Path(SAMPLE).exists():
            raise UsageError(f"{SAMPLE} is not here; run the demo from the checkout")
        OUT.mkdir(parents=True, exist_ok=True)
        show_accelerator()
        show_gpu()
        show_ranks()
        show_way_on()


def show_accelerator() -> None:
    """Compile to COMET files and print the mapping with its predicted cost."""
    print("== 1. A spatial accelerator: files for the COMET tool ==\n")
    _run("comet-opt", SAMPLE, "-p", EDGE, "-o", str(MAPPING_FILE))
    _run("comet-opt", str(MAPPING_FILE), "-t", f'comet{{dir="{COMET_FILES}"}}')
    text = MAPPING_FILE.read_text()
    module = parsed(text, str(MAPPING_FILE), installed_context())
    mapping = next(op for op in module.walk() if isinstance(op, MappingOp))
    print("\nThe mapping that comet chose:\n")
    print(format_table(tuple(mapping_rows(mapping.root))))
    print(f"\n{format_figures(_figures(module))}")


def _figures(module: ModuleOp) -> Figures:
    """Return the estimate of the whole run: the first one in the module."""
    found = (estimate_of(op) for op in module.walk())
    return next(figures for figures in found if figures is not None)


def format_figures(figures: Figures) -> str:
    """Format an estimate below its model: one figure per line, with its unit."""
    model = str(figures.model)
    scope = energy_scope(model)
    lines = [f"What the cost model '{model}' predicts, {scope}:", ""]
    for name, value in figures.numbers.items():
        unit = "pJ" if name == "energy" else figures.unit
        lines.append(f"{name.replace('_', ' '):20}{value:>16,.0f} {unit}")
    return "\n".join(lines)


def show_gpu() -> None:
    """Compile to Triton, run it on the CPU, and print its error."""
    print(
        "\n\n== 2. A GPU: a Triton kernel, run on the CPU by Triton's interpreter ==\n"
    )
    _run("comet-opt", SAMPLE, "-p", H200, "-t", "triton", into=TRITON_FILE)
    _check(TRITON_FILE)


def show_ranks() -> None:
    """Compile for four GPUs, run all of them on the CPU, and print the taxes."""
    print("\n\n== 3. Four GPUs: kernels that send, signal and wait, on the CPU ==\n")
    _run("comet-opt", SHARED, "-p", H200S, "-t", "triton", into=RANKS_FILE)
    _check(RANKS_FILE, "--backend", "scheduler", "--seed", "7", "--epochs", "2")
    print("\nWhere the time of four H200 would go, by the cost model:\n")
    tables: dict[str, str] = {}
    for pattern in ("bsp", "push"):
        plan = H200S.replace("pattern=push", f"pattern={pattern} to=dataflow")
        tables[pattern] = _run(
            "comet-opt", SHARED, "-p", plan, "-t", "taxes", quiet=True
        )
    print(format_totals(tables))


def format_totals(tables: Mapping[str, str]) -> str:
    """Return the totals of tables of taxes: a header, and a row for each pattern."""
    rows: list[list[str]] = []
    for pattern, table in tables.items():
        cells = [re.split(r"  +", line) for line in table.splitlines() if line]
        rows = rows or [["pattern", *cells[1][1:]]]
        rows.append([pattern, *next(row[1:] for row in cells if row[0] == "total")])
    return "\n".join(
        f"{first:10}" + "".join(f"{cell:>17}" for cell in cells)
        for first, *cells in rows
    )


def show_way_on() -> None:
    """Print where the files are and what to try next."""
    files = " ".join(sorted(path.name for path in COMET_FILES.iterdir()))
    print(
        f"""

== 4. What to do next ==

The files: {MAPPING_FILE} {COMET_FILES}/ ({files})
           {TRITON_FILE} {RANKS_FILE}

Try:  - change the sizes in {SAMPLE} and run this again;
      - take samples/hardware/cloud.yaml for edge.yaml in the first command;
      - look at the IR in the first file, or name fewer passes to see earlier IR;
      - the same with samples/gemm_layernorm.mlir;
      - from a BSP program to a fused kernel, step by step: docs/multi-gpu.md;
      - write a pass: samples/custom_pass.

The commands are in .venv/bin; 'source .venv/bin/activate' puts them on the PATH."""
    )


def _check(module: Path, *options: str) -> None:
    """Run an emitted module on random inputs, and print its error."""
    text = _run("comet-run", str(module), *options, "--check", "--json")
    report = cast(dict[str, float], json.loads(text))
    print(
        f"\nLargest error against the reference: {report['max_error']:.2e}"
        f" (tolerance {report['tolerance']:.2e}; {report['seconds']:.2f} s)"
    )


def _run(*command: str, quiet: bool = False, into: Path | None = None) -> str:
    """Print a command unless `quiet`, run it, and return its output, or store it."""
    if not quiet:
        suffix = "" if into is None else f" > {into}"
        print(f"$ {shlex.join(command)}{suffix}", flush=True)
    tool = str(Path(sys.executable).with_name(command[0]))
    done = subprocess.run(
        (tool, *command[1:]), stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(done.returncode)  # the tool has printed why
    if into is not None:
        into.write_text(done.stdout)
    return done.stdout


if __name__ == "__main__":
    main()
