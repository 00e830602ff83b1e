"""
Small kernels over several ranks, written by hand.

Constants in capitals take safeguards away, so that tests can see what notices it.
"""

# Triton has no type stubs, and a kernel's parameters have no Python types.
# pyright: basic, reportMissingTypeStubs=false, reportArgumentType=false

import triton
import triton.language as tl

from comet.runtime.shim import (
    finish_epoch,
    load,
    next_epoch,
    rebase,
    signal,
    signal_add,
    signal_add_all,
    signal_all,
    store,
    wait,
    wait_all,
)


@triton.jit
def ping_pong(flags, current, bases, ROUNDS: tl.constexpr):
    """Rank 0 and rank 1 answer each other."""
    for turn in range(ROUNDS):
        if current == 0:
            signal(flags, 2 * turn + 1, current, 1, bases)
            wait(flags, 2 * turn + 2)
        if current == 1:
            wait(flags, 2 * turn + 1)
            signal(flags, 2 * turn + 2, current, 0, bases)


@triton.jit
def publish(flag, epoch, current, peer, bases, HOW: tl.constexpr):
    """Signal, in the right way or in one that is not enough."""
    if HOW == "signal":
        signal(flag, epoch, current, peer, bases)
    there = rebase(flag, current, peer, bases, 4)
    if HOW == "without barrier":
        tl.atomic_xchg(there, epoch, sem="release", scope="sys")
    if HOW == "relaxed":
        tl.debug_barrier()
        tl.atomic_xchg(there, epoch, sem="relaxed", scope="sys")
    if HOW == "gpu scope":
        tl.debug_barrier()
        tl.atomic_xchg(there, epoch, sem="release", scope="gpu")


@triton.jit
def push_all_gather(
    shard,
    recv,
    flags,
    out,
    counters,
    current,
    bases,
    W: tl.constexpr,
    N: tl.constexpr,
    BLOCK: tl.constexpr,
    HOW: tl.constexpr,
    BUFFERS: tl.constexpr,
    AHEAD: tl.constexpr,
    WAIT_FIRST: tl.constexpr,
):
    """
    Each rank stores its shard into every receive buffer, then copies its own receive
    buffer out.

    Inboxes alternate with the parity of the epoch. Each program has a block of columns.
    """
    epoch = next_epoch(counters)
    block = tl.program_id(0)
    columns = block * BLOCK + tl.arange(0, BLOCK)
    inside = columns < N
    box = recv + (epoch % BUFFERS) * W * N
    mine = tl.load(shard + columns, mask=inside)
    if WAIT_FIRST:
        wait(flags + block * W + current, epoch)
    for step in range(W):
        peer = (current + step) % W
        to = box + current * N + columns
        store(to, mine, current, peer, bases, mask=inside, cache_modifier=".wt")
        publish(flags + block * W + current, epoch, current, peer, bases, HOW)
    for step in range(W):
        source = (current + step) % W
        wait(flags + block * W + source, epoch + AHEAD)
        row = tl.load(box + source * N + columns, mask=inside)
        tl.store(out + source * N + columns, row, mask=inside)
    finish_epoch(counters, epoch, tl.num_programs(0))


@triton.jit
def pull_when_ready(
    shard,
    staged,
    ready,
    out,
    counters,
    current,
    bases,
    W: tl.constexpr,
    N: tl.constexpr,
    WAIT: tl.constexpr,
):
    """Each rank publishes its shard, and copies the others' out of their memory."""
    epoch = next_epoch(counters)
    columns = tl.arange(0, N)
    mine = staged + (epoch % 2) * N
    tl.store(mine + columns, tl.load(shard + columns))
    signal_all(ready + current, epoch, current, bases, W)
    if WAIT:
        wait_all(ready, epoch, 1, W)
    for step in range(W):
        source = (current + step) % W
        row = load(mine + columns, current, source, bases, hint=(16,))
        tl.store(out + source * N + columns, row)
    finish_epoch(counters, epoch, tl.num_programs(0))


@triton.jit
def push_gemm(
    a,
    b,
    recv,
    flags,
    out,
    counters,
    current,
    bases,
    W: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    BM: tl.constexpr,
):
    """
    One kernel pushes and multiplies: out[M, N] = sum of a_rank[M, K] b[rank, K, N].

    Every program pushes its rows of `a` to all ranks, then multiplies what it received.
    """
    epoch = next_epoch(counters)
    block = tl.program_id(0)
    rows = block * BM + tl.arange(0, BM)
    ks = tl.arange(0, K)
    columns = tl.arange(0, N)
    inside = (rows < M)[:, None]
    offsets = rows[:, None] * K + ks[None, :]
    box = recv + (epoch % 2) * W * M * K
    tile = tl.load(a + offsets, mask=inside, other=0.0)
    for step in range(W):
        peer = (current + step) % W
        to = rebase(box + current * M * K, current, peer, bases)
        tl.store(to + offsets, tile, mask=inside, cache_modifier=".wt")
        signal(flags + block * W + current, epoch, current, peer, bases)
    total = tl.zeros((BM, N), dtype=tl.float32)
    for step in range(W):
        source = (current + step) % W
        wait(flags + block * W + source, epoch)
        left = tl.load(box + source * M * K + offsets, mask=inside, other=0.0)
        right = tl.load(b + (source * K + ks)[:, None] * N + columns[None, :])
        total += tl.dot(left, right)
    tl.store(out + rows[:, None] * N + columns[None, :], total, mask=inside)
    finish_epoch(counters, epoch, tl.num_programs(0))


