"""
How long comet-opt takes to start and to compile, against plain xdsl-opt.

    python benchmarks/start_up.py [--repeat 10]

Prints, for each command, the least wall time and the least processor time of some runs,
and their ratios to those of xdsl-opt on the same file.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SAMPLE = "samples/gemm_softmax.mlir"
EDGE = 'attach-hardware{path="samples/hardware/edge.yaml"},comet-accelerator'
H200 = 'attach-hardware{path="samples/hardware/h200x1.yaml"},triton-distributed'

COMMANDS = {
    "help": (("comet-opt", "--help"), ("xdsl-opt", "--help")),
    "read and print": (("comet-opt", SAMPLE), ("xdsl-opt", SAMPLE)),
    "to COMET files": (
        ("comet-opt", SAMPLE, "-p", EDGE, "-t", "comet"),
        ("xdsl-opt", SAMPLE),
    ),
    "to Triton": (
        ("comet-opt", SAMPLE, "-p", H200, "-t", "triton"),
        ("xdsl-opt", SAMPLE),
    ),
}
"""Each command of ours, and the one that it is held against."""


def least(command: tuple[str, ...], repeat: int) -> tuple[float, float]:
    """Return the least wall and processor times of `repeat` runs, in seconds."""
    tool = str(Path(sys.executable).with_name(command[0]))
    walls: list[float] = []
    busy: list[float] = []
    for _ in range(repeat):
        start, before = time.perf_counter(), os.times()
        subprocess.run((tool, *command[1:]), check=True, capture_output=True, cwd=ROOT)
        after = os.times()
        walls.append(time.perf_counter() - start)
        busy.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
    return min(walls), min(busy)


def main() -> None:
    """Measure every command and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip())
    parser.add_argument("--repeat", type=int, default=10, help="runs of each command")
    repeat: int = parser.parse_args().repeat
    for name, (ours, theirs) in COMMANDS.items():
        pairs = zip(least(ours, repeat), least(theirs, repeat), strict=True)
        cells = [
            f"{mine:6.2f} s / {base:5.2f} s = {mine / base:5.2f}"
            for mine, base in pairs
        ]
        print(f"{name:16} wall {cells[0]}   processor {cells[1]}", flush=True)


if __name__ == "__main__":
    main()
