"""
Prices block sizes and launch numbers of a GPU kernel, given its summary.

All numbers may be arrays, one element per choice.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import prod

import numpy as np

from comet.cost.gpu.capacity import shared_need
from comet.cost.gpu.clusters import cluster_exchanges
from comet.cost.gpu.device import Device
from comet.cost.gpu.epilogue import repeated_waits
from comet.cost.gpu.kernel import KernelTime, kernel_time, wave_count
from comet.cost.gpu.pipelined import (
    joined_rounds,
    loaded_outside,
    read_operations,
)
from comet.cost.gpu.registers import (
    REGISTER,
    LaunchNumbers,
    replication,
    thread_registers,
)
from comet.cost.gpu.specialized import specialized_needs, specialized_work
from comet.cost.gpu.summary import Evaluated, KernelSummary
from comet.cost.gpu.terms import Blocks, LoopCost, Term
from comet.cost.gpu.work import (
    Exchanges,
    KernelWork,
    Loops,
    MovedBytes,
    Operations,
    ProgramNeeds,
)
from comet.cost.reals import Real, add_to, longest, product, total


def price(
    summary: KernelSummary, blocks: Blocks, numbers: LaunchNumbers, gpu: Device
) -> KernelTime:
    """Return the estimated time of one launch."""
    return kernel_time(kernel_work(summary, blocks, numbers, gpu), gpu)


def program_needs(
    summary: KernelSummary,
    blocks: Blocks,
    numbers: LaunchNumbers,
    gpu: Device,
    registers: Real | None = None,
) -> ProgramNeeds:
    """
    Return the resources of a multiprocessor that a program needs.

    `registers` are the registers of a thread, if they are known.
    """
    blocks = Evaluated.of(summary, blocks)
    if registers is None:
        padded = summary.padded(blocks)
        registers = thread_registers(summary, padded, numbers, gpu)
    threads = gpu.limits.warp_threads * numbers.warps
    needs = ProgramNeeds(
        numbers.warps,
        np.minimum(registers * threads * REGISTER, gpu.limits.register_bytes),
        shared_need(summary, blocks, numbers.stages, gpu),
    )
    if not numbers.specialize:
        return needs
    return specialized_needs(needs, summary, blocks, gpu)


def kernel_work(
    summary: KernelSummary,
    blocks: Blocks,
    numbers: LaunchNumbers,
    gpu: Device,
    needs: ProgramNeeds | None = None,
) -> KernelWork:
    """
    Return the work of a kernel, which `kernel_time` prices.

    `needs` are the needs of its programs, if they are known.
    """
    blocks = Evaluated.of(summary, blocks)
    work = KernelWork(
        summary.programs(blocks) * numbers.cluster,
        operations_of(summary, blocks, numbers.warps, gpu),
        moved_bytes(summary, blocks, numbers.cluster, gpu),
        loops_of(summary, blocks, numbers),
        needs or program_needs(summary, blocks, numbers, gpu),
        exchanges_of(summary, blocks, numbers, gpu),
        numbers.cluster * prod(summary.nest.ctas.values()),
    )
    if not numbers.specialize:
        return work
    return specialized_work(work, summary, blocks, gpu)


def moved_bytes(
    summary: KernelSummary, blocks: Blocks, cluster: Real, gpu: Device
) -> MovedBytes:
    """Return the bytes that a program moves, one of `cluster` thread blocks."""
    ids = (size_of(term, summary) for term in summary.moves.ids)
    return MovedBytes(
        l2=summary.moved(blocks),
        stored=total(summary.moved_by_stores(blocks)),
        exposed=loaded_outside(summary, blocks),
        uneven=summary.uneven(blocks),
        shared=summary.per_program(summary.products.reads, blocks),
        converted=2 * summary.per_program(summary.vector.converted, blocks),
        device=total((*tensor_traffic(summary, blocks, gpu, cluster), *ids)),
        written=written_bytes(summary, blocks, cluster),
    )


def loops_of(summary: KernelSummary, blocks: Blocks, numbers: LaunchNumbers) -> Loops:
    """Return the loops of a program."""
    again = repeated_waits(summary, numbers)
    return Loops(
        rounds=summary.iterations(blocks) + again,
        exposed=summary.exposed(blocks) + again,
        joined=joined_rounds(summary, blocks),
        pipelines=summary.pipelines(blocks),
        stages=numbers.stages,
    )


def exchanges_of(
    summary: KernelSummary, blocks: Blocks, numbers: LaunchNumbers, gpu: Device
) -> Exchanges:
    """Return how often a program waits for values of others."""
    warps, cluster = numbers.warps, numbers.cluster
    return Exchanges(
        summary.sync.exchanges,
        summary.sync.rank_exchanges,
        cluster_exchanges(summary, blocks, warps, cluster, gpu),
    )


def merging_work(work: KernelWork, partials: Real, gpu: Device) -> KernelWork:
    """
    Return the work of merging partial results in the launch that stores them.

    `partials` are their bytes, which `work` counts as loads from device memory: those
    that L2 still holds are subtracted.
    """
    device = work.moved.device - held_bytes(partials, gpu)
    return replace(work, moved=replace(work.moved, device=device))


def held_bytes(stored: Real, gpu: Device) -> Real:
    """
    Return how many of the bytes that a launch has stored are in L2: all if they fit,
    else none.
    """
    return np.where(np.less_equal(stored, gpu.memory.l2_bytes), stored, 0.0)


def operations_of(
    summary: KernelSummary, blocks: Blocks, warps: Real, gpu: Device
) -> Operations:
    """
    Return the operations of one program.

    Warps that hold the same elements of a tile all compute them. In loops, where there
    are many warps for both, special functions run beside the other operations.
    """
    dots, vectors, looped = _counted(summary, blocks, warps, gpu)
    element = summary.products.element
    if element == "f32":
        # Exact f32 products run on vector lanes, two operations an instruction.
        dots, vectors, looped = 0.0, vectors + dots / 2, looped + dots / 2
    read = read_operations(summary, blocks, warps, gpu)
    return Operations(dots, vectors, looped, read, element)


def _counted(
    summary: KernelSummary, blocks: Blocks, warps: Real, gpu: Device
) -> tuple[Real, Real, Real]:
    """
    Return the operations of contractions, the others, and those of them in the loops
    of contractions, of one program.
    """
    replicas = replication(summary, blocks, warps, gpu)
    dots = total(
        summary.per_program((term,), blocks) * replicas(dims)
        for term, dims in zip(
            summary.products.operations, summary.products.results, strict=True
        )
    )

    @cache
    def repeated(term: Term) -> Real:
        return summary.per_program((term,), blocks) * replicas(term.dims)

    later, lanes, special = 0.0, 0.0, 0.0
    for term in summary.vector.operations:
        count, inside = repeated(term), 0.0
        if term.loops in summary.products.loops:
            inside = count * summary.is_looped(term.loops, blocks)
        later = later + count - inside
        cost = term.in_loop or LoopCost(term.weight)
        lanes = lanes + inside * cost.lanes / term.weight
        special = special + inside * cost.special / term.weight
    looped = np.maximum(lanes, special)
    return dots, later + looped, looped


def tensor_traffic(
    summary: KernelSummary, blocks: Blocks, gpu: Device, cluster: Real = 1
) -> tuple[Real, ...]:
    """
    Return the bytes of device memory moved for each tensor, then for each spilled tile.

    Programs along a dimension that a tensor lacks load the same tiles of it: from L2 if
    it still holds them (see `reloads`), else from device memory, at most once in a
    wave. A spilled tile is stored; it is loaded from device memory if L2 cannot hold
    the spilled tiles of one wave. Positions after the end of a sequence are not loaded,
    and the parts of a shared list of tiles are different tiles. A program has `cluster`
    thread blocks.
    """
    blocks = Evaluated.of(summary, blocks)
    programs = summary.programs(blocks) * cluster
    waves = wave_count(programs, gpu.multiprocessors * gpu.sharing)
    traffic: list[Real] = []
    shares, loaded = summary.nest.shares, loaded_by_tensor(summary, blocks)
    repeating = [d for d in summary.nest.grid if shares is None or d != shares.part]
    for position, tensor in enumerate(summary.moves.tensors):
        lacking = [dim for dim in repeating if dim not in tensor.dims]
        again = product(reloads(tensor, dim, summary, blocks, gpu) for dim in lacking)
        size = size_of(tensor, summary) * summary.seen_of(tensor)
        again = np.maximum(np.minimum(again, waves), 1)
        times = loop_reloads(tensor, loaded.get(position, 0.0), summary, blocks, gpu)
        traffic.append(size * again * times)
    sizes = [size_of(tensor, summary) for tensor in summary.moves.spilled]
    times = times_spilled(sum(sizes), summary.programs(blocks), gpu)
    return (*traffic, *(size * times for size in sizes))


def times_spilled(size: float, programs: Real, gpu: Device) -> Real:
    """
    Return how often device memory moves spilled tiles: 1 for stores, 2 with loads.

    They are loaded from L2 if it holds those of the running programs; `size` are the
    bytes of the tiles of all programs.
    """
    running = np.minimum(gpu.multiprocessors / programs, 1.0)
    return 1 + np.greater(size * running, gpu.memory.l2_bytes)


def written_bytes(summary: KernelSummary, blocks: Blocks, cluster: Real = 1) -> Real:
    """
    Return the bytes that all programs store, each of `cluster` thread blocks.

    At most the bytes of the tensor: the last tiles may extend beyond its end.
    """
    moved = summary.moved_by_stores(blocks)
    programs = summary.programs(blocks) * cluster
    return total(
        np.minimum(programs * tile, size_of(store, summary))
        for store, tile in zip(summary.moves.stores, moved, strict=True)
    )


def reloads(
    tensor: Term, dim: str, summary: KernelSummary, blocks: Evaluated, gpu: Device
) -> Real:
    """
    Return how often a grid loop over a dimension that a tensor lacks loads the tensor.

    Successive iterations of the loop load the same tiles. Between them, the loops that
    advance faster run. If L2 holds all tiles of the tensor that these load, device
    memory loads the tensor once, else once for each iteration of the loop. With an L2
    swizzle, the first loop advances in groups. Between two iterations of the last loop
    a group runs: L2 has to hold twice the bytes that a group loads, as the next group
    begins before the last programs of this one end.
    """
    period = summary.successive(dim, blocks)
    swizzle = summary.swizzle(blocks)
    grouped = np.greater(swizzle, 1) & np.equal(period, 1)

    def extent(other: str) -> Real:
        faster = np.less(summary.successive(other, blocks), period) | grouped
        inside = other not in summary.nest.grid
        return np.where(inside | faster, summary.nest.extents[other], blocks[other])

    touched = tensor.weight * product(map(extent, tensor.dims))
    last = np.greater(swizzle, 1) & np.greater(period, 1)
    last = last & np.less_equal(product(inner_trips(dim, summary, blocks)), 1)
    touched = np.where(last, 2 * group_bytes(dim, summary, blocks), touched)
    times = np.ceil(summary.trips(dim, blocks) / np.where(grouped, swizzle, 1))
    return np.where(np.less_equal(touched, gpu.memory.l2_bytes), 1.0, times)


def inner_trips(dim: str, summary: KernelSummary, blocks: Blocks) -> list[Real]:
    """Return the tiles of the loops of the grid after that over `dim`."""
    inner = summary.nest.grid[summary.nest.grid.index(dim) + 1 :]
    return [summary.trips(loop, blocks) for loop in inner]


def group_bytes(last: str, summary: KernelSummary, blocks: Evaluated) -> Real:
    """
    Return the bytes of tensors that the programs of a group of the L2 swizzle load.

    All have the same tile of the loop `last`.
    """

    def loaded(tensor: Term) -> Real:
        tiles = product(
            summary.trips(dim, blocks)
            for dim in tensor.dims
            if dim in summary.nest.grid and dim != last
        )
        sizes = (
            blocks[dim] if dim in summary.nest.grid else summary.nest.extents[dim]
            for dim in tensor.dims
        )
        one = tensor.weight * product(sizes)
        return one * np.minimum(tiles, summary.swizzle(blocks))

    return blocks.once(
        (group_bytes, last), lambda: total(map(loaded, summary.moves.tensors))
    )


def loaded_by_tensor(summary: KernelSummary, blocks: Blocks) -> dict[int | None, Real]:
    """Return the bytes that one program loads of each tensor, by its position."""
    loaded: dict[int | None, Real] = {}
    for load, moved in zip(
        summary.moves.loads, summary.moved_by_loads(blocks), strict=True
    ):
        add_to(loaded, load.tensor, moved)
    return loaded


def loop_reloads(
    tensor: Term, loaded: Real, summary: KernelSummary, blocks: Blocks, gpu: Device
) -> Real:
    """
    Return how often the loops of a program load a tensor from device memory.

    If an outer loop runs over a dimension that the tensor lacks, each of its iterations
    loads the part of the program again: from L2 if it holds the parts of all running
    programs, else from device memory. `loaded` are the bytes of the tensor that a
    program loads.
    """
    parts = [dim for dim in summary.nest.grid if dim in tensor.dims]
    others = [dim for dim in summary.nest.grid if dim not in tensor.dims]
    part = tensor.weight * product(
        blocks[dim] if dim in parts else summary.nest.extents[dim]
        for dim in tensor.dims
    )
    running = np.minimum(summary.programs(blocks), gpu.multiprocessors)
    same = product(summary.trips(dim, blocks) for dim in others)
    count = product(summary.trips(dim, blocks) for dim in parts)
    held = part * np.minimum(np.maximum(running / same, 1), count)
    again = np.greater(held, gpu.memory.l2_bytes)
    return np.where(again, np.maximum(loaded / part, 1.0), 1.0)


def size_of(tensor: Term, summary: KernelSummary) -> float:
    """Return the bytes of a whole tensor."""
    return tensor.weight * prod(summary.nest.extents[dim] for dim in tensor.dims)


def rank(time: KernelTime, programs: Real, gpu: Device) -> Real:
    """
    Return the sort key of choices: the time, and a fraction of the overlapped time.

    Of equally fast choices the one with fewer programs is better: about one program
    starts per clock.
    """
    parts = tuple(part.seconds for part in time.overlapping.values())
    hidden = sum(parts, start=np.zeros(1)) - longest(parts)
    return time.seconds + gpu.exposed_fraction * hidden + programs / gpu.units.clock
