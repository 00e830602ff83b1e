"""
Ranks under torchrun without GPUs: `torchrun distributed_ranks.py FOLDER MODULE ...`.

The process group, the host program and the heap are those of `distributed`. Kernels are
interpreted, and symmetric memory is a stand-in: files that all processes map, after the
functions that torch and Iris document. Rank 0 prints a JSON object.
"""

# Stand-ins for libraries that have no types themselves.
# pyright: basic

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

from comet.runtime.check_ranks import Host, check_ranks
from comet.runtime.distributed import DistributedRank, Process, process_group, run
from comet.runtime.peer_memory import IrisMemory, PeerMemory, TorchMemory
from comet.runtime.ranks import SymmetryError


class SharedFiles:
    """A file for each rank, which every process maps."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._count = 0
        self._maps: list[torch.Tensor] = []

    def empty(self, size: int, *, dtype: torch.dtype, device: torch.device):
        """Return bytes of the own file, as `symmetric_memory.empty` does."""
        assert (dtype, device.type) == (torch.uint8, "cpu")
        self._count += 1
        path = self._path(dist.get_rank())
        with path.open("wb") as file:
            file.truncate(size)
        return self._mapped(path, size)

    def rendezvous(self, tensor: torch.Tensor, group: dist.ProcessGroup):
        """Return what tells where peers' bytes are, and meets them."""
        own, size = dist.get_rank(), tensor.numel()
        dist.barrier(group)
        places = [
            tensor if rank == own else self._mapped(self._path(rank), size)
            for rank in dist.get_process_group_ranks(group)
        ]
        return SimpleNamespace(
            buffer_ptrs=[place.data_ptr() for place in places],
            barrier=lambda channel: dist.barrier(group),
        )

    def iris(self, heap_size: int):
        """Return what `iris.iris` does: a heap, its addresses, and barriers."""
        assert dist.group.WORLD is not None
        heap = self.empty(
            heap_size, dtype=torch.uint8, device=torch.device("cpu")
        ).zero_()
        handle = self.rendezvous(heap, dist.group.WORLD)
        bases = torch.tensor(handle.buffer_ptrs, dtype=torch.int64)
        return SimpleNamespace(
            zeros=lambda size, dtype: heap[4096 : 4096 + size].view(dtype),
            get_heap_bases=lambda: bases,
            device_barrier=lambda: handle.barrier(channel=0),
        )

    def _path(self, rank: int) -> Path:
        return self._folder / f"heap{self._count}-{rank}"

    def _mapped(self, path: Path, size: int) -> torch.Tensor:
        mapped = torch.from_file(str(path), shared=True, size=size, dtype=torch.uint8)
        self._maps.append(mapped)
        return mapped


def of_torch(process: Process, size: int) -> PeerMemory:
    """Take the symmetric memory of torch."""
    return TorchMemory(size, torch.device("cpu"))


def of_iris(process: Process, size: int) -> PeerMemory:
    """Take a heap of Iris."""
    return IrisMemory(size)


def checked(path: str, connect: Callable[[Process, int], PeerMemory]) -> bool:
    """Whether a module is right on all ranks, in three launches."""

    def ranks(host: Host):
        return run(host, connect=connect)

    return check_ranks(path, 3, 3, ranks).ok


def unequal(path: str) -> str:
    """Allocate more on rank 1; return what that raises."""

    def connect(process: Process, size: int) -> PeerMemory:
        memory = of_torch(process, size + 4096)
        rank = DistributedRank(process.rank, memory)
        rank.heap.zeros((1 + process.rank,), torch.int32, "flags")
        rank.barrier()
        return memory

    try:
        run(Host(path, 0, 1), connect=connect)
    except SymmetryError as error:
        return str(error)
    return ""


def main() -> None:
    """Check modules with the memory of both libraries."""
    folder, *paths = sys.argv[1:]
    files = SharedFiles(Path(folder))
    symmetric.empty = files.empty
    symmetric.rendezvous = files.rendezvous
    iris = sys.modules["iris"] = ModuleType("iris")
    iris.__dict__["iris"] = files.iris
    libraries = {"torch": of_torch, "iris": of_iris}
    with process_group():
        found = {
            f"{library}, {Path(path).stem}": checked(path, connect)
            for library, connect in libraries.items()
            for path in paths
        }
        message = unequal(paths[0])
    if os.environ["RANK"] == "0":
        print(json.dumps({"right": found, "unequal": message}))


if __name__ == "__main__":
    main()
