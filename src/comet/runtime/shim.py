"""
Device functions for memory of other ranks, in plain Triton.

Arguments are ordered as in Iris: pointer, value if there is one, current rank, other
rank, base addresses of the symmetric heap. A pointer always points into the current
rank's own heap; the functions translate it to the same object on the other rank.
`heap_bases` is any table of addresses, int64[world]: of one heap, or of one allocation.

`load` and `store` are those of Iris; the others are comet's own. Flags are 32-bit
counters that only grow. Other atomics on a peer are Triton's, at scope `sys`, on a
rebased pointer: at Triton's default, one GPU, others may never see them.
"""

# Triton has no type stubs, and a kernel's parameters have no Python types.
# pyright: basic, reportMissingTypeStubs=false, reportArgumentType=false

import triton
import triton.language as tl
from triton import knobs
from triton.language.target_info import is_hip

from comet.runtime.language import INTERPRETED
from comet.runtime.polling import poll

knobs.amd.use_buffer_ops = False
"""
Buffer instructions of AMD GPUs need the same pointer in all lanes. A peer's pointer
is loaded from a table: they would loop over lanes, and take minutes to compile.
"""


@triton.jit
def rebase(pointer, current, remote, heap_bases, align: tl.constexpr = 16):
    """
    Return the pointer to the same object on another rank.

    `pointer` is a scalar, aligned to `align` bytes. Compute addresses of blocks from a
    rebased scalar: the compiler then vectorizes loads as it does for local memory.
    """
    offset = pointer.to(tl.uint64) - tl.load(heap_bases + current).to(tl.uint64)
    address = tl.load(heap_bases + remote).to(tl.uint64) + offset
    if INTERPRETED:
        tl.static_assert(address % align == 0, "rebase: the pointer is less aligned")
    return tl.multiple_of(address.to(pointer.dtype), align)


