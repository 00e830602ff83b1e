"""
The symmetric heap: the same allocations at the same offsets on every rank.

One range of bytes for each rank, and a table of their addresses. All ranks allocate
the same things in the same order, so one offset names an object on every rank, and a
kernel finds a peer's copy by the difference of two addresses.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

ALIGNMENT = 1024
"""Every allocation starts at a multiple of this many bytes from the heap's start."""

HEAP_BYTES = 1 << 24
"""The default size of a heap."""


@dataclass(frozen=True)
class Allocation:
    """One entry of the log of a heap."""

    offset: int
    shape: tuple[int, ...]
    dtype: str
    name: str

    def __str__(self) -> str:
        """Return the entry as reports show it."""
        return f"{self.name}: {self.dtype} of shape {self.shape} at {self.offset}"


def _ignore(tensor: torch.Tensor, allocation: Allocation) -> None:
    """Do nothing."""


class Heap:
    """The symmetric memory of one rank; allocations are never freed."""

    def __init__(
        self,
        memory: torch.Tensor,
        watch: Callable[[torch.Tensor, Allocation], None] = _ignore,
    ):
        """Allocate from `memory`, bytes in one dimension; report to `watch`."""
        self._memory = memory
        self._watch = watch
        self._used = 0
        self.log: list[Allocation] = []

    def zeros(
        self, shape: tuple[int, ...], dtype: torch.dtype, name: str = ""
    ) -> torch.Tensor:
        """
        Return a new tensor of zeros, with a name for reports.

        Other ranks may access their copy only after a later barrier.
        Raises `MemoryError` if the heap is full.
        """
        size = math.prod(shape) * dtype.itemsize
        offset = -(-self._used // ALIGNMENT) * ALIGNMENT
        if offset + size > self._memory.numel():
            raise MemoryError(
                f"the symmetric heap of {self._memory.numel()} bytes has no room for "
                f"{size} more at {offset}; give it at least {offset + size}"
            )
        name = name or f"allocation{len(self.log)}"
        allocation = Allocation(offset, shape, str(dtype).removeprefix("torch."), name)
        self._used = offset + size
        self.log.append(allocation)
        tensor = self._memory[offset : offset + size].view(dtype).view(shape)
        tensor.zero_()
        self._watch(tensor, allocation)
        return tensor

    def holds(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor is an allocation in this memory, or part of one."""
        memory, other = (each.untyped_storage() for each in (self._memory, tensor))
        return memory._cdata == other._cdata  # pyright: ignore[reportPrivateUsage]

    @property
    def used(self) -> int:
        """The number of bytes up to the end of the last allocation."""
        return self._used

    @property
    def base(self) -> int:
        """The address of the first byte."""
        return self._memory.data_ptr()

    def log_hash(self) -> int:
        """Return a 63-bit hash that is equal on ranks with equal allocations."""
        text = "\n".join(map(str, self.log))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def aligned_bytes(size: int) -> torch.Tensor:
    """Return new memory of this many bytes that starts at a multiple of `ALIGNMENT`."""
    memory = torch.empty(size + ALIGNMENT, dtype=torch.uint8)
    start = -memory.data_ptr() % ALIGNMENT
    return memory[start : start + size]
