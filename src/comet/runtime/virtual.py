"""
All ranks on one device: each launch has the programs of every rank.

Of W ranks, program p works for rank p % W (`shim.rank_and_program_id`), and finds that
rank's tensors by the place of rank 0's (`shim.symmetric_address`): so all of them lie
in the heap. A launch ends before the next one starts, which is a barrier of all ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import torch

from comet.runtime.check_ranks import Epochs, Host, played
from comet.runtime.heap import ALIGNMENT, Allocation, Heap
from comet.runtime.ranks import KernelCall, Rank, SymmetryError, expect_same_allocations

ROOM = 1 << 54
"""Bytes of a heap that takes everything, on a device without memory."""


class Device(Protocol):
    """What all ranks share."""

    name: str
    """As torch calls it."""
    write_through: str
    """See `Rank`."""

    def memory(self, size: int) -> torch.Tensor:
        """Return so many bytes, aligned to 16 at least."""
        ...

    def allocated(self, rank: int, tensor: torch.Tensor, entry: Allocation) -> None:
        """Note what a rank has allocated in its heap."""
        ...

    def launch(self, launch: KernelCall) -> None:
        """Run a kernel once all before it have ended."""
        ...

    def captured(self, launches: Callable[[], None]) -> Callable[[], None]:
        """Return what repeats these launches, with nothing of their host programs."""
        ...


class NoDevice:
    """A device without memory, on which nothing runs: shows what a plan asks for."""

    name = "meta"
    write_through = ""

    def memory(self, size: int) -> torch.Tensor:
        """Return bytes that cannot be read."""
        return torch.empty(size, dtype=torch.uint8, device="meta")

    def allocated(self, rank: int, tensor: torch.Tensor, entry: Allocation) -> None:
        """Note nothing."""

    def launch(self, launch: KernelCall) -> None:
        """Do nothing."""

    def captured(self, launches: Callable[[], None]) -> Callable[[], None]:
        """Return what does nothing, too."""
        return launches


class VirtualRank(Rank):
    """One of the ranks; what it launches waits until all have said what they launch."""

    def __init__(
        self, rank: int, memory: torch.Tensor, bases: torch.Tensor, device: Device
    ):
        self.rank = rank
        self.world = len(bases)
        self.heap = Heap(memory, partial(device.allocated, rank))
        self.heap_bases = bases
        self.device = device.name
        self.write_through = device.write_through
        self.asked: list[KernelCall] = []

    def programs(self, count: int) -> int:
        """Return `count`: a launch has the programs of all ranks."""
        return count

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return nan: what nobody computed is seen in the results."""
        tensor = self.heap.zeros(shape, dtype)
        return tensor.fill_(math.nan) if dtype.is_floating_point else tensor

    def zeros(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return zeros in the heap, where a program finds those of its rank."""
        return self.heap.zeros(shape, dtype)

    def launch_together(self, *launches: KernelCall) -> None:
        """Ask for launches one after another: producers come first."""
        self.asked += launches

    def barrier(self) -> None:
        """Do nothing: launches are one after another anyhow."""

    def write(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        """Copy at once. Raises `ValueError` where launches are still to come."""
        self._expect_nothing_asked()
        tensor.copy_(value)

    def read(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copy at once. Raises `ValueError` where launches are still to come."""
        self._expect_nothing_asked()
        return tensor.clone()

    def _expect_nothing_asked(self) -> None:
        if self.asked:
            raise ValueError(
                f"rank {self.rank} reads or writes what its launches may touch, before "
                "all ranks have launched"
            )


class VirtualRanks:
    """The ranks of one device."""

    def __init__(self, world: int, heap_bytes: int, device: Device):
        size = -(-heap_bytes // ALIGNMENT) * ALIGNMENT
        heaps = device.memory(world * size).view(world, size)
        self._bases = [heap.data_ptr() for heap in heaps]
        bases = torch.tensor(self._bases, dtype=torch.int64, device=device.name)
        self.ranks = [
            VirtualRank(rank, heap, bases, device) for rank, heap in enumerate(heaps)
        ]

    def taken(self) -> list[KernelCall]:
        """
        Return the launches that the ranks asked for, each for all of them.

        Raises `SymmetryError` where they asked for different things.
        """
        expect_same_allocations([rank.heap.log for rank in self.ranks])
        asked = [rank.asked for rank in self.ranks]
        if len({len(launches) for launches in asked}) > 1:
            raise SymmetryError("ranks launch different numbers of kernels")
        for rank in self.ranks:
            rank.asked = []
        return [merged(launches, self._bases) for launches in zip(*asked, strict=True)]


def merged(launches: Sequence[KernelCall], bases: Sequence[int]) -> KernelCall:
    """
    Return one launch in place of one for each rank, with the arguments of rank 0.

    Raises `SymmetryError` where these name other things on another rank, `ValueError`
    where the kernel does not take its rank from the number of the program.
    """
    first = launches[0]
    name: str = getattr(first.kernel, "__name__", "the kernel")
    for rank, other in enumerate(launches):
        if _shape(other) != _shape(first):
            raise SymmetryError(f"rank {rank} launches {name} unlike rank 0")
    for index, values in enumerate(zip(*(each.arguments for each in launches))):
        if not _agree(values, bases):
            raise SymmetryError(
                f"argument {index} of {name} is not the same on every rank; tensors "
                "have to lie at the same place of each heap"
            )
    if first.grid != (first.keywords.get("PROGRAMS"),):
        raise ValueError(
            f"{name} cannot work for all ranks in one launch: its grid {first.grid} is "
            "not PROGRAMS, by which `place` finds the rank of a program"
        )
    (programs,) = first.grid
    grid = (programs * len(launches),)
    return KernelCall(first.kernel, grid, first.arguments, first.keywords)


def _shape(launch: KernelCall) -> tuple[object, ...]:
    """Return all of a launch but the values of its arguments."""
    count = len(launch.arguments)
    return id(launch.kernel), launch.grid, count, dict(launch.keywords)


def _agree(values: Sequence[object], bases: Sequence[int]) -> bool:
    """Whether an argument means the same on all ranks: shared, own, or the rank."""
    places = [v.data_ptr() for v in values if isinstance(v, torch.Tensor)]
    if places:
        offsets = {place - base for place, base in zip(places, bases, strict=False)}
        return len(places) == len(values) and 1 in (len(set(places)), len(offsets))
    return len(set(values)) == 1 or list(values) == list(range(len(values)))


def heap_bytes_of_all(host: Host) -> int:
    """Return the bytes of a rank's heap where all its tensors lie there."""
    ranks = VirtualRanks(host.program.ranks, ROOM, NoDevice())
    host.session(ranks.ranks[0])
    return max(ranks.ranks[0].heap.used, 1)


class SharedHost:
    """The host programs of all ranks on one device, in step."""

    def __init__(self, device: Device, host: Host):
        self._device = device
        self._ranks = VirtualRanks(host.program.ranks, heap_bytes_of_all(host), device)
        self.sessions = [host.session(rank) for rank in self._ranks.ranks]

    def launches(self) -> list[KernelCall]:
        """Return what one launch of the program is made of; `SymmetryError`: above."""
        for session in self.sessions:
            session.launch()
        return self._ranks.taken()

    def launch(self) -> None:
        """Launch the program once for all ranks."""
        for launch in self.launches():
            self._device.launch(launch)


def check_on(device: Device, host: Host, *, graph: bool = False) -> list[Epochs]:
    """
    Run a host program for all ranks; return what each computed.

    `graph`: all launches but the first are repeated from a captured graph.
    Raises `SymmetryError` where ranks do different things.
    """
    shared = SharedHost(device, host)
    captured = device.captured if graph else None
    return played(shared.sessions, shared.launch, host.epochs, captured)
