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

from comet.runtime.request import INTERPRETED, MANY_RANKS, ONE_RANK, Request

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
    add = parser.add_argument
    add("module", help="the emitted Python file")
    add("--check", action="store_true", help="fail unless the result is right; default")
    add("--bench", action="store_true", help="measure the time on a GPU as well")
    add("--seed", type=int, default=0, help="seed of inputs and of the scheduler")
    add("--json", action="store_true", help="print one JSON object")
    add("--ranks", type=int, default=None, help="ranks the module was compiled for")
    add(
        "--backend",
        default=None,
        help="one rank: interpreter or gpu; several: scheduler, processes, gpu or "
        "distributed. By default gpu where there is one, else interpreter or scheduler",
    )
    add("--resident", type=int, default=None, help="programs of a rank at a time")
    add("--epochs", type=int, default=5, help="launches with fresh data; several ranks")
    return parser


def is_for_ranks(module: str) -> bool:
    """Whether an emitted module is for several ranks."""
    text = Path(module).read_text(encoding="utf-8", errors="replace")
    return "\nPROGRAM = RankProgram(" in text


def problem_with(args: argparse.Namespace) -> str | None:
    """Return why the arguments cannot be served, in one sentence, or None."""
    if not Path(args.module).is_file():
        return f"there is no file {args.module}"
    if args.seed < 0:
        return f"--seed {args.seed} is negative; seeds are 0, 1, 2, ..."
    for name in ("epochs", "resident"):
        value = getattr(args, name)
        if value is not None and value < 1:
            return f"--{name} {value} is too small; it is at least 1"
    if args.ranks not in (None, 1) and not is_for_ranks(args.module):
        return f"--ranks {args.ranks}: the module was compiled for 1 rank"
    return _problem_with_backend(args)


def _problem_with_backend(args: argparse.Namespace) -> str | None:
    backend, many = args.backend, is_for_ranks(args.module)
    known = MANY_RANKS if many else ONE_RANK
    if backend not in (None, *ONE_RANK, *MANY_RANKS):
        return f"--backend {backend} is unknown; choose {' or '.join(known)}"
    if backend is not None and backend not in known:
        ranks = "several ranks" if many else "one rank"
        return (
            f"--backend {backend}: {args.module} is for {ranks}; choose "
            f"{' or '.join(known)}"
        )
    if backend in ("gpu", "distributed") and not has_gpu():
        instead = "scheduler" if many else "interpreter"
        return f"--backend {backend}: this machine has no GPU; use --backend {instead}"
    if args.bench and (backend in INTERPRETED or not has_gpu()):
        return "--bench measures on a GPU only; the interpreter's times mean nothing"
    if args.bench and many:
        return "--bench is for one rank; benchmarks/ladder.py times several"
    return None


def request_from(args: argparse.Namespace) -> Request:
    """Return what the child process is to do."""
    without = "scheduler" if is_for_ranks(args.module) else "interpreter"
    return Request(
        module=args.module,
        backend=args.backend or ("gpu" if has_gpu() else without),
        seed=args.seed,
        ranks=args.ranks,
        resident=args.resident,
        epochs=args.epochs,
        as_json=args.json,
        bench=args.bench,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run comet-run with the given arguments; return its exit code."""
    args = argument_parser().parse_args(argv)
    if (problem := problem_with(args)) is not None:
        print(f"comet-run: error: {problem}", file=sys.stderr)
        return 1
    request = request_from(args)
    command = [sys.executable, "-m", "comet.runtime.child", request.text()]
    interpret = request.backend in INTERPRETED
    environment = dict(os.environ, TRITON_INTERPRET=str(int(interpret)))
    return subprocess.run(command, env=environment, check=False).returncode
