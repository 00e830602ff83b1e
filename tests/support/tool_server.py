"""
Runs comet-opt and filecheck for lit, each command in a process forked from this one.

Starting Python and importing xDSL, numpy and the dialects takes longer than most tests.
Passes are not imported here, so that a command still shows which one lacks an import.
`tool_server.py SOCKET` listens there until its standard input ends; `tool_client.py`
hands it a command.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from select import select
from socketserver import BaseRequestHandler, ForkingMixIn, UnixStreamServer

from filecheck.main import main as filecheck

from comet.dialects import get_all_dialects
from comet.tools.comet_opt import main as comet_opt

TOOLS: dict[str, Callable[[], object]] = {
    "comet-opt": comet_opt,
    "filecheck": filecheck,
}
LONGEST = 1 << 20
"""The most bytes of a command."""


class Command(BaseRequestHandler):
    """One command, in a process of its own: with the client's files and folder."""

    request: socket.socket

    def handle(self) -> None:
        """Run what the client asks for; send it the exit code."""
        text, files, _, _ = socket.recv_fds(self.request, LONGEST, 3)
        folder, *sys.argv = text.decode().split("\0")
        for number, file in enumerate(files):
            os.dup2(file, number)
        sys.stdin, sys.stdout = open(0), open(1, "w")
        sys.stderr = open(2, "w", buffering=1)
        os.chdir(folder)
        code = exit_code(TOOLS[sys.argv[0]])
        sys.stdout.flush()
        sys.stderr.flush()
        self.request.sendall(bytes([code]))


class Server(ForkingMixIn, UnixStreamServer):
    """Forks a process for each command, until standard input ends."""

    request_queue_size = 64

    def service_actions(self) -> None:
        """Reap the processes that have ended."""
        super().service_actions()
        if select([0], [], [], 0)[0]:
            raise SystemExit


def exit_code(tool: Callable[[], object]) -> int:
    """Run a tool; return the code that Python would exit with."""
    try:
        code = tool()
    except SystemExit as end:
        code = end.code
    except Exception:
        traceback.print_exc()
        return 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    return code if isinstance(code, int) else int(code is not None)


def main() -> None:
    """Import what every command needs, then serve."""
    import_module("numpy")
    for dialect in get_all_dialects().values():
        dialect()
    gc.freeze()
    with Server(sys.argv[1], Command) as server:
        print("ready", flush=True)
        server.serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    main()
