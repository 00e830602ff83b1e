"""
How long comet-opt takes to start and to compile, against plain xdsl-opt.

    python benchmarks/start_up.py [--repeat 10]

Prints, for each command, the fastest of some runs and its ratio to the fastest run of
xdsl-opt on the same file.
"""

import argparse
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


def fastest(command: tuple[str, ...], repeat: int) -> float:
    """Return the wall time of the fastest of `repeat` runs, in seconds."""
    tool = str(Path(sys.executable).with_name(command[0]))
    times: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        subprocess.run((tool, *command[1:]), check=True, capture_output=True, cwd=ROOT)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Measure every command and print a line for each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip())
    parser.add_argument("--repeat", type=int, default=10, help="runs of each command")
    repeat: int = parser.parse_args().repeat
    for name, (ours, theirs) in COMMANDS.items():
        mine, base = fastest(ours, repeat), fastest(theirs, repeat)
        print(f"{name:16} {mine:6.2f} s  xdsl-opt {base:6.2f} s  {mine / base:5.2f}x")


if __name__ == "__main__":
    main()
