"""
Runs comet-opt and filecheck for lit, each command in a process forked from this one.

Starting Python and importing xDSL, numpy, the dialects and the passes takes longer than
most tests.
`tool_server.py SOCKET` listens there until its standard input ends; `tool_client.py`
hands it a command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

from filecheck.main import main as filecheck
from forking_server import serve

from comet.codegen import get_all_targets
from comet.dialects import get_all_dialects
from comet.passes import get_all_passes
from comet.passes.search import ahead
from comet.tools.comet_opt import main as comet_opt

TOOLS: dict[str, Callable[[], object]] = {
    "comet-opt": comet_opt,
    "filecheck": filecheck,
}


def run_tool() -> object:
    """Run the tool that the command names."""
    return TOOLS[sys.argv[0]]()


def main() -> None:
    """Import what every command needs, then serve."""
    import_module("numpy")
    ahead.MOST_PROCESSES = 1  # Tests run at the same time, and fill the cores.
    for imported in (get_all_dialects, get_all_passes, get_all_targets):
        for each in imported().values():
            each()
    serve(sys.argv[1], run_tool)


if __name__ == "__main__":
    main()
