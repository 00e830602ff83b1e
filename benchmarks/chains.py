"""
How long quick search takes for n chained GEMM-RMSNorm, and what it finds.

    python benchmarks/chains.py [--counts 1,2,4,8,16] [--machine edge]

Each program is compiled by `comet-opt` in a process of its own. Prints a table.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from markdown import markdown

ROOT = Path(__file__).parents[1]


def chain(count: int, rows: int = 96, size: int = 64) -> str:
    """Return a function of `count` products, each normalized, of the one before."""
    left, right, scale = f"{rows}x{size}", f"{size}x{size}", f"{size}"
    types = [f"tensor<{each}xf16>" for each in (left, right, scale)]
    args = [f"%y0: {types[0]}"]
    lines: list[str] = []
    for i in range(count):
        args += [f"%b{i}: {types[1]}", f"%gamma{i}: {types[2]}"]
        lines.append(
            f"  %y{i + 1} = compound.gemm_rmsnorm %y{i}, %b{i}, %gamma{i} "
            f"epsilon 1.0e-5 : ({', '.join(types)}) -> {types[0]}\n"
        )
    return (
        f"func.func @chain({', '.join(args)}) -> {types[0]} {{\n{''.join(lines)}"
        f"  func.return %y{count} : {types[0]}\n}}\n"
    )


def row(count: int, machine: str) -> list[str]:
    """Compile a chain, and return the cells of the table."""
    hardware = ROOT / "samples" / "hardware" / f"{machine}.yaml"
    passes = f'attach-hardware{{path="{hardware}"}},comet-accelerator'
    tool = str(Path(sys.executable).with_name("comet-opt"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in.mlir"
        path.write_text(chain(count))
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        start = time.monotonic()
        done = subprocess.run(
            [tool, str(path), "-p", passes, "--explain"],
            capture_output=True,
            text=True,
            check=True,
        )
        wall = time.monotonic() - start
        user = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    _, _, table = done.stderr.partition("mapping for @chain")
    chosen = next(line for line in table.splitlines() if line.startswith("*"))
    label, cycles = chosen[2:].split("  ")[0], chosen[2:].split("  ", 1)[1].split()[0]
    return [str(count), f"{wall:.1f} s", f"{user:.1f} s", cycles, label]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", default="1,2,4,8,16")
    parser.add_argument("--machine", default="edge")
    options = parser.parse_args()
    rows = [row(int(count), options.machine) for count in options.counts.split(",")]
    heads = ("n", "wall", "processor", "cycles", "mapping")
    print(markdown(heads, rows))


if __name__ == "__main__":
    main()
