"""The child process of `comet-run`: MODULE BACKEND SEED [json] [bench]."""

import json
import math
import os
import sys
import traceback

from comet.runtime.program import load_module, program_of


def expect_gpu() -> None:
    """Raise `ValueError` where torch cannot use the GPU."""
    import torch

    if not torch.cuda.is_available():
        raise ValueError(
            "this torch cannot use the GPU; install one that can, or run with "
            "--backend interpreter"
        )


def report(module: str, backend: str, seed: int, bench: bool) -> dict[str, object]:
    """Check the module, time it where asked, and return what is to be printed."""
    program = program_of(load_module(module), module)
    from comet.runtime.check import check

    if backend == "gpu":
        expect_gpu()

    device = "cpu" if backend == "interpreter" else "cuda"
    result = check(program, seed, device)
    finite = math.isfinite(result.max_error)
    facts: dict[str, object] = {
        "ok": result.ok,
        "max_error": result.max_error if finite else None,
        "tolerance": result.tolerance,
        "ranks": 1,
        "backend": backend,
        "seed": seed,
        "seconds": result.seconds,
    }
    if bench:
        from comet.runtime.bench import bench_microseconds

        facts["microseconds"] = bench_microseconds(program, seed)
    return facts


def failure(module: str, error: Exception) -> str:
    """Say in one sentence where in the module something failed, and how."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename.endswith(module)]
    place = f"{module}:{lines[-1]}" if lines else module
    first = str(error).strip().splitlines()
    return (
        f"{place} fails with {type(error).__name__}: {first[0] if first else ''}; set "
        "COMET_TRACEBACK=1 to see where"
    )


def as_text(facts: dict[str, object]) -> str:
    """Return the facts as a sentence for people."""
    verdict = "right" if facts["ok"] else "WRONG"
    error = facts["max_error"]
    text = (
        f"{verdict}: largest relative error "
        f"{'not finite' if error is None else format(error, '.3g')}, "
        f"tolerance {facts['tolerance']:.3g} "
        f"({facts['backend']}, seed {facts['seed']}, {facts['seconds']:.2f} s)"
    )
    if "microseconds" in facts:
        text += f"; {facts['microseconds']:.2f} us per call"
    return text


def main() -> int:
    """Do what the parent process asks for; return the exit code."""
    module, backend, seed, *flags = sys.argv[1:]
    try:
        facts = report(module, backend, int(seed), "bench" in flags)
    except ValueError as error:
        print(f"comet-run: error: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        # A kernel may fail in any way: in the compiler, the interpreter, the driver.
        if os.environ.get("COMET_TRACEBACK"):
            traceback.print_exc()
        print(f"comet-run: error: {failure(module, error)}", file=sys.stderr)
        return 1
    print(json.dumps(facts) if "json" in flags else as_text(facts))
    return 0 if facts["ok"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
