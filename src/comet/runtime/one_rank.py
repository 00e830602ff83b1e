"""
The only rank of a program, on the device of its tensors.

A module for one rank has a plan where memory outlives a launch: counters, flags and
receive buffers. Its launches go to the current stream of a GPU, as those of functions
do, or to Triton's interpreter, which runs one program after the other.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from comet.runtime.check_ranks import Epochs, Host
from comet.runtime.coresidency import waits_for_itself
from comet.runtime.gpu import Launcher
from comet.runtime.heap import Heap
from comet.runtime.program import Program, RankFunction, RankProgram
from comet.runtime.ranks import KernelCall, Rank


class OneRank(Rank):
    """A rank without peers, and without symmetric memory."""

    def __init__(self, device: str):
        """Launch on `device`: a GPU, or the CPU if Triton interprets."""
        self.rank, self.world, self.device = 0, 1, device
        self.heap = Heap(torch.empty(0, dtype=torch.uint8, device=device))
        self.heap_bases = torch.zeros(1, dtype=torch.int64, device=device)
        on_gpu = device != "cpu"
        self.write_through = ".wt" if on_gpu and torch.version.hip else ""
        self._launch = Launcher().launch if on_gpu else _interpret

    def launch_together(self, *launches: KernelCall) -> None:
        """
        Launch one after another.

        Raises `ValueError` on the CPU if programs of a kernel wait for each other.
        """
        for launch in launches:
            self._launch(launch)

    def barrier(self) -> None:
        """Do nothing: there is no other rank."""

    def write(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        """Copy on the stream."""
        tensor.copy_(value)

    def read(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copy on the stream."""
        return tensor.clone()


def _interpret(launch: KernelCall) -> None:
    if waits_for_itself(launch.kernel):
        name = getattr(launch.kernel, "__name__", "a kernel")
        raise ValueError(
            f"programs of {name} wait for each other, and Triton's interpreter runs "
            "one after the other; use --backend scheduler"
        )
    launch.kernel[launch.grid](*launch.arguments, **launch.keywords)


def run(host: Host) -> list[Epochs]:
    """Run a host program of one rank in Triton's interpreter, without a scheduler."""
    return [host(OneRank("cpu"))]


class PlanFunction:
    """
    The plan of one rank as a function of tensors of one device.

    The first call on a device allocates the memory of the plan, such as counters and
    partial results; results are new tensors in each call. Calls on a device follow each
    other on one stream.
    """

    def __init__(self, plan: Callable[[Rank], RankFunction]) -> None:
        """Make a function without memory on any device yet."""
        self._plan = plan
        self._on: dict[torch.device, RankFunction] = {}

    def allocate(self, device: torch.device) -> RankFunction:
        """
        Return the plan with its memory on a device, which is allocated once.

        Call it before launches are captured: a graph keeps addresses, and its memory
        pool must not have what outlives a call.
        """
        if device not in self._on:
            self._on[device] = self._plan(OneRank(str(device)))
        return self._on[device]

    def __call__(
        self, *arguments: torch.Tensor
    ) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """Launch the kernels on the device of the first argument."""
        return self.allocate(arguments[0].device)(*arguments)


def one_rank(program: Program | RankProgram) -> Program | None:
    """Return a program of one rank with a function, None if it is for several."""
    if isinstance(program, Program):
        return program
    if program.ranks > 1:
        return None
    launch = PlanFunction(program.plan)
    return Program(launch, program.reference, program.inputs, program.outputs)
