"""
In how many subtiles a program computes its epilogue.

An epilogue needs registers for the accumulators, and for the values that it loads and
computes. For a tile of 128 x 256 these are more than there are. So the epilogue is
computed in subtiles, ranges of columns, one after another: only the accumulators are
there for the whole tile, the other values for one subtile (EPILOGUE_SUBTILE in Triton's
tutorial on persistent products, epilogue tiles in CUTLASS). Block sizes and launch
numbers may be arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from comet.cost.gpu.capacity import register_limit
from comet.cost.gpu.device import Device
from comet.cost.gpu.layouts import Layouts
from comet.cost.gpu.registers import LaunchNumbers, thread_registers
from comet.cost.gpu.summary import Evaluated, KernelSummary
from comet.cost.gpu.terms import Blocks, DividedEpilogue
from comet.cost.reals import Real

LEAST_COLUMNS = 16
"""The fewest columns of a subtile."""


def with_fewest_subtiles(
    summary: KernelSummary, blocks: Blocks, numbers: LaunchNumbers, gpu: Device
) -> tuple[LaunchNumbers, Real]:
    """
    Return numbers with the fewest subtiles with which registers suffice, and these.

    The number is a power of two. More subtiles are no faster, as each waits for its
    loads. It is 1 if registers never suffice, and if subtiles cannot divide the
    epilogue.
    """
    padded = summary.padded(Evaluated.of(summary, blocks))
    found: Real = 1.0
    registers = _needed(found, summary, padded, numbers, gpu)
    if summary.live.epilogue is None or numbers.specialize:
        return replace(numbers, subtiles=found), registers
    limit = register_limit(numbers.warps, gpu)
    most = _most_subtiles(summary.live.epilogue, summary, padded, numbers, gpu)
    missing = registers > limit
    for count in _counts(gpu):
        divisible = missing & np.less_equal(count, most)
        if not np.any(divisible):
            break
        needed = _needed(count, summary, padded, numbers, gpu)
        enough = divisible & (needed <= limit)
        found = np.where(enough, count, found)
        registers = np.where(enough, needed, registers)
        missing = missing & np.logical_not(enough)
    return replace(numbers, subtiles=found), registers


def repeated_waits(summary: KernelSummary, numbers: LaunchNumbers) -> Real:
    """Return how often more than once a program waits for loads of its epilogue."""
    waits = summary.live.epilogue is not None and summary.live.epilogue.loads
    return numbers.subtiles - 1 if waits else 0.0


def _counts(gpu: Device) -> Iterator[float]:
    """Yield the numbers of several subtiles that are tried, fewest first."""
    count = 2.0
    while count <= gpu.triton.stores.epilogue_subtiles:
        yield count
        count *= 2


def _needed(
    subtiles: Real,
    summary: KernelSummary,
    blocks: Blocks,
    numbers: LaunchNumbers,
    gpu: Device,
) -> Real:
    """Return the registers of a thread with a number of subtiles."""
    numbers = replace(numbers, subtiles=subtiles)
    return thread_registers(summary, blocks, numbers, gpu)


def _most_subtiles(
    epilogue: DividedEpilogue,
    summary: KernelSummary,
    blocks: Blocks,
    numbers: LaunchNumbers,
    gpu: Device,
) -> Real:
    """
    Return the most subtiles that can divide the accumulators, 1 for none.

    Tiles have to be whole, and a thread has to hold columns of all subtiles, so that
    `tl.split` moves no registers. Where matrix instructions read shared memory, one has
    all columns of a warp: there are no warps along columns. Others have few columns,
    and those of all warps alternate along a row. Read in the TTGIR of Triton 3.9.
    """
    layouts, dim = Layouts.once(summary, blocks, numbers.warps, gpu), epilogue.dim
    dot = layouts.product_of(epilogue.accumulators[0].dims)
    if dim not in dot.columns:
        return 1.0
    warps, columns = layouts.of[dot].columns, blocks[dim]
    alternating = warps * layouts.fragments[dot].columns
    contiguous = np.where(np.less_equal(warps, 1), 1.0, columns)
    least = np.where(np.greater(layouts.reads_shared, 0), contiguous, alternating)
    whole = np.equal(np.mod(summary.nest.extents[dim], columns), 0)
    return np.where(whole, columns / np.maximum(least, LEAST_COLUMNS), 1.0)
