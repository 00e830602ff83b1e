"""
Plays a Python that has torch imported: `torch_server.py SOCKET`.

To import torch takes three seconds of processor time, more than most of what tests run
with it. Triton, which decides on import whether it interprets, is left to the command.
"""

from __future__ import annotations

import os
import runpy
import sys
from importlib import import_module
from pathlib import Path

from forking_server import serve


def run_python() -> None:
    """Do what `python ARGUMENT ...` does with the arguments of this process."""
    sys.executable = sys.argv[0]
    _, first, *rest = [each for each in sys.argv if each != "-u"]
    folders = [each for each in os.environ.get("PYTHONPATH", "").split(":") if each]
    sys.path[0:1] = ["", *folders]
    if first == "-c":
        code, *rest = rest
        sys.argv = ["-c", *rest]
        exec(compile(code, "<string>", "exec"), vars(sys.modules["__main__"]))
    elif first == "-m":
        name, *rest = rest
        sys.argv = ["-m", *rest]
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(first).parent.absolute())
        sys.argv = [first, *rest]
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    import_module("torch")
    serve(sys.argv[1], run_python)