@triton.jit
def rebase_among(pointer, current, remote, heap_bases, world: tl.constexpr):
    """
    Return the pointer to the same object on another rank, which changes in a loop.

    No load here depends on `remote`, so that the compiler does them before the loop. If
    one did, a software pipeline would have a stage for it, and fewer for other loads.
    Heaps are as far apart as multiples of 16 bytes, so that alignment stays known.
    """
    here, steps = tl.load(heap_bases + current), (remote * 0).to(tl.int64)
    for rank in tl.static_range(world):  # pyright: ignore[reportGeneralTypeIssues]
        to_rank = (tl.load(heap_bases + rank) - here) // 16
        steps = tl.where(remote == rank, to_rank, steps)
    bits: tl.constexpr = pointer.dtype.element_ty.primitive_bitwidth
    return pointer + steps * (128 // max(bits, 8))


@triton.jit
def rank_and_program_id(rank, programs: tl.constexpr, first: tl.constexpr = None):
    """
    Return the rank id that this program works for, and its program id there.

    `programs` is 0 if each rank launches its own kernel. Otherwise one launch has this
    many programs for each rank. The `first` ones of all ranks, for which others may
    wait, come before the later ones of any rank, interleaved. The others come rank by
    rank: programs that run at the same time then share operands in L2. With None all
    are interleaved.
    """
    launched = tl.program_id(0)
    program = launched
    if programs > 0:
        world = tl.num_programs(0) // programs
        rank, program = launched % world, launched // world
        if first is not None:
            later = launched - first * world
            if later >= 0:
                rank = later // (programs - first)
                program = first + later % (programs - first)
    return rank, program


@triton.jit
def symmetric_address(pointer, rank, heap_bases, programs: tl.constexpr):
    """
    Return the pointer to this rank's copy of a kernel's parameter.

    If one launch has the programs of all ranks, parameters point to rank 0's copies,
    all of which are in the heap.
    """
    if programs > 0:
        pointer = rebase(pointer, 0, rank, heap_bases)
    return pointer


@triton.jit
def translate(pointer, current, remote, heap_bases, hint: tl.constexpr = None):
    """
    Return pointers, a scalar or a block, to the same objects on another rank.

    `hint` is the number of contiguous, aligned elements in each dimension. It has to
    be given here: hints that a caller puts on the result are lost on inlining.
    """
    offset = pointer.to(tl.uint64) - tl.load(heap_bases + current).to(tl.uint64)
    address = tl.load(heap_bases + remote).to(tl.uint64) + offset
    result = address.to(pointer.dtype)
    if hint is not None:
        result = tl.max_contiguous(tl.multiple_of(result, hint), hint)
    return result


@triton.jit
def load(
    pointer,
    current,
    remote,
    heap_bases,
    mask=None,
    other=None,
    cache_modifier: tl.constexpr = None,
    volatile: tl.constexpr = False,
    hint: tl.constexpr = None,
):
    """Load from the remote rank's copy of what `pointer` points to."""
    source = translate(pointer, current, remote, heap_bases, hint)
    return tl.load(
        source,
        mask=mask,
        other=other,
        cache_modifier=cache_modifier,
        volatile=volatile,
    )


@triton.jit
def store(
    pointer,
    value,
    current,
    remote,
    heap_bases,
    mask=None,
    hint: tl.constexpr = None,
    cache_modifier: tl.constexpr = None,
):
    """
    Store to the remote rank's copy of what `pointer` points to.

    On AMD GPUs data that a signal publishes needs `cache_modifier=".wt"`: otherwise
    stores of other waves may be incomplete when the flag is set.
    """
    target = translate(pointer, current, remote, heap_bases, hint)
    tl.store(target, value, mask=mask, cache_modifier=cache_modifier)


@triton.jit
def drain():
    """
    Wait, on AMD GPUs, until the stores of every wave of this program are complete.

    There a release waits only for the stores of its own wave, and a barrier for none.
    """
    if not INTERPRETED:
        if is_hip():
            tl.inline_asm_elementwise(
                "s_waitcnt vmcnt(0)", "=v,0", [0], tl.int32, is_pure=False, pack=1
            )


@triton.jit
def signal(flag, value, current, remote, heap_bases):
    """
    Set a flag of a rank after all earlier stores of this program are visible there.

    For a flag with one writer; `value` grows from launch to launch. The barrier puts
    the stores of all threads before the release, which one thread does.
    """
    drain()
    target = rebase(flag, current, remote, heap_bases, 4)
    tl.debug_barrier()
    tl.atomic_xchg(target, value, sem="release", scope="sys")


@triton.jit
def signal_add(flag, value, current, remote, heap_bases):
    """Like `signal`, for a flag with several writers: it adds `value`."""
    drain()
    target = rebase(flag, current, remote, heap_bases, 4)
    tl.debug_barrier()
    tl.atomic_add(target, value, sem="release", scope="sys")


@triton.jit
def signal_programs(flag):
    """
    Add one to a flag after all earlier stores of this program are visible on its GPU.

    Other programs of the same GPU wait for it, with `wait_programs`.
    """
    drain()
    tl.debug_barrier()
    tl.atomic_add(flag, 1, sem="release", scope="gpu")


@triton.jit
def arrive_last(counter, arrivals):
    """
    Return whether this is the last of `arrivals` programs to arrive at a counter.

    Each has stored a partial result before, which the last one may load. They are
    programs of one GPU, and none waits. The last one sets the counter to 0 for the next
    launch.
    """
    drain()
    tl.debug_barrier()
    last = tl.atomic_add(counter, 1, sem="acq_rel", scope="gpu") == arrivals - 1
    if last:
        tl.store(counter, 0)
    return last


@triton.jit
def _on_all(flag, current, heap_bases, world: tl.constexpr):
    """Return the pointers to a flag on all ranks, and the mask of existing ranks."""
    ranks = tl.arange(0, triton.next_power_of_2(world))
    return translate(flag, current, ranks % world, heap_bases), ranks < world


@triton.jit
def signal_all(flag, value, current, heap_bases, world: tl.constexpr):
    """
    Like `signal`, on every rank: one release by as many threads.

    In a loop, each release would wait until the flag before it has arrived.
    """
    drain()
    targets, there = _on_all(flag, current, heap_bases, world)
    tl.debug_barrier()
    tl.atomic_xchg(targets, value, mask=there, sem="release", scope="sys")


@triton.jit
def signal_add_all(flag, value, current, heap_bases, world: tl.constexpr):
    """Like `signal_all`, for flags with several writers: it adds `value`."""
    drain()
    targets, there = _on_all(flag, current, heap_bases, world)
    tl.debug_barrier()
    tl.atomic_add(targets, value, mask=there, sem="release", scope="sys")


@triton.jit
def wait(flag, value):
    """
    Wait until a flag of this rank is at least `value`, then acquire what it published.

    The loop uses the result of the atomic, so no compiler may drop it. Do not wait in
    the innermost loop over K: that loop would not be pipelined.
    """
    if INTERPRETED:
        poll(flag, value)
    while tl.atomic_add(flag, 0, sem="acquire", scope="sys") < value:
        pass


@triton.jit
def wait_programs(flag, value):
    """Like `wait`, for a flag that programs of this GPU signal."""
    if INTERPRETED:
        poll(flag, value)
    while tl.atomic_add(flag, 0, sem="acquire", scope="gpu") < value:
        pass


@triton.jit
def _least(flags, there, value):
    """Return the smallest of some flags, at most `value`; acquire what they publish."""
    seen = tl.atomic_add(flags, 0, mask=there, sem="acquire", scope="sys")
    return tl.min(tl.where(there, seen, value))


@triton.jit
def wait_all(flag, value, stride, count: tl.constexpr):
    """
    Wait until `count` flags, `stride` apart, are at least `value`, all at a time.

    The barrier puts the loads of all threads after the acquires of some.
    """
    if INTERPRETED:
        for number in range(count):
            poll(flag + number * stride, value)
    numbers = tl.arange(0, triton.next_power_of_2(count))
    while _least(flag + numbers * stride, numbers < count, value) < value:
        pass
    tl.debug_barrier()


@triton.jit
def next_epoch(counters):
    """
    Return the number of this launch, from 1. `counters` is int32[2], zeros at first.

    It is in device memory, so a replayed CUDA graph counts, too. Every program of the
    launch that calls this also has to call `finish_epoch`.
    """
    return tl.load(counters) + 1


@triton.jit
def finish_epoch(counters, epoch, programs):
    """End a launch: the last of its `programs` to arrive publishes its number."""
    tl.debug_barrier()
    if tl.atomic_add(counters + 1, 1, sem="acq_rel", scope="gpu") == programs - 1:
        tl.store(counters + 1, 0)
        tl.store(counters, epoch)
