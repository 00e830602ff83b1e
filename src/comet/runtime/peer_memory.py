"""Memory that GPUs of other processes reach: torch's on NVIDIA, Iris' on AMD."""

# The interface of symmetric memory is private to torch, and Iris has no types.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class PeerMemory(Protocol):
    """The heap of this rank, and where those of its peers are."""

    bytes: torch.Tensor
    """This rank's heap, in one dimension, on the GPU of this process."""
    bases: torch.Tensor
    """The heap addresses of all ranks, as this GPU maps them: int64[world], on it."""
    write_through: str
    """See `Rank`."""

    def barrier(self) -> None:
        """Make the GPU wait for its peers, after all work on the stream."""
        ...


class TorchMemory:
    """Symmetric memory of torch: one buffer for everything."""

    write_through = ""

    def __init__(
        self, size: int, device: torch.device, group: ProcessGroup | None = None
    ):
        import torch.distributed._symmetric_memory as symmetric

        ranks = group or torch.distributed.group.WORLD
        assert ranks is not None
        self.bytes = symmetric.empty(size, dtype=torch.uint8, device=device)
        self._handle = symmetric.rendezvous(self.bytes, ranks)
        addresses = list(self._handle.buffer_ptrs)
        self.bases = torch.tensor(addresses, dtype=torch.int64, device=device)

    def barrier(self) -> None:
        """Signal all peers and wait for theirs, in a kernel that graphs can capture."""
        self._handle.barrier(channel=0)


class IrisMemory:
    """
    One allocation in Iris' heap, whose table of addresses is used.

    The heap is always that of all processes.
    """

    write_through = ".wt"
    ROOM = 1 << 20
    """Bytes of Iris' heap in addition to the allocation."""

    def __init__(self, size: int):
        self._iris = _iris().iris(size + self.ROOM)
        self.bytes = self._iris.zeros(size, dtype=torch.uint8)
        self.bases = self._iris.get_heap_bases()

    def barrier(self) -> None:
        """Signal all peers and wait for theirs, in a kernel that graphs can capture."""
        self._iris.device_barrier()


def _iris():
    try:
        import iris
    except ModuleNotFoundError as error:
        raise ValueError(
            "--backend distributed on AMD GPUs needs the package iris of ROCm, which "
            "is not installed"
        ) from error
    return iris


def peer_memory(
    size: int, device: torch.device, group: ProcessGroup | None = None
) -> PeerMemory:
    """
    Return memory of the GPU's vendor; the ranks of a group call this together.

    By default these are all processes; on AMD GPUs there are no other groups. Raises
    `ValueError` if the vendor's library is not installed.
    """
    if torch.version.hip:
        return IrisMemory(size)
    return TorchMemory(size, device, group)
