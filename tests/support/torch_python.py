"""A Python with torch imported, for tests that start processes which use torch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from interpreting import SETTINGS
from paths import SUPPORT
from preloaded_tools import started_server

TOOLS = {"comet-opt": "comet.tools.comet_opt", "comet-run": "comet.tools.comet_run"}
"""The tools that stand beside that Python."""


@cache
def torch_python() -> Path:
    """
    Return a program that does what `python` does, and has imported torch already.

    The tools are beside it. What it starts by `sys.executable` has torch as well.
    """
    settings = {**os.environ, **SETTINGS, "TRITON_INTERPRET": "0"}
    folder = started_server("torch_server.py", "comet-torch-", settings)
    python = Path(folder, "python")
    client = f"{sys.executable} -S -E {SUPPORT / 'tool_client.py'} {folder}/socket"
    _write_program(python, f"{client} {python}")
    for tool, module in TOOLS.items():
        _write_program(python.with_name(tool), f"{client} {python} -m {module}")
    return python


def _write_program(path: Path, command: str) -> None:
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o755)


def run_python(
    arguments: Sequence[str | Path],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """
    Run that Python, with more in its environment; whether it fails is not asked.

    Raises `subprocess.TimeoutExpired` after `timeout` seconds.
    """
    return subprocess.run(
        [torch_python(), *map(str, arguments)],
        env={**os.environ, **(environment or {})},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )
