"""
The command `comet-run`: runs emitted modules, checks and times them.

Triton decides when it is imported whether to interpret or to compile; so the work is
done in a child process, whose environment this one sets.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

BACKENDS = ("interpreter", "gpu")
DEVICE_FILES = ("/dev/nvidiactl", "/dev/kfd")


def has_gpu() -> bool:
    """Whether the machine has an NVIDIA or AMD GPU that programs may use."""
    return any(os.path.exists(path) for path in DEVICE_FILES)


def argument_parser() -> argparse.ArgumentParser:
    """Return the parser of comet-run's command line."""
    parser = argparse.ArgumentParser(
        prog="comet-run",
        description="Run a module emitted by `comet-opt -t triton`, and check it "
        "against the numpy reference that it carries.",
    )
    parser.add_argument("module", help="the emitted Python file")
    parser.add_argument(
        "--check", action="store_true", help="fail unless the result is right (default)"
    )
    parser.add_argument(
        "--bench", action="store_true", help="measure the time on a GPU as well"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the random inputs")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--ranks", type=int, default=1, help="number of ranks")
    parser.add_argument(
        "--backend",
        default=None,
        help="interpreter (on the CPU) or gpu; by default gpu where there is one",
    )
    return parser


def problem_with(args: argparse.Namespace) -> str | None:
    """Return why the arguments cannot be served, in one sentence, or None."""
    if not Path(args.module).is_file():
        return f"there is no file {args.module}"
    if args.seed < 0:
        return f"--seed {args.seed} is negative; seeds are 0, 1, 2, ..."
    if args.ranks != 1:
        return f"--ranks {args.ranks}: the module was compiled for 1 rank"
    if args.backend not in (None, *BACKENDS):
        return f"--backend {args.backend} is unknown; choose {' or '.join(BACKENDS)}"
    if args.backend == "gpu" and not has_gpu():
        return "--backend gpu: this machine has no GPU; use --backend interpreter"
    if args.bench and (args.backend == "interpreter" or not has_gpu()):
        return "--bench measures on a GPU only; the interpreter's times mean nothing"
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Run comet-run with the given arguments; return its exit code."""
    args = argument_parser().parse_args(argv)
    if (problem := problem_with(args)) is not None:
        print(f"comet-run: error: {problem}", file=sys.stderr)
        return 1
    backend = args.backend or ("gpu" if has_gpu() else "interpreter")
    command = [sys.executable, "-m", "comet.runtime.child", args.module, backend]
    command += [str(args.seed)]
    command += [flag for flag in ("json", "bench") if getattr(args, flag)]
    environment = dict(os.environ, TRITON_INTERPRET=str(int(backend == "interpreter")))
    return subprocess.run(command, env=environment, check=False).returncode
