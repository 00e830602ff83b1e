"""
Runs comet-opt and filecheck for lit, each pipe in a process forked from this one.

Starting Python and importing xDSL, numpy, the dialects and the passes takes longer than
most tests.
`tool_server.py SOCKET` listens there until its standard input ends; `tool_client.py`
hands it a command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from tempfile import TemporaryFile

from filecheck.main import main as filecheck
from forking_server import exit_code, serve
from paths import SAMPLES
from tool_run import comet_opt as compiled

from comet.codegen import get_all_targets
from comet.dialects import get_all_dialects
from comet.passes import get_all_passes
from comet.passes.search import ahead
from comet.tools.comet_opt import main as comet_opt

PIPES = ("|", "|&")
PIPELINES = {
    "h200x1": "triton-distributed{strategy=full split=none}",
    "edge": "comet-accelerator{strategy=full dim=N stream=false}",
}
"""A pipeline for each kind of machine."""

TOOLS: dict[str, Callable[[], object]] = {
    "comet-opt": comet_opt,
    "filecheck": filecheck,
}


def tool_code() -> int:
    """Run the tool in `sys.argv`; return its code, or after `not` whether it passed."""
    fails = sys.argv[0] == "not"
    sys.argv = sys.argv[fails:]
    code = exit_code(TOOLS[sys.argv[0]])
    return int(code == 0) if fails else code


def run_tools() -> object:
    """
    Run the tools that the command names, each on what the one before it printed.

    An argument `|` ends the arguments of a tool; `|&` hands over its errors as well.
    A tool after `not` has to fail. The code is that of the last tool that did not do
    what it has to.
    """
    codes: list[int] = []
    words = sys.argv
    out, errors = os.dup(1), os.dup(2)
    while words:
        end = next((i for i, word in enumerate(words) if word in PIPES), len(words))
        sys.argv, pipe, words = words[:end], words[end : end + 1], words[end + 1 :]
        with TemporaryFile() as printed:
            os.dup2(printed.fileno() if pipe else out, 1)
            os.dup2(printed.fileno() if pipe == ["|&"] else errors, 2)
            codes.append(tool_code())
            sys.stdout.flush()
            sys.stderr.flush()
            if pipe:
                sys.stdin.close()
                os.dup2(printed.fileno(), 0)
                os.lseek(0, 0, os.SEEK_SET)
                sys.stdin = open(0)
    os.dup2(out, 1)
    os.dup2(errors, 2)
    return next(filter(None, reversed(codes)), 0)


def compile_something() -> None:
    """Import what passes import late, and fill the tables of op definitions."""
    text = (SAMPLES / "gemm_softmax.mlir").read_text()
    for machine, pipeline in PIPELINES.items():
        path = SAMPLES / "hardware" / f"{machine}.yaml"
        done = compiled(text, f'attach-hardware{{path="{path}"}},{pipeline}')
        assert done.code == 0, done.err


def main() -> None:
    """Import what every command needs, then serve."""
    import_module("numpy")
    ahead.MOST_PROCESSES = 1  # Tests run at the same time, and fill the cores.
    for imported in (get_all_dialects, get_all_passes, get_all_targets):
        for each in imported().values():
            each()
    compile_something()
    serve(sys.argv[1], run_tools)


if __name__ == "__main__":
    main()
