"""Emitted modules for several ranks on the scheduler: many of them in one child."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Literal, TypeAlias

from semantics import comet_context, run_passes
from triton_modules import write_modules
from xdsl.dialects.builtin import ModuleOp

from comet.codegen.triton import TritonTarget

EPOCHS = 3
"""Launches of a program, so that a slot is used twice."""

RUN_MANY = """
import json, sys
from comet.runtime.child import report
from comet.runtime.request import Request

def outcome(path, seed):
    resident = (None, 1)[seed % 2]
    request = Request(path, "scheduler", seed, resident=resident, epochs=EPOCHS)
    facts = report(request)
    failure = facts.get("failure", "" if facts["ok"] else "wrong result")
    return failure.partition(":")[0]

seeds = range(int(sys.argv[1]))
for path in sys.argv[2:]:
    found = (outcome(path, seed) for seed in seeds)
    print(json.dumps(next(filter(None, found), "right")))
"""

Outcome: TypeAlias = Literal[
    "right", "wrong result", "RaceError", "DeadlockError", "ProgramError"
]
"""What became of a program; the first failure of any seed."""


def emitted(module: ModuleOp) -> str:
    """Write lowered channels as a Triton module; nothing asks if they are right."""
    output = StringIO()
    lowered = run_passes(module, "lower-to-triton")
    TritonTarget().emit(comet_context(), lowered, output)
    return output.getvalue()


def outcomes(
    sources: Mapping[str, str], folder: Path, seeds: int = 2
) -> dict[str, Outcome]:
    """
    Run modules, every other time with one program of a rank after another.

    `folder` may hold Python modules that they import.
    """
    paths = write_modules(sources, folder)
    environment = dict(os.environ, TRITON_INTERPRET="1", PYTHONPATH=str(folder))
    script = RUN_MANY.replace("EPOCHS", str(EPOCHS))
    command = [sys.executable, "-c", script, str(seeds), *map(str, paths)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return dict(zip(sources, found, strict=True))
