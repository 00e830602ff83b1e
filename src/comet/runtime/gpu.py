"""One GPU that runs all ranks."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from comet.runtime.coresidency import waits_for_itself
from comet.runtime.ranks import KernelCall
from comet.runtime.virtual import Device

COOPERATIVE = {"launch_cooperative_grid": True}
"""Triton's option for a launch whose programs all run at the same time."""


class Launcher:
    """
    Launches on the current stream of the current GPU.

    Programs that wait for others of their launch are launched cooperatively, if the
    driver can run all of them at the same time. Otherwise they start in order, and
    producers come first. A launch that asks for it itself never starts in order.
    """

    def __init__(self) -> None:
        self._cooperative: dict[tuple[int, tuple[int, ...]], bool] = {}
        self.in_order: list[str] = []
        """Names of kernels with too many programs to run all at the same time."""

    def launch(self, launch: KernelCall) -> None:
        """Run a kernel after all earlier ones have ended."""
        start, key = launch.kernel[launch.grid], (id(launch.kernel), launch.grid)
        if launch.keywords.keys() & COOPERATIVE:
            _launch_cooperative(launch)
            return
        if key not in self._cooperative:
            self._cooperative[key] = waits_for_itself(launch.kernel)
        if self._cooperative[key]:
            try:
                start(*launch.arguments, **launch.keywords, **COOPERATIVE)
                return
            except RuntimeError as error:
                if "cooperative" not in str(error).lower():
                    raise
                self._cooperative[key] = False
                self.in_order.append(getattr(launch.kernel, "__name__", "a kernel"))
        start(*launch.arguments, **launch.keywords)


def _launch_cooperative(launch: KernelCall) -> None:
    """
    Run a kernel whose programs all have to run at the same time.

    Raises `ValueError` if the GPU runs fewer.
    """
    try:
        launch.kernel[launch.grid](*launch.arguments, **launch.keywords)
    except RuntimeError as error:
        if "cooperative" not in str(error).lower():
            raise
        name = getattr(launch.kernel, "__name__", "a kernel")
        raise ValueError(
            f"the {math.prod(launch.grid)} programs of {name} wait for each other, and "
            "this GPU does not run so many at the same time; compile with its own "
            "hardware file, or with ctas=1"
        ) from error


class Gpu(Launcher, Device):
    """The current GPU of this process, for all ranks."""

    name = "cuda"

    def __init__(self) -> None:
        super().__init__()
        self.write_through = ".wt" if torch.version.hip else ""

    def captured(self, launches: Callable[[], None]) -> Callable[[], None]:
        """Return a function that replays a graph of the launches."""
        return captured(launches)


def captured(launches: Callable[[], None]) -> Callable[[], None]:
    """
    Capture launches as a graph; return a function that replays it.

    The kernels must be compiled, so launch them once before.
    """
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launches()
    return graph.replay
