"""
The command `comet-run`: runs emitted modules, checks and times them.

Triton decides on import whether it interprets or compiles. So the work is done in a
child process, whose environment this one sets.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from comet.runtime.request import (
    GRAPHS,
    INTERPRETED,
    LIMITED,
    MANY_RANKS,
    ONE_PLAN,
    ONE_RANK,
    TARGETS,
    TORCHRUN,
    Request,
)

DEVICE_FILES = ("/dev/nvidiactl", "/dev/kfd")
EPOCHS = 5
"""Default number of launches; with `--graph` the first one is not replayed."""
RANKS = re.compile(
    r"^PROGRAM = RankProgram\(.*?\branks=(\d+)", re.MULTILINE | re.DOTALL
)


def has_gpu() -> bool:
    """Whether the machine has an NVIDIA or AMD GPU that programs may use."""
    return any(os.path.exists(path) for path in DEVICE_FILES)


class FlagParser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, with the exit code 1."""

    def error(self, message: str) -> NoReturn:
        """Print why the command line is wrong, and exit."""
        self.exit(1, f"{self.prog}: error: {message}; see {self.prog} --help\n")


def argument_parser() -> argparse.ArgumentParser:
    """Return the parser of comet-run's command line."""
    parser = FlagParser(
        prog="comet-run",
        description="Run a module emitted by `comet-opt -t triton`, and check it "
        "against the numpy reference in it.",
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
        help="one rank: interpreter, scheduler or gpu; several: scheduler, processes, "
        "virtual, gpu or distributed. By default gpu where there is one, else "
        "interpreter or scheduler",
    )
    add("--resident", type=int, default=None, help="programs of a rank at a time")
    add(
        "--epochs",
        type=int,
        default=None,
        help="launches with fresh data; by default 5",
    )
    add("--graph", action="store_true", help="replay a graph from the second launch on")
    add(
        "--compile",
        nargs="+",
        default=[],
        metavar="TARGET",
        help=f"run nothing: compile for {' and '.join(TARGETS)}, and check what orders "
        "the ranks and what is slow; needs no GPU",
    )
    return parser


def ranks_of(module: str) -> int | None:
    """Return the number of ranks of an emitted module, or None if it has one."""
    text = Path(module).read_text(encoding="utf-8", errors="replace")
    found = RANKS.search(text)
    return int(found[1]) if found else None


def back_ends(ranks: int | None) -> Sequence[str]:
    """Return the back ends for what `ranks_of` returned, the default first."""
    if ranks is None:
        return ONE_RANK
    return ONE_PLAN if ranks == 1 else MANY_RANKS


def problem_with(args: argparse.Namespace) -> str | None:
    """Return why the arguments are wrong, in one sentence, or None."""
    if not Path(args.module).is_file():
        return f"there is no file {args.module}"
    if args.seed < 0:
        return f"--seed {args.seed} is negative; seeds are 0, 1, 2, ..."
    for name in ("epochs", "resident"):
        value = getattr(args, name)
        if value is not None and value < 1:
            return f"--{name} {value} is too small; it is at least 1"
    ranks = ranks_of(args.module)
    if args.ranks not in (None, ranks or 1):
        of = "1 rank" if ranks is None else f"{ranks} ranks"
        return f"--ranks {args.ranks}: the module was compiled for {of}"
    if args.compile:
        return _problem_with_targets(args)
    backends = back_ends(ranks)
    return _problem_with_backend(args, backends) or _problem_with_device(args, ranks)


def _problem_with_targets(args: argparse.Namespace) -> str | None:
    """Return why the module cannot be compiled for the targets."""
    for target in args.compile:
        if target not in TARGETS:
            names = " or ".join(TARGETS)
            return f"--compile {target} is unknown; choose {names}"
    if args.backend not in (None, "gpu", "distributed"):
        return (
            f"--compile is for the launches of --backend gpu or distributed, not "
            f"{args.backend}"
        )
    for name in ("check", "bench", "graph", "resident", "epochs"):
        if getattr(args, name):
            return f"--compile runs nothing, so --{name} means nothing; leave one out"
    return None


def _problem_with_backend(
    args: argparse.Namespace, backends: Sequence[str]
) -> str | None:
    """Return why the back end cannot run the module or obey an option."""
    backend = args.backend
    if backend not in (None, *ONE_RANK, *MANY_RANKS):
        return f"--backend {backend} is unknown; choose {' or '.join(backends)}"
    if backend not in (None, *backends):
        ranks = "several ranks" if backends is MANY_RANKS else "one rank"
        return (
            f"--backend {backend}: {args.module} is for {ranks}; choose "
            f"{' or '.join(backends)}"
        )
    backend = chosen_backend(args.backend, backends)
    if args.resident is not None and backend not in LIMITED:
        return f"--resident limits {' and '.join(LIMITED)}, not --backend {backend}"
    if args.epochs is not None and backends is ONE_RANK:
        return "--epochs is for several ranks; a function launches once"
    if args.graph and (backends is ONE_RANK or backend not in GRAPHS):
        return f"--graph is for several ranks with --backend {' or '.join(GRAPHS)}"
    if args.graph and args.epochs == 1:
        return "--graph replays from the second launch on; give --epochs 2 or more"
    return None


def _problem_with_device(args: argparse.Namespace, ranks: int | None) -> str | None:
    """Return an error about a device that the machine lacks, None if it has all."""
    if args.backend in ("gpu", "distributed") and not has_gpu():
        instead = "interpreter" if ranks is None else "scheduler"
        return (
            f"--backend {args.backend}: this machine has no GPU; use "
            f"--backend {instead}"
        )
    if args.backend == "distributed" and any(
        name not in os.environ for name in TORCHRUN
    ):
        return (
            "--backend distributed needs a process for each rank; type: torchrun "
            f"--nproc-per-node {ranks} {args.module} --backend distributed"
        )
    if args.bench and (args.backend in INTERPRETED or not has_gpu()):
        return "--bench measures on a GPU only; the interpreter's times mean nothing"
    if args.bench and ranks not in (None, 1):
        return "--bench is for one rank; benchmarks/gpu.py times several"
    return None


def chosen_backend(requested: str | None, backends: Sequence[str]) -> str:
    """Return the back end to use, one of `backends`."""
    return requested or ("gpu" if has_gpu() else backends[0])


def request_from(args: argparse.Namespace) -> Request:
    """Return the request for the child process."""
    backends = back_ends(ranks_of(args.module))
    requested = args.backend or ("distributed" if args.compile else None)
    return Request(
        module=args.module,
        backend=chosen_backend(requested, backends),
        seed=args.seed,
        ranks=args.ranks,
        resident=args.resident,
        epochs=args.epochs or EPOCHS + args.graph,
        graph=args.graph,
        as_json=args.json,
        bench=args.bench,
        targets=tuple(args.compile),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run comet-run with the given arguments; return its exit code."""
    args = argument_parser().parse_args(argv)
    if (problem := problem_with(args)) is not None:
        print(f"comet-run: error: {problem}", file=sys.stderr)
        return 1
    request = request_from(args)
    command = [sys.executable, "-m", "comet.runtime.child", request.text()]
    interpret = request.backend in INTERPRETED and not request.targets
    environment = {"TRITON_DEFAULT_FP_FUSION": "1", **os.environ}
    environment["TRITON_INTERPRET"] = str(int(interpret))
    with subprocess.Popen(command, env=environment) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:  # the terminal interrupts the child as well
            return process.wait()
