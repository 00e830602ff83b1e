"""
The registers of a thread in kernels on rows, without products.

Block sizes and launch numbers may be arrays, one element per choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from comet.cost.gpu.device import Device
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks, Term
from comet.cost.reals import Real, longest, product, total


@dataclass(frozen=True)
class RowLayout:
    """
    How the threads of a program divide a tile.

    A thread has as many successive elements of a row as it loads at a time. The next
    threads have the next elements of the row, and after its end those of other rows
    (Triton's blocked layout).
    """

    blocks: Blocks
    column: str
    """The dimension along a row: the last one of a tile."""
    along: Real
    """The number of threads along one row."""
    rows: Real
    """The number of rows that all threads cover at a time."""

    @classmethod
    def of(
        cls,
        tile: Term,
        summary: KernelSummary,
        blocks: Blocks,
        threads: Real,
        gpu: Device,
    ) -> RowLayout:
        """Return the layout of a tile that a kernel loads."""
        column = tile.dims[-1]
        vector = np.gcd(
            summary.nest.extents[column], int(gpu.memory.load_bytes // tile.weight)
        )
        along = np.clip(blocks[column] / vector, 1, threads)
        return cls(blocks, column, along, threads / along)

    def bytes_of(self, tile: Term) -> Real:
        """
        Return the bytes of a thread for a tile.

        A value with one element per row is in all threads along the row. A value with
        one element per column is in all threads with these columns.
        """
        rows = product(self.blocks[dim] for dim in tile.dims if dim != self.column)
        held = tile.weight * np.maximum(rows / self.rows, 1)
        across = self.blocks[self.column] / self.along
        return held * across if self.column in tile.dims else held


def whole_tiles(
    summary: KernelSummary, blocks: Blocks, threads: Real, gpu: Device
) -> Real:
    """
    Return the most bytes of tiles that a thread has in registers at the same time.

    The kernel computes each op on a whole tile before the next one.
    """
    loaded = [tile for tile in summary.moves.loads if len(tile.dims) > 1]
    if not loaded:
        alive = (total(t.per_tile(blocks) for t in p.tiles) for p in summary.peaks)
        return longest(alive) / threads
    narrowest = min(loaded, key=lambda tile: (-len(tile.dims), tile.weight))
    layout = RowLayout.of(narrowest, summary, blocks, threads, gpu)
    held = cache(layout.bytes_of)
    return longest(total(map(held, point.tiles)) for point in summary.peaks)


def masked_registers(
    summary: KernelSummary, blocks: Blocks, threads: Real, gpu: Device
) -> Real:
    """
    Return the registers of a thread for addresses in a loop along masked rows.

    LLVM computes the address of each load and store before the loop, and increments it
    in each iteration. If the last block of a row is not masked, accesses use immediate
    offsets from few addresses instead.
    """
    each = gpu.triton.addresses.masked_address_registers

    @cache
    def accesses(tile: Term) -> Real:
        looped = [dim for dim in tile.loops if dim in tile.dims]
        masked = total(
            np.greater(summary.nest.extents[dim] % blocks[dim], 0)
            * summary.is_looped((dim,), blocks)
            for dim in looped
        )
        return np.minimum(masked, 1.0) * tile.per_tile(blocks) / gpu.memory.load_bytes

    moved = longest(total(map(accesses, tiles)) for tiles in summary.live.accessed)
    return each * moved / threads if each and summary.live.accessed else 0.0


def stored_registers(
    summary: KernelSummary, blocks: Blocks, threads: Real, gpu: Device
) -> Real:
    """
    Return the registers of a thread for what it stores in a loop along rows.

    Rows are too far apart for immediate offsets. LLVM computes the offsets of stores
    together with those of loads, at the start of an iteration, and mostly keeps the
    part that is the same in all iterations.
    """
    each = gpu.triton.addresses.stored_address_registers
    stored = total(
        tile.per_tile(blocks) * summary.is_looped(tile.loops, blocks)
        for tile in summary.moves.stores
        if tile.loops
    )
    return (
        each * stored / threads / gpu.memory.load_bytes
        if summary.live.accessed
        else 0.0
    )
