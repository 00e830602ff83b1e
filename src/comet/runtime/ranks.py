"""What the host program of one rank may do, on every back end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch

from comet.runtime.heap import Allocation, Heap

T = TypeVar("T")


class Kernel(Protocol):
    """A function under `triton.jit`."""

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., object]:
        """Return a function that launches the kernel on a grid."""
        ...


@dataclass(frozen=True)
class KernelCall:
    """A kernel, its grid and its arguments: `kernel[grid](*arguments, **keywords)`."""

    kernel: Kernel
    grid: tuple[int, ...]
    arguments: tuple[object, ...]
    keywords: Mapping[str, object]


def launch(
    kernel: Kernel, grid: tuple[int, ...], *arguments: object, **keywords: object
) -> KernelCall:
    """Describe a launch, for `Rank.launch_together`."""
    return KernelCall(kernel, grid, arguments, keywords)


class SymmetryError(Exception):
    """Ranks did not allocate the same things in the same order."""


def heaps_differ(rank: int, other: int) -> SymmetryError:
    """Return the error of two ranks whose heaps have different hashes."""
    return SymmetryError(
        f"the heaps of ranks {rank} and {other} differ; every rank has to allocate the "
        "same, in the same order"
    )


def expect_same_allocations(logs: Sequence[Sequence[Allocation]]) -> None:
    """Raise `SymmetryError` if a rank's allocations differ from those of rank 0."""
    for rank, log in enumerate(logs):
        for mine, theirs in zip(logs[0], log, strict=False):
            if mine != theirs:
                raise SymmetryError(
                    f"the heaps differ: rank 0 allocated {mine}, rank {rank} {theirs}"
                )
        if len(log) != len(logs[0]):
            raise SymmetryError(
                f"the heaps differ: rank 0 allocated {len(logs[0])} tensors, "
                f"rank {rank} {len(log)}; every rank has to allocate the same"
            )


class Rank(ABC):
    """
    One rank, as its host program sees it; every rank runs the same host program.

    Launches, reads and writes of one rank take effect in program order.
    """

    rank: int
    world: int
    """The number of ranks."""
    heap: Heap
    heap_bases: torch.Tensor
    """The address of each rank's heap, as seen from this rank: int64[world]."""
    device: str = "cpu"
    """The torch device of this rank's tensors."""
    write_through: str = ""
    """The cache modifier of stores that a signal publishes: ".wt" on AMD GPUs."""

    def programs(self, count: int) -> int:
        """
        Return the argument PROGRAMS of a kernel with `count` programs per rank.

        0: every rank launches its own kernel.
        """
        return 0

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return a new tensor that no other rank sees, with undefined contents."""
        return torch.empty(shape, dtype=dtype, device=self.device)

    def zeros(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return a new tensor of zeros that no other rank sees."""
        return torch.zeros(shape, dtype=dtype, device=self.device)

    def launch(
        self,
        kernel: Kernel,
        grid: tuple[int, ...],
        *arguments: object,
        **keywords: object,
    ) -> None:
        """Launch a kernel; later work on this rank sees its results."""
        self.launch_together(KernelCall(kernel, grid, arguments, keywords))

    @abstractmethod
    def launch_together(self, *launches: KernelCall) -> None:
        """
        Launch kernels that may run at the same time, and wait for each other's flags.

        If not all programs fit, they start in order: producers come first.
        """

    @abstractmethod
    def barrier(self) -> None:
        """
        Wait for all ranks; what comes after sees all earlier work of every rank.

        Raises `SymmetryError` if the heaps do not have the same allocations.
        """

    @abstractmethod
    def write(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        """Copy a value into a tensor of this rank."""

    @abstractmethod
    def read(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy of a tensor of this rank."""
