"""
Host programs around the kernels of `rank_kernels`.

Each runs on every rank and returns the largest error of what it computed. They are
data, so that processes can be sent them.
"""

# Kernels have no Python types.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportArgumentType=false

from __future__ import annotations

from dataclasses import dataclass

import rank_kernels as kernels
import torch

from comet.runtime.ranks import Rank, launch


def error_of(result: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the largest error; infinite where a result is not a number."""
    difference = (result - expected).abs().nan_to_num(nan=torch.inf)
    return float(difference.max())


def shard_of(epoch: int, rank: int, n: int) -> torch.Tensor:
    """Return a shard that is another for each epoch and rank."""
    return torch.arange(n, dtype=torch.float32) + 100 * rank + 1000 * epoch


def gathered(epoch: int, world: int, n: int) -> torch.Tensor:
    """Return the shards of all ranks."""
    return torch.stack([shard_of(epoch, rank, n) for rank in range(world)])


@dataclass(frozen=True)
class PingPong:
    """Two ranks that answer each other."""

    rounds: int

    def __call__(self, rank: Rank) -> float:
        """Return how many signals are missing in the end."""
        flags = rank.heap.zeros((1,), torch.int32, "flags")
        rank.barrier()
        arguments = (flags, rank.rank, rank.heap_bases)
        rank.launch(kernels.ping_pong, (1,), *arguments, ROUNDS=self.rounds)
        return float(2 * self.rounds - rank.rank - int(rank.read(flags)[0]))


@dataclass(frozen=True)
class Gather:
    """The push all-gather, with safeguards that can be taken away."""

    epochs: int = 3
    how: str = "signal"
    buffers: int = 2
    ahead: int = 0
    """How many more signals a wait asks for than come."""
    wait_first: bool = False
    barrier: bool = True

    def __call__(self, rank: Rank) -> float:
        """Run some epochs without clearing anything."""
        n = 24
        shard = torch.empty(n)
        recv = rank.heap.zeros((2, rank.world, n), torch.float32, "recv")
        flags = rank.heap.zeros((2, rank.world), torch.int32, "flags")
        counters = torch.zeros(2, dtype=torch.int32)
        out = torch.empty(rank.world, n)
        if self.barrier:
            rank.barrier()
        worst = 0.0
        for epoch in range(self.epochs):
            rank.write(shard, shard_of(epoch, rank.rank, n))
            tensors = (shard, recv, flags, out, counters)
            rank.launch(
                kernels.push_all_gather,
                (2,),
                *(*tensors, rank.rank, rank.heap_bases),
                W=rank.world,
                N=n,
                BLOCK=16,
                HOW=self.how,
                BUFFERS=self.buffers,
                AHEAD=self.ahead,
                WAIT_FIRST=self.wait_first,
            )
            result = rank.read(out)
            worst = max(worst, error_of(result, gathered(epoch, rank.world, n)))
        return worst


@dataclass(frozen=True)
class Pull:
    """The pull all-gather."""

    epochs: int = 3
    wait: bool = True

    def __call__(self, rank: Rank) -> float:
        """Run some epochs without clearing anything."""
        n = 16
        shard = torch.empty(n)
        staged = rank.heap.zeros((2, n), torch.float32, "staged")
        ready = rank.heap.zeros((rank.world,), torch.int32, "ready")
        counters = torch.zeros(2, dtype=torch.int32)
        out = torch.empty(rank.world, n)
        rank.barrier()
        worst = 0.0
        for epoch in range(self.epochs):
            rank.write(shard, shard_of(epoch, rank.rank, n))
            tensors = (shard, staged, ready, out, counters)
            constants = {"W": rank.world, "N": n, "WAIT": self.wait}
            arguments = (*tensors, rank.rank, rank.heap_bases)
            rank.launch(kernels.pull_when_ready, (1,), *arguments, **constants)
            result = rank.read(out)
            worst = max(worst, error_of(result, gathered(epoch, rank.world, n)))
        return worst


@dataclass(frozen=True)
class Gemm:
    """The fused push GEMM; M is ragged."""

    epochs: int = 2

    def __call__(self, rank: Rank) -> float:
        """Run some epochs without clearing anything."""
        m, n, k, bm = 20, 16, 16, 16
        random = torch.Generator().manual_seed(1)
        b = torch.randn(rank.world, k, n, generator=random)
        a = torch.empty(m, k)
        recv = rank.heap.zeros((2, rank.world, m, k), torch.float32, "recv")
        flags = rank.heap.zeros((2, rank.world), torch.int32, "flags")
        counters = torch.zeros(2, dtype=torch.int32)
        out = torch.empty(m, n)
        rank.barrier()
        worst = 0.0
        for _ in range(self.epochs):
            shards = torch.randn(rank.world, m, k, generator=random)
            rank.write(a, shards[rank.rank])
            tensors = (a, b, recv, flags, out, counters)
            constants = {"W": rank.world, "M": m, "N": n, "K": k, "BM": bm}
            arguments = (*tensors, rank.rank, rank.heap_bases)
            rank.launch(kernels.push_gemm, (2,), *arguments, **constants)
            expected = torch.einsum("wmk,wkn->mn", shards, b)
            worst = max(worst, error_of(rank.read(out), expected))
        return worst


@dataclass(frozen=True)
class Parts:
    """Producers count what they sent; a consumer on rank 0 adds it up."""

    count: int = 2
    """What the consumer waits for; two blocks come from each rank."""
    producers_first: bool = True

    def __call__(self, rank: Rank) -> float:
        """Launch producers and the consumer together."""
        n = 32
        shard = shard_of(0, rank.rank, n)
        recv = rank.heap.zeros((rank.world, n), torch.float32, "recv")
        counts = rank.heap.zeros((rank.world,), torch.int32, "counts")
        out = torch.zeros(n)
        rank.barrier()
        arguments = (shard, recv, counts, rank.rank, rank.heap_bases)
        launches = [launch(kernels.send_parts, (2,), *arguments, BLOCK=n // 2)]
        if rank.rank == 0:
            results = (recv, counts, out, self.count)
            constants = {"W": rank.world, "N": n}
            consumer = launch(kernels.receive_parts, (1,), *results, **constants)
            launches.insert(len(launches) * self.producers_first, consumer)
        rank.launch_together(*launches)
        if rank.rank != 0:
            return 0.0
        return error_of(rank.read(out), gathered(0, rank.world, n).sum(dim=0))


def counted(rank: Rank) -> float:
    """Gather the shards of all ranks, which one flag counts."""
    n = 16
    recv = rank.heap.zeros((rank.world, n), torch.float32, "recv")
    counts = rank.heap.zeros((1,), torch.int32, "counts")
    out = torch.zeros(rank.world, n)
    rank.barrier()
    tensors = (shard_of(0, rank.rank, n), recv, counts, out)
    arguments = (*tensors, rank.rank, rank.heap_bases)
    rank.launch(kernels.counted_gather, (1,), *arguments, W=rank.world, N=n)
    return error_of(rank.read(out), gathered(0, rank.world, n))


def atomics(rank: Rank) -> float:
    """Try every atomic on the next rank."""
    cells = rank.heap.zeros((10,), torch.int32, "cells")
    old = torch.zeros(10, dtype=torch.int32)
    rank.write(cells, torch.full((10,), 12, dtype=torch.int32))
    rank.barrier()
    peer = (rank.rank + 1) % rank.world
    arguments = (cells, old, rank.rank, peer, rank.heap_bases)
    rank.launch(kernels.all_atomics, (1,), *arguments)
    rank.barrier()
    expected = torch.tensor([17, 7, 5, 12 & 5, 12 | 5, 12 ^ 5, 5, 12, 5, 12])
    return error_of(rank.read(cells), expected) + error_of(
        rank.read(old), torch.tensor(12)
    )


def launches(rank: Rank) -> float:
    """Count launches on the device."""
    counters = torch.zeros(2, dtype=torch.int32)
    seen = torch.zeros(3, dtype=torch.int32)
    worst = 0.0
    for number in range(1, 4):
        rank.launch(kernels.count_launches, (3,), seen, counters)
        worst = max(worst, error_of(rank.read(seen), torch.tensor(number)))
    return worst


def without_back_end() -> list[float]:
    """Launch a kernel of one rank as Triton does, with no runtime around it."""
    n = 24
    shard, out = shard_of(0, 0, n), torch.empty(1, n)
    recv, flags = torch.zeros(2, 1, n), torch.zeros(2, 1, dtype=torch.int32)
    counters = torch.zeros(2, dtype=torch.int32)
    bases = torch.tensor([recv.data_ptr()])
    tensors = (shard, recv, flags, out, counters)
    constants = {"W": 1, "N": n, "BLOCK": 16, "BUFFERS": 2, "AHEAD": 0}
    for _ in range(2):
        kernels.push_all_gather[(2,)](
            *tensors, 0, bases, **constants, HOW="signal", WAIT_FIRST=False
        )
    return [error_of(out, gathered(0, 1, n)), float(abs(counters[0] - 2))]


def spin(rank: Rank) -> float:
    """Wait for a flag that nobody sets, and tell nobody."""
    flag = rank.heap.zeros((1,), torch.int32, "flag")
    rank.barrier()
    rank.launch(kernels.spin_without_telling, (1,), flag)
    return 0.0


def out_of_bounds(rank: Rank) -> float:
    """Store after the end of an allocation."""
    row = rank.heap.zeros((8,), torch.float32, "row")
    rank.barrier()
    rank.launch(kernels.store_at, (1,), row, 8)
    return 0.0


@dataclass(frozen=True)
class Rebase:
    """Rebase a pointer that is so many elements after an aligned one."""

    offset: int

    def __call__(self, rank: Rank) -> float:
        """Store one element to the next rank."""
        row = rank.heap.zeros((8,), torch.float32, "row")
        rank.barrier()
        peer = (rank.rank + 1) % rank.world
        arguments = (row, self.offset, rank.rank, peer, rank.heap_bases)
        rank.launch(kernels.store_rebased, (1,), *arguments)
        rank.barrier()
        return abs(1.0 - float(rank.read(row)[self.offset]))


OWN_ROWS: dict[int, torch.Tensor] = {}
"""What `private_memory` tells its peers, all in one process."""


def private_memory(rank: Rank) -> float:
    """Store to a peer's tensor that is not in the symmetric heap."""
    row = OWN_ROWS[rank.rank] = torch.empty(8)
    rank.write(row, torch.zeros(8))
    rank.barrier()
    bases = torch.tensor([OWN_ROWS[peer].data_ptr() for peer in range(rank.world)])
    if rank.rank == 0:
        rank.launch(kernels.store_to_peer, (1,), row, rank.rank, 1, bases)
    return 0.0


def unequal_heaps(rank: Rank) -> float:
    """Allocate another shape on the last rank."""
    rank.heap.zeros((8 + rank.rank // (rank.world - 1),), torch.float32, "row")
    rank.barrier()
    return 0.0


def early_return(rank: Rank) -> float:
    """Leave the last rank out of a barrier."""
    if rank.rank < rank.world - 1:
        rank.barrier()
    return 0.0


def failing_host(rank: Rank) -> float:
    """Raise an error on one rank; the others wait for it."""
    if rank.rank == 1:
        raise ValueError("the input of rank 1 is empty")
    rank.barrier()
    return 0.0


def unequal_counts(rank: Rank) -> float:
    """Allocate once more on the last rank."""
    for _ in range(1 + rank.rank):
        rank.heap.zeros((8,), torch.float32, "row")
    rank.barrier()
    return 0.0


def full_heap(rank: Rank) -> float:
    """Ask for more than there is."""
    rank.heap.zeros((1 << 20,), torch.float32, "row")
    return 0.0


def raising_kernel(rank: Rank) -> float:
    """Fail in a kernel of the last rank."""
    numbers = torch.full((1,), 1 - rank.rank, dtype=torch.int32)
    rank.launch(kernels.divide, (1,), numbers)
    return 0.0


def no_kernel(rank: Rank) -> float:
    """Launch what is no kernel."""
    rank.launch([], (1,))
    return 0.0


def order(rank: Rank) -> float:
    """Return the order in which four programs of each rank counted, as one number."""
    count = rank.heap.zeros((1,), torch.int32, "count")
    places = rank.heap.zeros((8,), torch.int32, "places")
    rank.barrier()
    rank.launch(kernels.arrive, (4,), count, places, rank.rank, rank.heap_bases)
    rank.barrier()
    digits = 8 ** torch.arange(8)
    return float((rank.read(places) * digits).sum())
