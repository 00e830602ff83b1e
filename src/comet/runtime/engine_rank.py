"""A rank whose kernels are interpreted: the base of the back ends on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from comet.runtime.engine import Actor, Engine
from comet.runtime.heap import Allocation, Heap
from comet.runtime.memory import Kind, Region
from comet.runtime.ranks import KernelCall, Rank


class EngineRank(Rank):
    """One rank among the tasks of an engine; subclasses implement the barrier."""

    actor: Actor
    """The host program."""
    mapped: Sequence[int]
    """The ranks whose copies become known by an allocation on this rank."""

    def __init__(self, rank: int, engine: Engine, heaps: Sequence[torch.Tensor]):
        """Take the bytes of the heaps of all ranks."""
        self.rank = rank
        self.world = len(heaps)
        self.heap = Heap(heaps[rank], self._allocated)
        self._heaps = tuple(heaps)  # kept alive: kernels have only their addresses
        bases = [memory.data_ptr() for memory in heaps]
        self.heap_bases = torch.tensor(bases, dtype=torch.int64)
        self.mapped = (rank,)
        self._allocations: list[tuple[torch.Tensor, Allocation]] = []
        self.join(engine)

    def join(self, engine: Engine) -> None:
        """Be a rank among the tasks of this engine from now on."""
        self._engine = engine
        size = self._heaps[self.rank].numel()
        engine.memory.add_heap(self.rank, self.heap.base, size)
        for tensor, allocation in self._allocations:
            self._register(tensor, allocation)

    def add_host(self, body: Callable[[], None]) -> None:
        """Make the host program a task of the engine."""
        self.actor = self._engine.add_host(self.rank, body)

    def launch_together(self, *launches: KernelCall) -> None:
        """Run the kernels to completion, interleaved with all other tasks."""
        self._engine.launch(self.actor, launches)

    def empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """
        Return a tensor of nan, so that a check finds elements that no program stores.
        """
        return torch.full(shape, torch.nan).to(dtype)

    def write(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        """Copy at once: launches have ended when they return."""
        tensor.copy_(value)
        self._engine.host_access(self.actor, Kind.WRITE, tensor)

    def read(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copy at once: launches have ended when they return."""
        self._engine.host_access(self.actor, Kind.READ, tensor)
        return tensor.clone()

    def _allocated(self, tensor: torch.Tensor, allocation: Allocation) -> None:
        """Make a new allocation known to the engine, which the host has written."""
        if not tensor.nbytes:
            return
        self._allocations.append((tensor, allocation))
        self._register(tensor, allocation)
        self._engine.host_access(self.actor, Kind.WRITE, tensor)

    def _register(self, tensor: torch.Tensor, allocation: Allocation) -> None:
        """Register the allocation for every rank whose heap this process maps."""
        for rank in self.mapped:
            start = int(self.heap_bases[rank]) + allocation.offset
            region = Region(
                start,
                tensor.nbytes,
                tensor.element_size(),
                rank,
                allocation.name,
                symmetric=True,
            )
            self._engine.memory.add(region)
