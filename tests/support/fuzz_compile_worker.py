"""
The process of `make fuzz` that compiles kernels; it must not interpret.

For each line of the input, the path of a module, a target and `front` or `whole`, it
prints one: what is wrong with a kernel, or nothing. Triton's front end alone is quick,
and checks what its interpreter does not, such as the types of loops.
"""

# Triton has no type stubs.
# pyright: basic, reportMissingTypeStubs=false

import os
import sys
from collections.abc import Iterator
from typing import Any

from triton._C.libtriton import ir
from triton.compiler.compiler import make_backend

from comet.runtime.compile_check import (
    TARGETS,
    RequestedLaunch,
    all_compiled,
    recorded_launches,
    source_of,
)


def read_by_front_end(launch: RequestedLaunch, target: str) -> None:
    """Make Triton's IR of a kernel; raises what Triton raises."""
    source = source_of(launch, target)
    backend: Any = make_backend(TARGETS[target])
    options = backend.parse_options(dict(launch.options))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    functions = backend.get_codegen_implementation(options)
    source.make_ir(target, options, functions, backend.get_module_map(), context)


def faults(path: str, target: str, how: str) -> Iterator[str]:
    """Yield what is wrong with the kernels of a module; spills last."""
    if how == "front":
        for launch in recorded_launches(path):
            read_by_front_end(launch, target)
        return
    kernels = list(all_compiled(path, [target]))
    yield from (f"{k.kernel}: {fault}" for k in kernels for fault in k.faults)
    yield from (f"{k.kernel}: {k.spills} bytes spilled" for k in kernels if k.spills)


def answer(path: str, target: str, how: str) -> str:
    """Return the first fault in one line."""
    try:
        return next(faults(path, target, how), "")
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"{type(error).__name__}: {' '.join([*lines[:1], *lines[-1:]])}"


def main() -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what compilers print is no answer
    for line in sys.stdin:
        print(answer(*line.split()), file=answers, flush=True)


if __name__ == "__main__":
    main()
