"""
All ranks on one device: a launch whose programs exchange has those of every rank.

A program finds its rank by `shim.rank_and_program_id`, and its rank's tensors by the
addresses of rank 0's (`shim.symmetric_address`), so all of them are in the heap. Each
launch ends before the next one starts: a barrier of all ranks. A kernel that does not
take the addresses of heaps reaches no other rank, and is launched for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch

from comet.runtime.check_ranks import Epochs, Host, run_epochs
from comet.runtime.heap import ALIGNMENT, Allocation, Heap
from comet.runtime.ranks import KernelCall, Rank, SymmetryError, expect_same_allocations

ROOM = 1 << 54
"""Bytes of a heap that is never full, on a device without memory."""


class Device:
    """The device of all ranks; this one has no memory, and executes nothing."""

    name = "meta"
    """The name in torch."""
    write_through = ""
    """See `Rank`."""

    def memory(self, size: int) -> torch.Tensor:
        """Return `size` bytes, aligned to at least 16."""
        return torch.empty(size, dtype=torch.uint8, device=self.name)

    def allocated(self, rank: int, tensor: torch.Tensor, entry: Allocation) -> None:
        """Handle a new allocation in a rank's heap."""

    def launch(self, launch: KernelCall) -> None:
        """Run a kernel after all earlier ones have ended."""

    def captured(self, launches: Callable[[], None]) -> Callable[[], None]:
        """Return a function that repeats these launches without their host programs."""
        return launches


class VirtualRank(Rank):
    """One of the ranks; its launches are kept until all ranks have launched."""

    def __init__(
        self, rank: int, memory: torch.Tensor, bases: torch.Tensor, device: Device
    ):
        self.rank = rank
        self.world = len(bases)
        self.heap = Heap(memory, partial(device.allocated, rank))
        self.heap_bases = bases
        self.device = device.name
        self.write_through = device.write_through
        self.queued: list[KernelCall] = []

    def programs(self, count: int) -> int:
        """Return `count`: a launch has the programs of all ranks."""
        return count

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """
        Return a tensor of nan, so that a check finds elements that no program stores.
        """
        tensor = self.heap.zeros(shape, dtype)
        return tensor.fill_(math.nan) if dtype.is_floating_point else tensor

    def zeros(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return zeros in the heap, where programs find their rank's copy."""
        return self.heap.zeros(shape, dtype)

    def launch_together(self, *launches: KernelCall) -> None:
        """Queue launches in order: producers come first."""
        self.queued += launches

    def barrier(self) -> None:
        """Do nothing: each launch ends before the next one starts."""

    def write(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        """Copy at once. Raises `ValueError` while launches are queued."""
        self._expect_nothing_queued()
        tensor.copy_(value)

    def read(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copy at once. Raises `ValueError` while launches are queued."""
        self._expect_nothing_queued()
        return tensor.clone()

    def _expect_nothing_queued(self) -> None:
        if self.queued:
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

    def merged_launches(self) -> list[tuple[KernelCall, ...]]:
        """
        Return what each queued launch is for all ranks: one, or one for each rank.

        Raises `SymmetryError` if the ranks' launches differ.
        """
        expect_same_allocations([rank.heap.log for rank in self.ranks])
        queued = [rank.queued for rank in self.ranks]
        if len({len(launches) for launches in queued}) > 1:
            raise SymmetryError("ranks launch different numbers of kernels")
        for rank in self.ranks:
            rank.queued = []
        return [self._of_all(launches) for launches in zip(*queued, strict=True)]

    def _of_all(self, launches: tuple[KernelCall, ...]) -> tuple[KernelCall, ...]:
        """Return one launch for all ranks; if its kernel is local, one for each."""
        expect_same_launches(launches)
        table = self.ranks[0].heap_bases
        exchanges = any(value is table for value in launches[0].arguments)
        return (merged(launches, self._bases),) if exchanges else launches


def merged(launches: Sequence[KernelCall], bases: Sequence[int]) -> KernelCall:
    """
    Return one launch in place of one for each rank, with the arguments of rank 0.

    Raises `SymmetryError` if another rank's arguments are other objects, `ValueError`
    if the kernel does not compute its rank from the program id.
    """
    first = launches[0]
    if len(launches) == 1:
        return first
    expect_same_launches(launches)
    name = _name(first)
    for index, values in enumerate(zip(*(launch.arguments for launch in launches))):
        if not _agree(values, bases):
            raise SymmetryError(
                f"argument {index} of {name} is not the same on every rank; tensors "
                "must be at the same offset of each heap"
            )
    if first.grid != (first.keywords.get("PROGRAMS"),):
        raise ValueError(
            f"{name} cannot work for all ranks in one launch: its grid {first.grid} is "
            "not PROGRAMS, by which `rank_and_program_id` finds the rank of a program"
        )
    (programs,) = first.grid
    grid = (programs * len(launches),)
    return KernelCall(first.kernel, grid, first.arguments, first.keywords)


def expect_same_launches(launches: Sequence[KernelCall]) -> None:
    """Raise `SymmetryError` if ranks launch other kernels, or on other grids."""
    first = launches[0]
    for rank, launch in enumerate(launches):
        if _shape(launch) != _shape(first):
            raise SymmetryError(f"rank {rank} launches {_name(first)} unlike rank 0")


def _name(launch: KernelCall) -> str:
    return getattr(launch.kernel, "__name__", "the kernel")


def _shape(launch: KernelCall) -> tuple[object, ...]:
    """Return all of a launch but the values of its arguments."""
    count = len(launch.arguments)
    return id(launch.kernel), launch.grid, count, dict(launch.keywords)


def _agree(values: Sequence[object], bases: Sequence[int]) -> bool:
    """Whether an argument is equal or symmetric on all ranks, or is the rank."""
    addresses = [v.data_ptr() for v in values if isinstance(v, torch.Tensor)]
    if addresses:
        offsets = {at - base for at, base in zip(addresses, bases, strict=False)}
        same = 1 in (len(set(addresses)), len(offsets))
        return len(addresses) == len(values) and same
    return len(set(values)) == 1 or list(values) == list(range(len(values)))


def heap_bytes_of_all(host: Host) -> int:
    """Return the bytes of a rank's heap if all its tensors are in it."""
    ranks = VirtualRanks(host.program.ranks, ROOM, Device())
    host.session(ranks.ranks[0])
    return max(ranks.ranks[0].heap.used, 1)


class SharedHost:
    """The host programs of all ranks on one device, in lockstep."""

    def __init__(self, device: Device, host: Host):
        self._device = device
        self._ranks = VirtualRanks(host.program.ranks, heap_bytes_of_all(host), device)
        self.sessions = [host.session(rank) for rank in self._ranks.ranks]

    def launches(self) -> list[KernelCall]:
        """Return the kernels of one launch of all ranks. Raises `SymmetryError`."""
        for session in self.sessions:
            session.launch()
        return [call for calls in self._ranks.merged_launches() for call in calls]

    def launch(self) -> None:
        """Launch the program once for all ranks."""
        for launch in self.launches():
            self._device.launch(launch)


def check_on(device: Device, host: Host, *, graph: bool) -> list[Epochs]:
    """
    Run a host program for all ranks; return what each computed.

    `graph`: all launches but the first replay a captured graph.
    Raises `SymmetryError` if ranks do different things.
    """
    shared = SharedHost(device, host)
    captured = device.captured if graph else None
    return run_epochs(shared.sessions, shared.launch, host.epochs, captured)
