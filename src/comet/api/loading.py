"""Imports the Python module that the target `triton` emits."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from comet.runtime.command import has_gpu
from comet.runtime.program import load_module, program_of
from comet.tools.diagnostics import UsageError

INTERPRET = "TRITON_INTERPRET"
"""The variable by which Triton decides, when it is imported, to interpret kernels."""


def loaded(text: str) -> ModuleType:
    """
    Import emitted text from a file, which is deleted when the process ends.

    Raises UsageError if it cannot be imported.
    """
    interpret_without_gpu()
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = Path(_folder().name) / f"emitted_{digest}.py"
    path.write_text(text, encoding="utf-8")
    try:
        module = load_module(str(path))
        program_of(module, str(path))
    except ValueError as error:
        raise UsageError(str(error)) from error
    return module


@cache
def _folder() -> TemporaryDirectory[str]:
    """Return the folder of emitted files, which Triton needs to read its kernels."""
    return TemporaryDirectory(prefix="comet-")


def interpret_without_gpu() -> None:
    """
    Make Triton interpret kernels where there is no GPU.

    Raises UsageError if Triton has already been imported to compile.
    """
    if has_gpu() or os.environ.get(INTERPRET) == "1":
        return
    if "triton" in sys.modules:
        raise UsageError(
            "this machine has no GPU, and triton was imported to compile kernels; set "
            f"{INTERPRET}=1 before triton is imported"
        )
    os.environ[INTERPRET] = "1"
