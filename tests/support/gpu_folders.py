"""Folders for benchmarks/gpu_run with modules that need no compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from gpu_run.case import MANIFEST, MODULES, Case, Manifest

DOUBLES = """
import torch
from comet.runtime import Program, Tensor

PROGRAM = Program(
    launch=lambda x: {launch},
    reference=lambda x: 2 * x,
    inputs=(Tensor((8,), "float32"),),
    outputs=(Tensor((8,), "float32", rounding=2.0**-23),),
)
"""

FILES: Mapping[str, str] = {
    "right.py": DOUBLES.format(launch="x + x"),
    "wrong.py": DOUBLES.format(launch="x + 1"),
    "large.py": "import torch\n"
    + DOUBLES.format(launch="too_large()")
    + "def too_large(): raise torch.OutOfMemoryError('no room for a tile')\n",
    "faulty.py": DOUBLES.format(launch="x[9]"),
    "hang.py": "import time\ntime.sleep(600)\n",
    "crash.py": "import os\nos._exit(7)\n",
}
"""Modules of one rank that behave as their names say."""


def check(name: str, wave: int, limit: float = 300.0) -> Case:
    """Return a case that compares a module with its reference."""
    case = f"correctness/check/{name}"
    files = {"comet": f"{name}.py"}
    return Case(case, "correctness", "check", wave, limit, name, modules=files)


def write_folder(folder: Path, cases: Sequence[Case]) -> Manifest:
    """Write a folder for a dry run of some cases."""
    (folder / MODULES).mkdir(parents=True)
    for name, text in FILES.items():
        (folder / MODULES / name).write_text(text)
    manifest = Manifest(True, "0", tuple(cases))
    (folder / MANIFEST).write_text(manifest.text())
    return manifest
