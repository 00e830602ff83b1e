"""
What the tiles of a program take of the registers and the shared memory of a GPU.

One program runs on one multiprocessor. Sizes are bytes; block sizes and launch numbers
may be arrays, one element per choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from comet.cost.gpu.kernel import Device
from comet.cost.gpu.summary import Blocks, KernelSummary
from comet.cost.reals import Real, longest, product

DATA_REGISTERS = 128
"""
Registers of 4 bytes that a thread may fill with tiles; the rest of its 255 are for
addresses, masks and what the compiler keeps twice.
"""

EXACT_REGISTERS = 72
"""The same for f32, whose products each thread computes from operands of its own."""

REGISTER_SHARE = 0.55
SHARED_SHARE = 0.75
"""Shares of a multiprocessor's memories that the tiles of one program may fill."""

MIN_DOT_BLOCK = 16
"""The smallest extent that a tensor core instruction takes along each dimension."""

GROUP_ROWS = 64
"""From so many rows on, matrix instructions read operands from shared memory."""


@dataclass(frozen=True)
class LaunchNumbers:
    """Warps of a program and stages of its software pipeline."""

    warps: Real
    stages: Real


def shared_need(summary: KernelSummary, blocks: Blocks, stages: Real) -> Real:
    """
    Return the bytes of shared memory of one program.

    Tiles of all stages are there but those that are worked on, which are in registers
    unless the matrix instruction reads shared memory. A tile that is loaded before the
    loop is always worked on.
    """
    loading = np.maximum(stages - 1, 1)
    working = reads_shared(summary, blocks)
    return summary.peak(summary.shared, blocks, loading + working, working)


def reads_shared(summary: KernelSummary, blocks: Blocks) -> Real:
    """Return 1 where matrix instructions take groups of rows from shared memory."""
    if summary.dot_type == "f32":
        return 0.0
    return product(
        np.greater_equal(blocks[dim], GROUP_ROWS) * 1.0 for dim in summary.dot_rows
    )


def register_need(summary: KernelSummary, blocks: Blocks) -> Real:
    """
    Return the bytes of registers that the tiles of one program take.

    Operands of a contraction pass through registers unless the instruction reads
    shared memory; those that are loaded before its loop stay there. What is loaded in
    small pieces takes registers too, on its way to shared memory.
    """
    pieces = summary.peak(summary.pieces, blocks)
    alive = summary.peak(summary.registers, blocks)
    passing = summary.peak(summary.fragments, blocks, standing=0.0)
    staying = summary.peak(summary.shared, blocks, copies=0.0)
    needed = longest((alive, passing)) + staying
    direct = np.greater(reads_shared(summary, blocks), 0)
    return np.where(direct, alive, needed) + pieces


def fits(
    summary: KernelSummary, blocks: Blocks, numbers: LaunchNumbers, gpu: Device
) -> Real:
    """Return 1 where the tiles of one program fit a multiprocessor, else 0."""
    registers = register_need(summary, blocks)
    exact = summary.dot_type == "f32" and bool(summary.dots)
    per_thread = 4 * (EXACT_REGISTERS if exact else DATA_REGISTERS)
    limit = np.minimum(
        32 * numbers.warps * per_thread, REGISTER_SHARE * gpu.register_bytes
    )
    crowded = summary.peak(summary.crowded, blocks)
    shared = shared_need(summary, blocks, numbers.stages)
    return (
        np.less_equal(registers, limit)
        * np.less_equal(crowded, gpu.register_bytes)
        * np.less_equal(shared, SHARED_SHARE * gpu.shared_bytes)
        * 1.0
    )
