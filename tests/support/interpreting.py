"""
Processes that interpret Triton, forked from one that has imported torch.

To import torch takes two seconds of processor time, to fork hardly any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import forkserver, get_context
from multiprocessing.context import ForkServerContext
from pathlib import Path
from threading import Lock
from typing import ParamSpec, TypeVar

import pytest
from garbage import look_less_for_garbage

from comet.runtime.child import Facts, report
from comet.runtime.request import Request

P = ParamSpec("P")
T = TypeVar("T")

IMPORTED = [
    "comet.runtime.rank_backends",
    "numpy.random",
    "triton.experimental.gluon.nvidia.hopper",
]
"""They import torch and Triton, with all that its interpreter imports late."""
SETTINGS = {
    "TRITON_INTERPRET": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""One thread is enough for small tensors."""
STARTING = Lock()
"""The settings are in the environment of this process for a moment."""


@cache
def _context() -> ForkServerContext:
    """Start the process that others are forked from; it ends with this one."""
    context = get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SETTINGS.items():
            patch.setenv(name, value)
        forkserver.ensure_running()
    return context


def process() -> ProcessPoolExecutor:
    """Return an executor of one process that interprets Triton."""
    with STARTING:
        return ProcessPoolExecutor(1, _context(), initializer=look_less_for_garbage)


def interpreted(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """
    Call a function in a new process that interprets Triton; return its result.

    The function is in a module that can be imported; it raises here what it raises
    there.
    """
    with process() as pool:
        return pool.submit(work, *args, **kwargs).result()


def reports(requests: Sequence[Request]) -> list[Facts]:
    """Serve requests, all in one process; return what comet-run says of each."""
    return interpreted(_reports, requests)


def _reports(requests: Sequence[Request]) -> list[Facts]:
    return [report(request) for request in requests]


def write_modules(sources: Mapping[str, str], folder: Path) -> list[Path]:
    """Write Python sources to files named by their keys."""
    paths: list[Path] = []
    for name, source in sources.items():
        path = folder / f"{name}.py"
        path.write_text(source)
        paths.append(path)
    return paths
