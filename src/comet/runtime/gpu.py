"""One GPU, which all ranks share."""

from __future__ import annotations

from collections.abc import Callable

import torch

from comet.runtime.coresidency import waits_for_itself
from comet.runtime.heap import Allocation
from comet.runtime.ranks import Launch


class Gpu:
    """The current GPU of this process."""

    name = "cuda"

    def __init__(self) -> None:
        self.write_through = ".wt" if torch.version.hip else ""

    def memory(self, size: int) -> torch.Tensor:
        """Return bytes of device memory."""
        return torch.empty(size, dtype=torch.uint8, device=self.name)

    def allocated(self, rank: int, tensor: torch.Tensor, entry: Allocation) -> None:
        """Note nothing."""

    def launch(self, launch: Launch) -> None:
        """Launch on the current stream. Raises `ValueError` for too many programs."""
        start(launch)

    def captured(self, launches: Callable[[], None]) -> Callable[[], None]:
        """Return what replays a graph of the launches."""
        return captured(launches)


def start(launch: Launch) -> None:
    """
    Launch on the current stream of the current GPU.

    Programs that wait for others of their launch are launched cooperatively: the
    driver refuses the launch unless all of them run at the same time.
    Raises `ValueError` where it does.
    """
    kernel = launch.kernel[launch.grid]
    if not waits_for_itself(launch.kernel):
        kernel(*launch.arguments, **launch.keywords)
        return
    try:
        kernel(*launch.arguments, **launch.keywords, launch_cooperative_grid=True)
    except RuntimeError as error:
        if "cooperative" not in str(error).lower():
            raise
        raise ValueError(too_many_programs(launch)) from error


def captured(launches: Callable[[], None]) -> Callable[[], None]:
    """
    Capture launches as a graph; return what replays it.

    Their kernels have to be compiled already, so launch them once before.
    """
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launches()
    return graph.replay


def too_many_programs(launch: Launch) -> str:
    """Say that the programs of a launch cannot wait for each other."""
    name: str = getattr(launch.kernel, "__name__", "the kernel")
    return (
        f"the {launch.grid[0]} programs of {name} wait for each other, and this GPU "
        "does not run as many at once; take larger tiles or fewer ranks"
    )
