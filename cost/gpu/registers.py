"""
An estimate of the registers of a thread, from the tiles of a program and their layouts.

The fractions in the hardware file are fitted to kernels that `benchmarks/registers.py`
compiles. Block sizes and launch numbers may be arrays, one element per choice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from operator import mul

import numpy as np

from comet.cost.gpu.clusters import repeated_bytes
from comet.cost.gpu.device import Device
from comet.cost.gpu.layouts import Layouts, reads_shared
from comet.cost.gpu.row_registers import (
    masked_registers,
    stored_registers,
    whole_tiles,
)
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks, Operands, Point, Product, Term, elements
from comet.cost.gpu.triton_rules import CopyRules, ProgramLimits, TileRegisters
from comet.cost.reals import Real, choose, longest, product, total

REGISTER = 4
"""Bytes of a register."""
ADDRESS_REGISTERS = 2
"""Registers of an address, which has 64 bits."""


@dataclass(frozen=True)
class LaunchNumbers:
    """Warps of a program, stages of its software pipeline, and who loads."""

    warps: Real
    stages: Real
    specialize: bool = False
    """Whether producer warps load, see `cost/gpu/specialized.py`."""
    subtiles: Real = 1
    """The subtiles of the epilogue, see `cost/gpu/epilogue.py`."""
    cluster: Real = 1
    """The thread blocks of a program, see `cost/gpu/clusters.py`."""


def thread_registers(
    summary: KernelSummary, blocks: Blocks, numbers: LaunchNumbers, gpu: Device
) -> Real:
    """
    Return the registers that a thread needs: the sum of

    * a constant;
    * the tiles that are alive at the same time, and a fraction of a contraction's
      operands unless matrix instructions read them from shared memory. If stores of
      clusters repeat elements, the elements that a thread stores count, if they are
      more. Products in f32 use no matrix instructions: a thread multiplies its elements
      one by one;
    * addresses: of narrow loads, of rows, and for loops around the loop of a product;
    * tiles that pass through registers on their way to shared memory: without a
      software pipeline those that an iteration loads, on some GPUs always.
    """
    rules, threads = gpu.triton, gpu.limits.warp_threads * numbers.warps
    shared = summary.peak(summary.live.shared, blocks) / threads / REGISTER
    if _has_instructions(summary):
        tiles = _peak_registers(summary, blocks, numbers, gpu)
        stored = repeated_bytes(summary, blocks, numbers.warps, numbers.cluster, gpu)
        tiles = np.maximum(tiles, stored / threads / REGISTER)
    else:
        tiles = _scalar_tiles(summary, blocks, threads, gpu) / REGISTER
        tiles = tiles + _loaded_fraction(numbers, gpu.triton.tiles) * shared
    narrow = summary.peak(summary.live.narrow, blocks) / threads / REGISTER
    narrow = narrow + masked_registers(summary, blocks, threads, gpu)
    narrow = narrow + stored_registers(summary, blocks, threads, gpu)
    passed = rules.tiles.passed_fraction * shared
    loops = _outer_registers(summary, blocks, numbers, gpu)
    loops = np.maximum(loops, _summed_registers(summary, blocks, threads, gpu))
    loops = loops + _unrolled_registers(summary, blocks, numbers, gpu)
    return _constant(summary, gpu.triton.tiles) + loops + tiles + narrow + passed


def _constant(summary: KernelSummary, rules: TileRegisters) -> int:
    """Return the registers besides those for tiles: addresses, and row statistics."""
    return (
        rules.thread_registers
        if summary.products.operations
        else rules.vector_registers
    )


def _outer_registers(
    summary: KernelSummary, blocks: Blocks, numbers: LaunchNumbers, gpu: Device
) -> Real:
    """
    Return the registers of a thread for loops around the loop of a product.

    While the inner loop runs, registers hold values of the outer loops, mostly
    addresses: those that change in an outer iteration, and those that are the same in
    all of them. Each outer iteration also starts the pipeline of the inner loop again,
    and LLVM computes the offsets of its first copies before all loops. If several loops
    change a copied tile, and one of them takes a single index at a time, such as a
    head, the rest of the address is the same in all loops: each copy keeps this rest,
    and its address at the start of the inner loop.
    """
    layouts, rules = Layouts.once(summary, blocks, numbers.warps, gpu), gpu.triton
    ahead = _ahead(numbers, gpu.triton.copies)
    nested = np.maximum(rules.addresses.nested_address_registers, ahead)

    def added(dot: Product) -> Real:
        outer = outer_loops(dot, summary, blocks)
        registers = rules.loops.outer_loop_registers * outer
        if not (np.any(outer) and np.any(nested)):
            return registers
        addresses = _copy_registers(dot, layouts, ahead, nested)
        return registers + np.minimum(outer, 1.0) * addresses

    several = (
        dot for dot in dict.fromkeys(summary.products.roles) if len(dot.loops) > 1
    )
    return longest((0.0, *map(added, several)))


def outer_loops(dot: Product, summary: KernelSummary, blocks: Blocks) -> Real:
    """Return the loops of several iterations around the innermost one of a product."""
    count = max(len(dot.loops) - dot.coalesced, 0)
    loops = (*((dim,) for dim in dot.loops[:count]), dot.loops[count:])
    looped = total(summary.is_looped(dims, blocks) for dims in loops)
    return np.maximum(looped - 1, 0.0)


def unmasked_loop_registers(
    summary: KernelSummary, blocks: Blocks, numbers: LaunchNumbers, gpu: Device
) -> Real:
    """
    Return the registers of a thread for the loops without mask of `unmask-loops`.

    If two loops load the same tiles, there are four loops then, and the added ones
    start at the same tiles. The offsets at which the pipeline of the first one started
    stay in registers until the second one has started, during all of the loop between.
    """
    bytes_at_once = numbers.warps * gpu.limits.warp_threads * gpu.memory.load_bytes
    again = total(
        np.ceil(tile.per_tile(blocks) / bytes_at_once)
        * summary.is_looped(tile.repeated, blocks)
        for tile in summary.moves.loads
        if tile.repeated and len(tile.dims) > 1
    )
    second = gpu.triton.loops.second_loop_registers
    return second + _ahead(numbers, gpu.triton.copies) * again


def _ahead(numbers: LaunchNumbers, rules: CopyRules) -> Real:
    """Return for how many iterations a loop starts the copies ahead."""
    return 0.0 if rules.copies_pass_registers else numbers.stages - 1


def _copy_registers(dot: Product, layouts: Layouts, one: Real, several: Real) -> Real:
    """
    Return the registers of a thread for the copies in an iteration of a product.

    Each copy to shared memory needs `one`, or `several` if more than one loop changes
    the copied tile, and one of these loops takes a single index at a time.
    """
    summary, blocks = layouts.summary, layouts.blocks
    bytes_at_once = (
        layouts.warps * layouts.gpu.limits.warp_threads * layouts.gpu.memory.load_bytes
    )

    @cache
    def registers(tile: Term) -> Real:
        copies = np.ceil(_loaded(tile, dot, layouts) / bytes_at_once)
        loops = [dim for dim in tile.loops if dim in tile.dims]
        looped = [summary.is_looped((dim,), blocks) for dim in loops]
        single = [np.equal(blocks[dim], 1) * 1.0 for dim in loops]
        indexed = total(map(mul, looped, single))
        nested = np.greater(total(looped), 1) & np.greater(indexed, 0)
        return copies * choose(nested, several, one)

    return longest(total(map(registers, each)) for each in summary.live.shared)


def _summed_registers(
    summary: KernelSummary, blocks: Blocks, threads: Real, gpu: Device
) -> Real:
    """
    Return the registers of a thread for the addresses in a sum of products.

    If matrix instructions read shared memory, each copy of an operand to it needs an
    address. For a single product the constant is enough, as the addresses of its copies
    differ by immediate offsets.
    """
    rules = gpu.triton
    copied = summary.peak([summary.products.sums], blocks, invariant=0.0)
    copies = copied / threads / gpu.memory.load_bytes
    shared = reads_shared(summary, blocks, rules.products)
    return rules.addresses.summed_address_registers * shared * copies


def _unrolled_registers(
    summary: KernelSummary, blocks: Blocks, numbers: LaunchNumbers, gpu: Device
) -> Real:
    """
    Return the registers of a thread for a loop of a product that is unrolled.

    If matrix instructions read registers, LLVM reads the operands of an iteration while
    the one before multiplies. This needs more than two iterations, as the first one
    continues no accumulator.
    """
    loops = gpu.triton.loops
    if not (registers := loops.unrolled_loop_registers):
        return 0.0
    layouts = Layouts.once(summary, blocks, numbers.warps, gpu)
    trips = longest(map(layouts.trips_of, dict.fromkeys(summary.products.roles)))
    unrolled = np.greater(trips, 2) & np.less_equal(trips, loops.most_unrolled)
    return np.where(unrolled, registers, 0.0)


def register_bound(
    summary: KernelSummary, blocks: Blocks, warps: Real, gpu: Device
) -> Real:
    """
    Return a lower bound of `thread_registers`, for these blocks and for larger ones.

    It assumes that each element of a tile is in one thread, and that a product needs no
    registers for its operands.
    """
    alive = alive_bytes(summary, blocks, gpu.triton.stores.epilogue_subtiles)
    tiles = alive / (gpu.limits.warp_threads * warps) / REGISTER
    return _constant(summary, gpu.triton.tiles) + tiles


def replication(
    summary: KernelSummary, blocks: Blocks, warps: Real, gpu: Device
) -> Callable[[tuple[str, ...]], Real]:
    """
    Return a function from the dimensions of a tile to the threads with each element.

    It is 1 for tiles without rows or columns, which are small.
    """
    if not _has_instructions(summary):
        return lambda dims: 1.0
    layouts = Layouts.once(summary, blocks, warps, gpu)

    @cache
    def threads_per_element(dims: tuple[str, ...]) -> Real:
        dot = layouts.product_of(dims)
        if not dot.rows & set(dims) or set(dims) <= dot.rows:
            return 1.0
        tile = Term(dims, REGISTER)
        held = (
            _tile_registers(tile, layouts) * warps * gpu.limits.warp_threads * REGISTER
        )
        return np.maximum(held / tile.per_tile(blocks), 1.0)

    return threads_per_element


def alive_bytes(summary: KernelSummary, blocks: Blocks, subtiles: Real) -> Real:
    """
    Return the most bytes of tiles that are alive in registers at the same time.

    `subtiles` is the number of subtiles of the epilogue, if it can be divided.
    """

    @cache
    def size(tile: Term) -> Real:
        return tile.per_tile(blocks)

    return longest(alive_at(point, subtiles, size) for point in summary.tiles_alive)


def alive_at(point: Point, subtiles: Real, size: Callable[[Term], Real]) -> Real:
    """
    Return the sum of the sizes of tiles in registers at a point of a program.

    In an epilogue with subtiles these are the tiles of one subtile, and the
    accumulators of the other subtiles, which stay until the last one is stored.
    """
    if point.epilogue is None:
        return total(map(size, point.tiles))
    accumulators = point.epilogue.accumulators
    parts = total(size(tile) * point.fraction(tile, subtiles) for tile in point.tiles)
    return parts + (1 - 1 / subtiles) * total(map(size, accumulators))


def _has_instructions(summary: KernelSummary) -> bool:
    return bool(summary.products.operations) and summary.products.element != "f32"


def _bytes(point: Point, blocks: Blocks) -> Real:
    operands = point.operands
    read = () if operands is None else (operands.left, operands.right)
    return total(tile.per_tile(blocks) for tile in (*point.tiles, *read))


def _scalar_tiles(
    summary: KernelSummary, blocks: Blocks, threads: Real, gpu: Device
) -> Real:
    """Return the bytes of tiles that a thread holds without matrix instructions."""
    if gpu.triton.tiles.whole_tiles and not summary.products.operations:
        return whole_tiles(summary, blocks, threads, gpu)
    tiles = longest(_bytes(point, blocks) for point in summary.peaks) / threads
    return tiles * (gpu.triton.tiles.f32_multiple if summary.products.operations else 1)


def _peak_registers(
    summary: KernelSummary, blocks: Blocks, numbers: LaunchNumbers, gpu: Device
) -> Real:
    """
    Return the registers of a thread for tiles and operands, at the op with the most.

    The loaded tiles of an iteration have left the registers when a contraction starts.
    Just before, registers hold them and the accumulator of the loop. If matrix
    instructions read registers, ptxas delays loads for which there is no room. Without
    a pipeline, Triton converts a whole transposed operand in registers.
    """
    layouts = Layouts.once(summary, blocks, numbers.warps, gpu)
    converted = np.equal(numbers.stages, 1) * (1 - layouts.reads_shared)
    loaded = _loaded_fraction(numbers, gpu.triton.tiles) * layouts.reads_shared
    ahead = _ahead(numbers, gpu.triton.copies)

    @cache
    def held(tile: Term) -> Real:
        return _tile_registers(tile, layouts)

    def alive(point: Point) -> Real:
        tiles = alive_at(point, numbers.subtiles, held)
        tiles = tiles + total(
            point.fraction(tile, numbers.subtiles) * _vector_registers(tile, layouts)
            for tile in point.broadcast
        )
        if point.operands is None:
            return tiles
        if summary.nest.group:
            tiles = tiles + _row_loop_registers(point.operands, layouts, ahead, held)
        if point.before:
            begun = np.greater(layouts.trips_of(point.operands.product), 1)
            sums = begun * total(map(held, point.accumulator))
            tiles = tiles + sums + _moved(sums, gpu.triton.limits)
            if np.any(loaded):
                dot = point.operands.product
                tiles = tiles + loaded * _loaded_registers(dot, layouts)
            return tiles + converted * _transposed_registers(point.operands, layouts)
        read = (1 - layouts.reads_shared) * _operand_registers(point.operands, layouts)
        return tiles + read

    return longest(map(alive, summary.peaks))


def _row_loop_registers(
    operands: Operands, layouts: Layouts, ahead: Real, held: Callable[[Term], Real]
) -> Real:
    """
    Return the registers of a thread in a product, for the loop over rows around it.

    Programs of a group have several blocks of rows, one after the other. As for any
    loop around that of a product, LLVM computes what is the same in all iterations
    before it (see `_outer_registers`). That is at least an address of two registers for
    each copy, and also for each vector that is loaded before the product and read after
    it.
    """
    points = (
        p for p in layouts.summary.live.points if p.before and p.operands == operands
    )
    kept = longest(total(map(held, point.tiles)) for point in points)
    rules, vectors = layouts.gpu.triton, kept * REGISTER / layouts.gpu.memory.load_bytes
    each = np.maximum(ahead, ADDRESS_REGISTERS)
    copies = _copy_registers(operands.product, layouts, each, each)
    addresses = copies + rules.addresses.nested_address_registers * vectors
    return rules.loops.outer_loop_registers + addresses


def _moved(accumulators: Real, limits: ProgramLimits) -> Real:
    """
    Return the registers of a thread for a second copy of the accumulators of a loop.

    On some GPUs accumulators have registers of their own kind. If they fill these, LLVM
    writes the result of an instruction to other registers than its old accumulator
    (v_accvgpr_mov_b32 of whole tiles in the loop, for gfx942 by Triton 3.9).
    """
    most = limits.accumulation_registers
    return np.greater_equal(accumulators, most) * accumulators if most else 0.0


def _tile_registers(tile: Term, layouts: Layouts) -> Real:
    """
    Return the registers of a thread for a tile.

    A tile without rows is distributed over all threads.
    """
    dot, blocks = layouts.product_of(tile.dims), layouts.blocks
    if not dot.rows & set(tile.dims):
        threads = layouts.warps * layouts.gpu.limits.warp_threads
        registers = np.maximum(tile.per_tile(blocks) / threads, tile.weight)
        return registers / REGISTER
    return tile.weight / REGISTER * layouts.thread_elements(tile.dims)


def _vector_registers(tile: Term, layouts: Layouts) -> Real:
    """
    Return the registers of a thread for a vector that is broadcast along rows.

    A loop-invariant vector counts only if one of its loops has several iterations.
    """
    needed = (
        layouts.summary.is_looped(tile.loops, layouts.blocks) if tile.loops else 1.0
    )
    dot = layouts.product_of(tile.dims)
    if dot.rows & set(tile.dims):
        return 0.0
    fragment = layouts.fragments[dot]
    columns = elements(tile.dims, layouts.blocks)
    held = (
        np.maximum(columns / layouts.of[dot].columns, fragment.columns) / fragment.lanes
    )
    return needed * tile.weight / REGISTER * np.where(np.greater(columns, 1), held, 0.0)


def _operand_registers(operands: Operands, layouts: Layouts) -> Real:
    """
    Return the registers of a thread for the operands of a contraction.

    A fraction of both operands, for a limited number of summed terms: while an
    instruction runs, the compiler loads the terms of the next one.
    """
    rules, tiles = layouts.gpu.triton.tiles, (operands.left, operands.right)
    terms = rules.operand_fraction * _depth(operands, layouts)
    terms = np.minimum(terms, rules.operand_terms)
    return terms * _registers_per_term(operands, tiles, layouts)


def _loaded_fraction(numbers: LaunchNumbers, rules: TileRegisters) -> Real:
    """Return the fraction of loaded tiles that registers hold: 0 with a pipeline."""
    return np.where(np.equal(numbers.stages, 1), rules.load_fraction, 0.0)


def _loaded_registers(dot: Product, layouts: Layouts) -> Real:
    """
    Return the registers of a thread for what an iteration of a product's loop loads.

    These are the tiles in shared memory that change with the loop. ptxas loads all of
    them before it stores any, as it waits once for all (benchmarks/figures/kernels.md).
    """

    threads = layouts.warps * layouts.gpu.limits.warp_threads
    tiles = longest(
        total(_loaded(tile, dot, layouts) for tile in each)
        for each in layouts.summary.live.shared
    )
    return tiles / threads / REGISTER


def _loaded(tile: Term, dot: Product, layouts: Layouts) -> Real:
    """Return the bytes of a tile if each iteration of a product's loop loads it."""
    alive = layouts.summary.peak([[tile]], layouts.blocks, invariant=0.0)
    return choose(layouts.in_one_body(dot.loops, tile.loops), alive, 0.0)


