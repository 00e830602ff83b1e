"""
The registers of a thread: how Triton lays out the tiles of a program.

With one matrix instruction a warp makes 16 x 8 elements of a product. Warps are spread
over rows and columns of a tile; where a tile has fewer instructions than warps, several
hold the same elements. If the left operand of a product is made of another product
(attention), warps are spread over its rows alone, or its columns alone. This follows
Triton's pass AccelerateMatmul; the fractions in the hardware file are fitted to kernels
that `benchmarks/registers.py` compiled. Block sizes and launch numbers may be arrays,
one element per choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from comet.cost.gpu.kernel import Device
from comet.cost.gpu.summary import Blocks, KernelSummary, Operands, Point, Term
from comet.cost.reals import Real, longest, product, total

REGISTER = 4
"""Bytes of a register."""
ROWS = 16
COLUMNS = 8
"""The elements that a warp makes with one matrix instruction."""
QUAD = 4
"""Lanes of a warp that hold the columns of a row of these."""


@dataclass(frozen=True)
class LaunchNumbers:
    """Warps of a program and stages of its software pipeline."""

    warps: Real
    stages: Real


@dataclass(frozen=True)
class Layout:
    """How the warps of a program are spread over the tiles of its products."""

    rows: Real
    """Warps along rows."""
    columns: Real
    """Warps along columns."""
    threads: Real
    """Threads of the program."""
    direct: Real
    """1 if instructions read operands from shared memory, else 0."""
    lanes: int
    """Threads of a warp."""


def reads_shared(summary: KernelSummary, blocks: Blocks, gpu: Device) -> Real:
    """Return 1 if matrix instructions read rows from shared memory, else 0."""
    if summary.dot_type == "f32":
        return 0.0
    least = gpu.compiled.shared_operand_rows
    return product(
        np.greater_equal(blocks[dim], least) * 1.0 for dim in summary.dot_rows
    )


def thread_registers(
    summary: KernelSummary, blocks: Blocks, numbers: LaunchNumbers, gpu: Device
) -> Real:
    """
    Return the registers that a thread needs.

    A constant, the tiles alive at the same time, and a fraction of a contraction's
    operands unless its instruction reads them from shared memory. Narrow loads need
    registers for addresses; without a software pipeline, tiles pass through registers
    on their way to shared memory. A product in f32 is no matrix instruction: a thread
    multiplies its elements one by one.
    """
    rules, threads = gpu.compiled, gpu.warp_threads * numbers.warps
    if _has_instructions(summary):
        tiles = _laid_out(summary, blocks, numbers.warps, gpu)
    else:
        tiles = longest(_bytes(point, blocks) for point in summary.points)
        tiles = tiles / threads / REGISTER * (rules.f32_multiple if summary.dots else 1)
    loaded = np.where(np.equal(numbers.stages, 1), rules.load_fraction, 0.0)
    passing = summary.peak(summary.narrow, blocks) + loaded * summary.peak(
        summary.shared, blocks
    )
    return rules.thread_registers + tiles + passing / threads / REGISTER


def copies(
    summary: KernelSummary, blocks: Blocks, warps: Real, gpu: Device
) -> Callable[[Sequence[str]], Real]:
    """
    Return how many threads hold each element of a tile, by its dimensions.

    Tiles without rows or without columns are small: 1.
    """
    if not _has_instructions(summary):
        return lambda dims: 1.0
    layout = layout_of(summary, blocks, warps, gpu)

    def repeated(dims: Sequence[str]) -> Real:
        if not summary.dot_rows & set(dims) or set(dims) <= summary.dot_rows:
            return 1.0
        tile = Term(tuple(dims), REGISTER)
        held = _of_tile(tile, summary, blocks, layout) * layout.threads * REGISTER
        return np.maximum(held / tile.per_tile(blocks), 1.0)

    return repeated


def alive_bytes(summary: KernelSummary, blocks: Blocks) -> Real:
    """Return the bytes of the tiles alive at the same time in a program."""
    points = dict.fromkeys(Point(point.tiles) for point in summary.points)
    return longest(_bytes(point, blocks) for point in points)


def _has_instructions(summary: KernelSummary) -> bool:
    return bool(summary.dots) and summary.dot_type != "f32"


def _bytes(point: Point, blocks: Blocks) -> Real:
    operands = point.operands
    read = () if operands is None else (operands.left, operands.right)
    return total(tile.per_tile(blocks) for tile in (*point.tiles, *read))


def _laid_out(summary: KernelSummary, blocks: Blocks, warps: Real, gpu: Device) -> Real:
    """Return the registers of a thread for tiles and operands, where most are alive."""
    layout = layout_of(summary, blocks, warps, gpu)
    copied = gpu.compiled.operand_fraction * (1 - layout.direct)

    @cache
    def held(tile: Term) -> Real:
        return _of_tile(tile, summary, blocks, layout)

    def alive(point: Point) -> Real:
        tiles = total(map(held, point.tiles))
        tiles += total(
            _of_vector(tile, summary, blocks, layout) for tile in point.broadcast
        )
        if point.operands is None:
            return tiles
        return tiles + copied * _of_operands(point.operands, blocks, layout)

    return longest(map(alive, dict.fromkeys(summary.points)))


def layout_of(
    summary: KernelSummary, blocks: Blocks, warps: Real, gpu: Device
) -> Layout:
    """Return how Triton spreads the warps of a program with contractions."""
    direct = reads_shared(summary, blocks, gpu)
    rows = product(blocks[dim] for dim in summary.dot_rows)
    columns = product(blocks[dim] for dim in summary.dot_columns - summary.chained)
    if summary.chained:
        along = np.where(np.greater_equal(rows, columns), warps, 1.0)
    else:
        along = _balanced(rows / ROWS, columns / (2 * COLUMNS), warps)
    along = np.where(np.greater(direct, 0), np.clip(rows / ROWS, 1, warps), along)
    threads = warps * gpu.warp_threads
    return Layout(along, warps / along, threads, direct, gpu.warp_threads)


def _balanced(rows: Real, columns: Real, warps: Real) -> Real:
    """Return the warps along rows if each factor of 2 goes where more is left."""
    along, across = np.ones_like(rows + warps), np.ones_like(rows + warps)
    while np.any(more := along * across < warps):
        taller = (rows / along >= columns / across) & (along < rows)
        along = np.where(more & taller, 2 * along, along)
        across = np.where(more & ~taller, 2 * across, across)
    return along


def _of_tile(
    tile: Term, summary: KernelSummary, blocks: Blocks, layout: Layout
) -> Real:
    """
    Return the registers of a thread for a tile.

    Instructions that read shared memory keep whole rows of what a chained product sums.
    A tile without rows is spread over all threads.
    """
    if not summary.dot_rows & set(tile.dims):
        each = np.maximum(tile.per_tile(blocks) / layout.threads, tile.weight)
        return each / REGISTER
    rows = product(blocks[dim] for dim in tile.dims if dim in summary.dot_rows)
    columns = product(blocks[dim] for dim in tile.dims if dim not in summary.dot_rows)
    whole = layout.direct if summary.chained & set(tile.dims) else 0.0
    warps = np.where(np.greater(whole, 0), 1.0, layout.columns)
    own_rows = np.maximum(rows / layout.rows, ROWS) / (layout.lanes / QUAD)
    own_columns = np.maximum(columns / warps, COLUMNS) / QUAD
    own = own_rows * np.where(np.greater(columns, 1), own_columns, 1.0)
    return tile.weight / REGISTER * own


def _of_vector(
    tile: Term, summary: KernelSummary, blocks: Blocks, layout: Layout
) -> Real:
    """Return the registers of a thread for what it combines with the rows of a tile."""
    if summary.dot_rows & set(tile.dims):
        return 0.0
    columns = product(blocks[dim] for dim in tile.dims)
    own = np.maximum(columns / layout.columns, COLUMNS) / QUAD
    return tile.weight / REGISTER * np.where(np.greater(columns, 1), own, 0.0)


def _of_operands(operands: Operands, blocks: Blocks, layout: Layout) -> Real:
    """Return the registers of a thread for both operands of a contraction."""

    def held(tile: Term, warps: Real, least: int) -> Real:
        depth = product(blocks[dim] for dim in tile.dims if dim in operands.depths)
        kept = product(blocks[dim] for dim in tile.dims if dim not in operands.depths)
        own = np.maximum(kept / warps, least) * depth / layout.lanes
        return tile.weight / REGISTER * own

    left = held(operands.left, layout.rows, ROWS)
    return left + held(operands.right, layout.columns, COLUMNS)
