"""The child process of `comet-run`: REQUEST, in JSON."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import traceback
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import TYPE_CHECKING

from comet.runtime.program import Program, RankProgram, load_module, program_of
from comet.runtime.progress import PROGRESS, WORTH_SAYING, expected_time, reported
from comet.runtime.request import INTERPRETED, TARGETS, Request, request_of

if TYPE_CHECKING:
    from comet.runtime.check import CheckResult

Facts = dict[str, object]


def expect_gpu() -> None:
    """Raise `ValueError` where torch cannot use the GPU."""
    import torch

    if not torch.cuda.is_available():
        raise ValueError(
            "this torch cannot use the GPU; install one that can, or run with "
            "--backend interpreter, or scheduler for several ranks"
        )


def report(request: Request) -> Facts:
    """Check the module, time it if requested, and return the facts to print."""
    if request.backend not in INTERPRETED:
        expect_gpu()
    program = program_of(load_module(request.module), request.module)
    if request.backend not in INTERPRETED:
        return _report(program, request)
    announce(program, request)
    with reported():
        return _report(program, request)


def _report(program: Program | RankProgram, request: Request) -> Facts:
    if isinstance(program, RankProgram):
        return _report_of_ranks(program, request)
    return _report_of_one(program, request)


def announce(program: Program | RankProgram, request: Request) -> None:
    """Print on stderr how long the run will take, if that is long."""
    launches = request.epochs if isinstance(program, RankProgram) else 1
    time = expected_time(program, launches)
    if time.total > WORTH_SAYING:
        sentence = time.sentence(" or ".join(TARGETS))
        print(f"comet-run: {sentence}", file=sys.stderr, flush=True)


def _report_of_one(program: Program, request: Request) -> Facts:
    """Run one rank; an error that the scheduler finds is a fact, as for ranks."""
    if request.ranks not in (None, 1):
        raise ValueError(f"--ranks {request.ranks}: the module was compiled for 1 rank")
    from comet.runtime.check import check
    from comet.runtime.rank_backends import FAILURES

    if request.backend == "scheduler":
        from comet.runtime.scheduler import scheduled

        program = scheduled(program, request.seed, request.resident)
    device = "cpu" if request.backend in INTERPRETED else "cuda"
    try:
        with _counting(request):
            result = check(program, request.seed, device)
    except FAILURES as error:
        return _failed(error, 1, request)
    return _facts(result, 1, request) | _times(program, request)


def _counting(request: Request) -> AbstractContextManager[None]:
    """Count the programs that Triton's interpreter runs for the progress."""
    if request.backend != "interpreter":
        return nullcontext()
    from comet.runtime.interpreted import counted

    return counted(PROGRESS)


def _times(program: Program | RankProgram, request: Request) -> Facts:
    """Return the time of a program of one rank, if it is asked for."""
    if not request.bench:
        return {}
    from comet.runtime.bench import bench_microseconds

    return {"microseconds": bench_microseconds(program, request.seed)}


def _report_of_ranks(program: RankProgram, request: Request) -> Facts:
    """Run all ranks; an error in one is a fact, not an error of this process."""
    from comet.runtime.check_ranks import check_ranks
    from comet.runtime.rank_backends import FAILURES, backend

    if request.ranks not in (None, program.ranks):
        raise ValueError(
            f"--ranks {request.ranks}: the module was compiled for "
            f"{program.ranks} ranks"
        )
    run = backend(request)
    try:
        with _counting(request):
            result = check_ranks(request.module, request.seed, request.epochs, run)
    except FAILURES as error:
        return _failed(error, program.ranks, request)
    facts = _facts(result, program.ranks, request) | _times(program, request)
    facts["epochs"] = request.epochs
    if request.graph:
        facts["replays"] = request.epochs - 1
    return facts


def _failed(error: Exception, ranks: int, request: Request) -> Facts:
    """Return the facts of a run that ended with an error."""
    failure = f"{type(error).__name__}: {error}"
    return {**_facts(None, ranks, request), "failure": failure}


def _facts(result: CheckResult | None, ranks: int, request: Request) -> Facts:
    finite = result is not None and math.isfinite(result.max_error)
    return {
        "ok": result is not None and result.ok,
        "max_error": result.max_error if result is not None and finite else None,
        "tolerance": None if result is None else result.tolerance,
        "ranks": ranks,
        "backend": request.backend,
        "seed": request.seed,
        "seconds": None if result is None else result.seconds,
    }


def failure(module: str, error: Exception) -> str:
    """Say in one sentence where a module failed, and how."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename.endswith(module)]
    place = f"{module}:{lines[-1]}" if lines else module
    first = str(error).strip().splitlines()
    return (
        f"{place} fails with {type(error).__name__}: {first[0] if first else ''}; set "
        "COMET_TRACEBACK=1 to see where"
    )


def as_text(facts: Mapping[str, object]) -> str:
    """Return the facts as a sentence, or the report of the error."""
    where = f"{facts['backend']}, seed {facts['seed']}"
    if facts.get("ranks", 1) != 1:
        where = f"{facts['ranks']} ranks, {where}"
    if "failure" in facts:
        return f"WRONG ({where}): {facts['failure']}"
    verdict = "right" if facts["ok"] else "WRONG"
    error, each = facts["max_error"], " a launch" if "epochs" in facts else ""
    text = (
        f"{verdict}: largest relative error "
        f"{'not finite' if error is None else format(error, '.3g')}, "
        f"tolerance {facts['tolerance']:.3g} ({where}, {facts['seconds']:.2f} s{each})"
    )
    if "microseconds" in facts:
        text += f"; {facts['microseconds']:.2f} us per call"
    return text


def outcome(request: Request) -> tuple[bool, str]:
    """Serve the request; return whether the check passed, and the text to print."""
    if request.targets:
        from comet.runtime.compile_report import compile_report

        merged = request.backend == "gpu"
        return compile_report(
            request.module, request.targets, request.as_json, merge_ranks=merged
        )
    facts = report(request)
    return bool(facts["ok"]), json.dumps(facts) if request.as_json else as_text(facts)


def prints(request: Request) -> bool:
    """Whether this process prints the facts: of several processes only rank 0 does."""
    return request.backend != "distributed" or os.environ.get("RANK", "0") == "0"


def _stop(number: int, frame: FrameType | None) -> None:
    """
    Print the progress and exit, without waiting for the threads of other ranks.

    A signal handler: an exception would be lost if it were raised in a callback.
    """
    print(f"comet-run: stopped at {PROGRESS.text()}", file=sys.stderr, flush=True)
    os._exit(130)


def main() -> int:
    """Serve the request of the parent process; return the exit code."""
    signal.signal(signal.SIGINT, _stop)
    request = request_of(sys.argv[1])
    try:
        ok, text = outcome(request)
    except ValueError as error:
        print(f"comet-run: error: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        # A kernel may fail anywhere: in the compiler, the interpreter, the driver.
        if os.environ.get("COMET_TRACEBACK"):
            traceback.print_exc()
        print(f"comet-run: error: {failure(request.module, error)}", file=sys.stderr)
        return 1
    if prints(request):
        print(text)
    return 0 if ok else 1


if __name__ == "__main__":
    raise SystemExit(main())
