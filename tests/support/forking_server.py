"""
Serves commands, each in a process forked from this one, which has its imports done.

`tool_client.py SOCKET ARGUMENT ...` hands a command over, with its files, folder and
environment, and exits with its code.
"""

from __future__ import annotations

import os
import socket
import sys
import traceback
from collections.abc import Callable
from select import select
from socketserver import BaseRequestHandler, ForkingMixIn, UnixStreamServer
from threading import Thread

from garbage import look_less_for_garbage

LONGEST = 1 << 20
"""The most bytes of a command."""
ORPHANED = 137
"""The exit code of a command whose client has ended."""


class Command(BaseRequestHandler):
    """One command, in a process of its own: with the client's files and folder."""

    request: socket.socket

    def handle(self) -> None:
        """Run what the client asks for; send it the exit code."""
        text, files, _, _ = socket.recv_fds(self.request, LONGEST, 3)
        folder, count, *fields = os.fsdecode(text).split("\0")
        settings, sys.argv = fields[: int(count)], fields[int(count) :]
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        sys.stdin, sys.stdout = open(0), open(1, "w")
        sys.stderr = open(2, "w", buffering=1)
        os.chdir(folder)
        os.environ.clear()
        for setting in settings:
            name, _, value = setting.partition("=")
            os.environ[name] = value
        Thread(target=self._watch, daemon=True).start()
        assert isinstance(self.server, Server)
        code = exit_code(self.server.command)
        sys.stdout.flush()
        sys.stderr.flush()
        self.request.sendall(bytes([code]))

    def _watch(self) -> None:
        """End with the client, which sends nothing more."""
        if not self.request.recv(1):
            os._exit(ORPHANED)


class Server(ForkingMixIn, UnixStreamServer):
    """Forks a process for each command, until standard input ends."""

    request_queue_size = 64

    def __init__(self, address: str, command: Callable[[], object]) -> None:
        super().__init__(address, Command)
        self.command = command

    def service_actions(self) -> None:
        """Reap the processes that have ended."""
        super().service_actions()
        if select([0], [], [], 0)[0]:
            raise SystemExit


def exit_code(command: Callable[[], object]) -> int:
    """Run a command; return the code that Python would exit with."""
    try:
        code = command()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        return 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    return code if isinstance(code, int) else int(code is not None)


def serve(address: str, command: Callable[[], object]) -> None:
    """Serve commands, which find their arguments in `sys.argv`."""
    look_less_for_garbage()
    with Server(address, command) as server:
        print("ready", flush=True)
        server.serve_forever(poll_interval=0.1)
