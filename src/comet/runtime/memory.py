"""Which tensor an address belongs to, and what a kernel does to it."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

    Addresses = np.ndarray[tuple[int], np.dtype[np.uint64]]


class Kind(Enum):
    """The kind of an access; a poll is an atomic that writes nothing."""

    __hash__ = object.__hash__  # members are unique: their names need no hashing

    READ = "read"
    WRITE = "write"
    ATOMIC_READ = "atomic read"
    ATOMIC_WRITE = "atomic write"

    @property
    def atomic(self) -> bool:
        """Whether the access is one atomic operation for each element."""
        return self in (Kind.ATOMIC_READ, Kind.ATOMIC_WRITE)

    @property
    def writes(self) -> bool:
        """Whether memory may be changed."""
        return self in (Kind.WRITE, Kind.ATOMIC_WRITE)


class SyncScope(Enum):
    """Which programs an atomic synchronizes: of its block, of its rank, or all."""

    CTA = "cta"
    GPU = "gpu"
    SYSTEM = "sys"


@dataclass(frozen=True)
class Access:
    """One memory operation of a program: the elements that its mask admits."""

    kind: Kind
    addresses: Addresses
    """The address of every element, in bytes."""
    width: int
    """Bytes of an element."""
    acquire: bool = False
    release: bool = False
    scope: SyncScope = SyncScope.SYSTEM
    left: int | None = None
    """The value that a release stored to one flag, if it is known."""
    awaited: int | None = None
    """The value that an acquire waited for, if known; the flag may be higher now."""

    @property
    def low(self) -> int:
        """The lowest address; there is at least one."""
        where = self.addresses
        return int(where[0] if where.size == 1 else where.min())

    @property
    def end(self) -> int:
        """The first address after the highest element; there is at least one."""
        where = self.addresses
        return int(where[0] if where.size == 1 else where.max()) + self.width


@dataclass(frozen=True, slots=True)
class Operation:
    """A memory operation, for reports."""

    rank: int
    program: str
    """The kernel and the index of the program in its grid, or the host."""
    location: str
    """File and line."""

    def __str__(self) -> str:
        """Return the operation in a phrase."""
        return f"rank {self.rank}, {self.program}, {self.location}"


@dataclass(frozen=True, eq=False)
class Region:
    """An allocation: in a rank's symmetric heap, or a tensor of one rank."""

    start: int
    size: int
    """Bytes."""
    itemsize: int
    """Bytes of an element: accesses are recorded by element."""
    rank: int
    name: str
    symmetric: bool = False
    """Whether other ranks may access it."""
    owner: object = field(default=None, repr=False)
    """Keeps the memory from being freed and reused."""

    @property
    def end(self) -> int:
        """The first address after the region."""
        return self.start + self.size

    def element(self, address: int) -> str:
        """Name one element, for reports."""
        return f"{self.name}[{(address - self.start) // self.itemsize}]"


class OutOfBoundsError(Exception):
    """A kernel accessed memory outside of all its tensors."""


class MemoryMap:
    """The regions of all ranks, found by address."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._regions: list[Region] = []
        self._heaps: list[tuple[int, range]] = []

    def add_heap(self, rank: int, start: int, size: int) -> None:
        """Register the range of a heap, before anything is allocated in it."""
        self._heaps.append((rank, range(start, start + size)))

    def add(self, region: Region) -> None:
        """Register a region; regions that it overlaps are removed."""
        while (old := self._overlapping(region)) is not None:
            self._remove(old)
        index = bisect.bisect(self._starts, region.start)
        self._starts.insert(index, region.start)
        self._regions.insert(index, region)

    def add_tensor(self, tensor: torch.Tensor, rank: int, name: str) -> None:
        """Register the memory of a rank's own tensor, unless it is known."""
        storage = tensor.untyped_storage()
        start, size = storage.data_ptr(), storage.nbytes()
        if size and self.find(tensor.data_ptr()) is None:
            itemsize = tensor.element_size()
            self.add(Region(start, size, itemsize, rank, name, owner=storage))

    def find(self, address: int) -> Region | None:
        """Return the region that contains an address."""
        index = bisect.bisect(self._starts, address) - 1
        if index < 0 or address >= self._regions[index].end:
            return None
        return self._regions[index]

    def split(self, access: Access) -> Iterator[tuple[Region, Access]]:
        """
        Yield the parts of an access by the region that contains them.

        Raises `OutOfBoundsError` if no region contains an element.
        """
        rest = access
        while rest.addresses.size:
            low = rest.low
            region = self.find(low)
            if region is None:
                raise OutOfBoundsError(f"address {low:#x} is {self._nowhere(low)}")
            if rest.end <= region.end:
                yield region, rest
                return
            if low + rest.width > region.end:
                raise OutOfBoundsError(f"it ends after {region.name}")
            last = np.uint64(region.end - rest.width)
            inside = rest.addresses <= last
            yield region, replace(rest, addresses=rest.addresses[inside])
            rest = replace(rest, addresses=rest.addresses[~inside])

    def _nowhere(self, address: int) -> str:
        for rank, heap in self._heaps:
            if address in heap:
                return (
                    f"at offset {address - heap.start} in the heap of rank {rank}, "
                    "where nothing is allocated; is there a barrier after allocations?"
                )
        return "in no tensor that is known"

    def _overlapping(self, region: Region) -> Region | None:
        index = bisect.bisect_left(self._starts, region.end) - 1
        if index >= 0 and self._regions[index].end > region.start:
            return self._regions[index]
        return None

    def _remove(self, region: Region) -> None:
        index = self._regions.index(region)
        del self._starts[index], self._regions[index]


def addresses_of(tensor: torch.Tensor) -> Addresses:
    """Return the address of every element of a tensor."""
    offsets = np.zeros((), dtype=np.int64)
    strides: Sequence[int] = tensor.stride()
    for extent, stride in zip(tensor.shape, strides, strict=True):
        offsets = offsets[..., None] + np.arange(extent) * stride
    flat = offsets.reshape(-1) * tensor.element_size() + tensor.data_ptr()
    return flat.astype(np.uint64)