def _transposed_registers(operands: Operands, layouts: Layouts) -> Real:
    """Return the registers of a thread for whole transposed operands."""
    per_term = _registers_per_term(operands, operands.transposed, layouts)
    return _depth(operands, layouts) * per_term


def _depth(operands: Operands, layouts: Layouts) -> Real:
    """Return the terms that one block of a contraction sums."""
    dims = operands.product.summed & {*operands.left.dims, *operands.right.dims}
    return product(layouts.blocks[dim] for dim in dims)


def _registers_per_term(
    operands: Operands, tiles: Collection[Term], layouts: Layouts
) -> Real:
    """Return the registers of a thread for one term of the sums, of some operands."""
    dot, lanes = operands.product, layouts.gpu.limits.warp_threads
    layout, fragment = layouts.of[dot], layouts.fragments[dot]
    sides = (
        (operands.left, layout.rows, fragment.rows),
        (operands.right, layout.columns, fragment.columns),
    )
    found: Real = 0.0
    for tile, warps, minimum in sides:
        if tile in tiles:
            dims = (dim for dim in tile.dims if dim not in dot.summed)
            extent = product(layouts.blocks[dim] for dim in dims)
            held = np.maximum(extent / warps, minimum) / lanes
            found = found + tile.weight / REGISTER * held
    return found
