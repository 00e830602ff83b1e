"""A process that runs comet-opt and filecheck: quicker than to start one each time."""

from __future__ import annotations

import atexit
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

SUPPORT = Path(__file__).parent


@cache
def preloaded_tools() -> list[str]:
    """Start the process that commands are forked from; return how to call one."""
    folder = TemporaryDirectory(prefix="comet-tools-")
    address = f"{folder.name}/socket"
    server = subprocess.Popen(
        [sys.executable, str(SUPPORT / "tool_server.py"), address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    server.stdout.readline()
    atexit.register(folder.cleanup)
    atexit.register(server.communicate)
    return [sys.executable, "-S", "-E", str(SUPPORT / "tool_client.py"), address]
