"""The report of `comet-run --compile`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from comet.runtime.compile_check import Compiled, all_compiled


def compile_report(
    module: str, targets: Sequence[str], as_json: bool, *, merge_ranks: bool
) -> tuple[bool, str]:
    """
    Compile a module; return whether no kernel has faults, and the text to print.

    `merge_ranks`: see `compile_check.planned_launches`.
    """
    kernels = list(all_compiled(module, targets, merge_ranks=merge_ranks))
    ok = not any(kernel.faults for kernel in kernels)
    if as_json:
        facts = {"ok": ok, "kernels": [asdict(kernel) for kernel in kernels]}
        return ok, json.dumps(facts)
    return ok, text_of(kernels)


def text_of(kernels: Iterable[Compiled]) -> str:
    """Return the report for people: some lines for each kernel."""
    return "\n".join(line for kernel in kernels for line in _lines(kernel))


def _remote(kernel: Compiled) -> str:
    """Return what to say of loads from other thread blocks, if there are any."""
    if not kernel.remote:
        return ""
    return f", {kernel.remote} loads from other thread blocks of a cluster"


def _lines(kernel: Compiled) -> list[str]:
    verdict = "WRONG" if kernel.faults else "right"
    return [
        f"{verdict}: {kernel.kernel} on {kernel.target}: {kernel.registers} registers, "
        f"{kernel.spills} bytes spilled, {kernel.shared} bytes of shared memory, "
        f"{kernel.matrix} matrix instructions, {kernel.bulk} copies by descriptors"
        f"{_remote(kernel)}; "
        f"{kernel.programs} programs, of which {kernel.resident} fit at a time",
        *(f"  fault: {fault}" for fault in kernel.faults),
        *(f"  slow: {path}" for path in kernel.slow),
    ]
