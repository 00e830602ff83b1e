"""Triton kernels whose programs, or thread blocks of a cluster, only exchange."""

# Triton has no type stubs, and a kernel's parameters have no Python types.
# pyright: basic, reportMissingTypeStubs=false, reportArgumentType=false
# pyright: reportGeneralTypeIssues=false, reportCallIssue=false

from __future__ import annotations

import triton
import triton.language as tl

from comet.runtime.shim import (
    finish_epoch,
    next_epoch,
    signal_add,
    signal_programs,
    wait,
    wait_programs,
)

SLOTS = 2
"""
Places for the values of a member: nobody stores again before all others have loaded, as
a turn ends when all have stored.
"""


@triton.jit
def exchange(
    values,
    flags,
    counters,
    heap_bases,
    out,
    turns,
    GROUP: tl.constexpr,
    PARTS: tl.constexpr,
    SIZE: tl.constexpr,
    SYSTEM: tl.constexpr,
):
    """
    Let groups of programs exchange `SIZE` numbers, `turns` times.

    In a turn each program stores its numbers, signals, waits for its group, and loads
    what the first `PARTS` members stored. What it stores is the mean of what it loaded,
    and its own number in the group: after all turns the mean is turns (PARTS - 1) / 2.
    All programs run at the same time. `SYSTEM`: flags have the scope of the system, as
    between ranks, else that of the GPU.
    """
    program = tl.program_id(0)
    group, member = program // GROUP, program % GROUP
    epoch = next_epoch(counters)
    parts, places = tl.arange(0, PARTS)[:, None], tl.arange(0, SIZE)[None, :]
    found = tl.zeros((PARTS, SIZE), tl.float32)
    for turn in range(turns):
        slot = values + ((turn % 2) * tl.num_programs(0) + group * GROUP) * SIZE
        tl.store(slot + member * SIZE + tl.arange(0, SIZE), tl.sum(found, 0) + member)
        awaited = ((epoch - 1) * turns + turn + 1) * GROUP
        if SYSTEM:
            signal_add(flags + group, 1, 0, 0, heap_bases)
            wait(flags + group, awaited)
        else:
            signal_programs(flags + group)
            wait_programs(flags + group, awaited)
        found = tl.load(slot + parts * SIZE + places) * (1.0 / PARTS)
    tl.store(out + program * SIZE + tl.arange(0, SIZE), tl.sum(found, 0))
    finish_epoch(counters, epoch, tl.num_programs(0))


CLUSTER_TURN: tl.constexpr = tl.constexpr("""
{
    .shared .align 16 .b32 box[256];
    .reg .b32 own, peer, rank, thread;
    mov.u32 own, box;
    mov.u32 thread, %tid.x;
    shl.b32 thread, thread, 2;
    add.u32 own, own, thread;
    shl.b32 thread, $2, 9;
    add.u32 own, own, thread;
    mov.u32 rank, %cluster_ctarank;
    xor.b32 rank, rank, 1;
    mapa.shared::cluster.u32 peer, own, rank;
    st.shared::cluster.b32 [peer], $1;
    barrier.cluster.arrive.release.aligned;
    barrier.cluster.wait.acquire.aligned;
    ld.shared.b32 $0, [own];
}
""")
"""
A number of each of 128 threads, to the same thread of the other block of a cluster.

PTX ISA, `mapa` and `barrier.cluster`. The third operand, 0 or 1, is the slot.
"""


@triton.jit
def cluster_exchange(out, turns):
    """Let the two blocks of each cluster exchange a number a thread, `turns` times."""
    places = tl.arange(0, 256)
    found = places
    for turn in range(turns):
        slot = tl.zeros((256,), tl.int32) + turn % 2
        found = tl.inline_asm_elementwise(
            CLUSTER_TURN, "=r,r,r", [found, slot], tl.int32, is_pure=False, pack=1
        )
    tl.store(out + tl.program_id(0) * 256 + places, found)