@triton.jit
def send_parts(shard, recv, counts, current, bases, BLOCK: tl.constexpr):
    """Store this program's block into rank 0's receive buffer, and count it there."""
    size = tl.num_programs(0) * BLOCK
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(shard + columns)
    to = recv + current * size + columns
    store(to, values, current, 0, bases, cache_modifier=".wt")
    signal_add(counts + current, 1, current, 0, bases)


@triton.jit
def counted_gather(
    shard, recv, counts, out, current, bases, W: tl.constexpr, N: tl.constexpr
):
    """
    Store the shard into every receive buffer, count it there, and wait for all to come.
    """
    columns = tl.arange(0, N)
    mine = tl.load(shard + columns)
    for peer in range(W):
        box = recv + current * N + columns
        store(box, mine, current, peer, bases, cache_modifier=".wt")
    signal_add_all(counts, 1, current, bases, W)
    wait(counts, W)
    for source in range(W):
        row = tl.load(recv + source * N + columns)
        tl.store(out + source * N + columns, row)


@triton.jit
def receive_parts(recv, counts, out, COUNT, W: tl.constexpr, N: tl.constexpr):
    """Wait until all blocks of every rank are there, then add the ranks up."""
    columns = tl.arange(0, N)
    total = tl.zeros((N,), dtype=tl.float32)
    for source in range(W):
        wait(counts + source, COUNT)
        total += tl.load(recv + source * N + columns)
    tl.store(out + columns, total)


@triton.jit
def all_atomics(cells, old, current, peer, bases):
    """Do every atomic once on a peer; keep what was there before."""
    there = rebase(cells, current, peer, bases, 4)
    tl.store(old + 0, tl.atomic_add(there + 0, 5, scope="sys"))
    tl.store(old + 1, tl.atomic_add(there + 1, -5, scope="sys"))
    tl.store(old + 2, tl.atomic_xchg(there + 2, 5, scope="sys"))
    tl.store(old + 3, tl.atomic_and(there + 3, 5, scope="sys"))
    tl.store(old + 4, tl.atomic_or(there + 4, 5, scope="sys"))
    tl.store(old + 5, tl.atomic_xor(there + 5, 5, scope="sys"))
    tl.store(old + 6, tl.atomic_min(there + 6, 5, scope="sys"))
    tl.store(old + 7, tl.atomic_max(there + 7, 5, scope="sys"))
    tl.store(old + 8, tl.atomic_cas(there + 8, 12, 5, scope="sys"))
    tl.store(old + 9, tl.atomic_cas(there + 9, 0, 5, scope="sys"))


@triton.jit
def spin_without_telling(flag):
    """Poll with a plain load, which compilers turn into an endless loop."""
    while tl.load(flag) == 0:
        pass


@triton.jit
def store_at(pointer, offset):
    """Store one element, wherever that is."""
    tl.store(pointer + offset, 1.0)


@triton.jit
def store_to_peer(pointer, current, peer, bases):
    """Store one element of a tensor to a peer, in the symmetric heap or not."""
    store(pointer, 1.0, current, peer, bases)


@triton.jit
def store_rebased(pointer, offset, current, peer, bases):
    """Store one element after a rebased pointer."""
    tl.store(rebase(pointer + offset, current, peer, bases), 1.0)


@triton.jit
def arrive(count, places, current, bases):
    """Count on rank 0; keep there who came as which."""
    me = current * tl.num_programs(0) + tl.program_id(0)
    first = rebase(count, current, 0, bases, 4)
    rank_and_program_id = tl.atomic_add(first, 1, scope="sys")
    store(places + rank_and_program_id, me, current, 0, bases)


@triton.jit
def count_launches(seen, counters):
    """Keep the number of the launch."""
    epoch = next_epoch(counters)
    tl.store(seen + tl.program_id(0), epoch)
    finish_epoch(counters, epoch, tl.num_programs(0))


@triton.jit
def divide(numbers):
    """Ask for a range that depends on what is loaded, which fails if that is zero."""
    tl.static_assert(tl.load(numbers) != 0, "divide by zero")
