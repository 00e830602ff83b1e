"""
One process and one GPU for each rank, started by torchrun.

The heap is symmetric memory of torch on NVIDIA GPUs, one allocation of Iris on AMD
GPUs. Kernels see only the table of heap addresses.
"""

# torch has types for only half of its functions for distributed programs.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist

from comet.runtime.check_ranks import Epochs, Host, heap_bytes, run_epochs
from comet.runtime.gpu import Launcher, captured
from comet.runtime.heap import Heap
from comet.runtime.peer_memory import PeerMemory, peer_memory
from comet.runtime.ranks import KernelCall, Rank, heaps_differ
from comet.runtime.request import TORCHRUN

TIMEOUT = timedelta(minutes=2)
"""How long a rank waits for the hosts of other ranks."""


@dataclass(frozen=True)
class Process:
    """The numbers that torchrun passes to a process."""

    rank: int
    world: int
    local_rank: int
    """The number of the process on this machine, and of its GPU."""


def this_process(ranks: int) -> Process:
    """
    Return the rank, the world and the local rank that torchrun passed.

    Raises `ValueError` unless torchrun started one process per rank, `KeyError`
    unless it started this process.
    """
    process = Process(*(int(os.environ[name]) for name in TORCHRUN))
    if process.world != ranks:
        raise ValueError(
            f"torchrun started {process.world} processes, but the module was compiled "
            f"for {ranks} ranks; use --nproc-per-node {ranks}"
        )
    return process


class DistributedRank(Rank):
    """
    The rank of this process in a group, by default that of all processes.

    Launches go to the current stream of its GPU.
    """

    def __init__(
        self, rank: int, memory: PeerMemory, group: dist.ProcessGroup | None = None
    ):
        self.rank = rank
        self.world = memory.bases.numel()
        self.heap = Heap(memory.bytes)
        self.heap_bases = memory.bases
        self.device = str(memory.bytes.device)
        self.write_through = memory.write_through
        self._memory = memory
        self._group = group
        self._compared = 0
        self._launcher = Launcher()

    def launch_together(self, *launches: KernelCall) -> None:
        """Launch one after another: producers come first."""
        for launch in launches:
            self._launcher.launch(launch)

    def barrier(self) -> None:
        """Order the work of all GPUs before and after; compare changed heaps."""
        if len(self.heap.log) != self._compared:
            self._compared = len(self.heap.log)
            self._compare_heaps()
        self._memory.barrier()

    def write(self, tensor: torch.Tensor, value: torch.Tensor) -> None:
        """Copy on the stream."""
        tensor.copy_(value)

    def read(self, tensor: torch.Tensor) -> torch.Tensor:
        """Copy to the host, after all earlier launches have ended."""
        return tensor.cpu()

    def _compare_heaps(self) -> None:
        local = torch.tensor([self.heap.log_hash()])
        hashes = [torch.zeros_like(local) for _ in range(self.world)]
        dist.all_gather(hashes, local, group=self._group)
        for rank, other in enumerate(hashes):
            if not torch.equal(local, other):
                raise heaps_differ(self.rank, rank)


@contextmanager
def process_group() -> Generator[None]:
    """
    Connect the processes unless they are; hosts exchange messages over gloo.

    A process can make only one group in its life.
    """
    if dist.is_initialized():
        yield
        return
    backends = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backends, timeout=TIMEOUT)
    try:
        yield
    finally:
        dist.destroy_process_group()


def run(
    host: Host,
    *,
    graph: bool = False,
    connect: Callable[[Process, int], PeerMemory] | None = None,
) -> list[Epochs]:
    """
    Run one rank of a host program; return the results of every rank, on each rank.

    `graph`: all launches but the first replay a captured graph.
    `connect`: returns symmetric memory of this many bytes; by default the vendor's.
    Raises `ValueError` if the processes or their GPUs do not match the ranks,
    `SymmetryError` if ranks allocate different things.
    """
    process = this_process(host.program.ranks)
    with process_group():
        memory = (connect or own_gpu)(process, heap_bytes(host.program))
        session = host.session(DistributedRank(process.rank, memory))
        results = run_epochs(
            [session], session.launch, host.epochs, captured if graph else None
        )
        everyone: list[list[Epochs]] = [[] for _ in range(process.world)]
        dist.all_gather_object(everyone, results)
    return [epochs for (epochs,) in everyone]


def own_gpu(process: Process, size: int) -> PeerMemory:
    """Select the GPU of this process and allocate memory that its peers reach."""
    count = torch.cuda.device_count()
    if process.local_rank >= count:
        raise ValueError(
            f"rank {process.rank} has no GPU, since this machine has {count}; use "
            "--backend gpu to run all ranks on one"
        )
    device = torch.device("cuda", process.local_rank)
    torch.cuda.set_device(device)
    return peer_memory(size, device)
