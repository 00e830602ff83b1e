"""Compiles modules for the GPU at hand before anything is timed."""

# Triton has no type stubs, and its kernels no types.
# pyright: basic, reportMissingTypeStubs=false

from __future__ import annotations

from pathlib import Path
from typing import Any

from comet.runtime.compile_check import planned_launches
from comet.runtime.coresidency import waits_for_itself
from comet.runtime.gpu import COOPERATIVE


def compiled_launches(path: Path) -> int:
    """
    Compile what a module launches on one GPU, all ranks together, into Triton's cache.

    Returns the number of launches. Other processes then find the kernels in the cache.
    """
    launches = planned_launches(str(path), merge_ranks=True)
    for launch in launches:
        kernel: Any = launch.kernel
        together = COOPERATIVE if waits_for_itself(kernel) else {}
        options = {**launch.keywords, **together}
        kernel.warmup(*launch.arguments, grid=launch.grid, **options)
    return len(launches)
