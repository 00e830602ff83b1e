"""Asks a process that compiles what is wrong with the kernels of a module."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from functools import cache
from pathlib import Path

LONGEST = 90.0
"""Seconds that compiling a module may take."""


def fault(path: Path, target: str, whole: bool) -> str:
    """
    Return what is wrong with a kernel that is compiled for a target; empty if nothing.

    Not `whole`, only Triton's front end reads it.
    """
    process = _process()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{path} {target} {'whole' if whole else 'front'}\n")
    process.stdin.flush()
    if select.select([process.stdout], [], [], LONGEST)[0] and (
        line := process.stdout.readline()
    ):
        return line.strip()
    process.kill()
    _process.cache_clear()
    code = process.wait()
    died = code not in (0, -9)
    return f"Triton ends with {code}" if died else f"no answer in {LONGEST:.0f} s"


@cache
def _process() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("fuzz_compile_worker.py"))],
        env={**os.environ, "TRITON_INTERPRET": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
