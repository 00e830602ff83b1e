"""A process that runs comet-opt and filecheck: quicker than to start one each time."""

from __future__ import annotations

import atexit
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

SUPPORT = Path(__file__).parent


@cache
def preloaded_tools() -> list[str]:
    """Start the process that commands are forked from; return how to call one."""
    folder = started_server("tool_server.py", "comet-tools-")
    client = str(SUPPORT / "tool_client.py")
    return [sys.executable, "-S", "-E", client, f"{folder}/socket"]


def started_server(
    script: str, prefix: str, env: Mapping[str, str] | None = None
) -> str:
    """
    Start a script that listens at `socket` in a new folder; return the folder.

    It ends, and the folder with it, when this process does.
    """
    folder = mkdtemp(prefix=prefix)
    server = subprocess.Popen(
        [sys.executable, str(SUPPORT / script), f"{folder}/socket"],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    server.stdout.readline()
    # Not TemporaryDirectory: processes that lit forks forget what ends with this one,
    # since Python 3.13, and would remove the folder with their copy of the object.
    atexit.register(rmtree, folder)
    atexit.register(server.communicate)
    return folder
