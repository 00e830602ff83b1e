"""
How much of a GPU's registers and shared memory the tiles of a program need.

One program runs on one multiprocessor. Sizes are bytes; block sizes and launch numbers
may be arrays, one element per choice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from comet.cost.gpu.kernel import Device
from comet.cost.gpu.summary import Blocks, KernelSummary
from comet.cost.reals import Real, longest, product

REGISTER = 4
"""Bytes of a register."""


@dataclass(frozen=True)
class LaunchNumbers:
    """Warps of a program and stages of its software pipeline."""

    warps: Real
    stages: Real


def shared_need(
    summary: KernelSummary, blocks: Blocks, stages: Real, gpu: Device
) -> Real:
    """
    Return the bytes of shared memory of one program.

    Tiles of all stages count, except those that are being computed on: these are in
    registers unless the matrix instruction reads shared memory. Without a pipeline, one
    copy remains, through which they reach the registers. A tile that is loaded before
    the loop is always being computed on.
    """
    working = reads_shared(summary, blocks, gpu)
    copies = np.maximum(stages - 1 + working, 1)
    return summary.peak(summary.shared, blocks, copies, working)


def reads_shared(summary: KernelSummary, blocks: Blocks, gpu: Device) -> Real:
    """Return 1 if matrix instructions read rows from shared memory, else 0."""
    if summary.dot_type == "f32":
        return 0.0
    least = gpu.compiled.shared_operand_rows
    return product(
        np.greater_equal(blocks[dim], least) * 1.0 for dim in summary.dot_rows
    )


def register_need(summary: KernelSummary, blocks: Blocks, gpu: Device) -> Real:
    """
    Return the bytes of registers that the tiles of one program need.

    Operands of a contraction pass through registers unless the instruction reads shared
    memory; those that are loaded before its loop remain there. Narrow loads also need
    registers, on their way to shared memory.
    """
    narrow = summary.peak(summary.narrow, blocks)
    alive = summary.peak(summary.registers, blocks)
    passing = summary.peak(summary.fragments, blocks, invariant=0.0)
    staying = summary.peak(summary.shared, blocks, copies=0.0)
    needed = longest((alive, passing)) + staying
    direct = np.greater(reads_shared(summary, blocks, gpu), 0)
    return np.where(direct, alive, needed) + narrow


def holds(
    summary: KernelSummary,
    blocks: Blocks,
    numbers: LaunchNumbers,
    gpu: Device,
    share: float = 1.0,
) -> Real:
    """
    Return 1 if one multiprocessor holds what is alive in a program, else 0.

    Tiles may use the fraction `share` of its shared memory.
    """
    crowded = summary.peak(summary.crowded, blocks)
    shared = shared_need(summary, blocks, numbers.stages, gpu)
    return (
        np.less_equal(crowded, gpu.register_bytes)
        * np.less_equal(shared, share * gpu.shared_bytes)
        * 1.0
    )


def fits(
    summary: KernelSummary, blocks: Blocks, numbers: LaunchNumbers, gpu: Device
) -> Real:
    """
    Return 1 if a multiprocessor also has room for what the compiler adds, else 0.

    The compiler adds addresses, masks, and copies.
    """
    rules = gpu.compiled
    exact = summary.dot_type == "f32" and bool(summary.dots)
    per_thread = rules.tile_registers_f32 if exact else rules.tile_registers
    limit = np.minimum(
        gpu.warp_threads * numbers.warps * (REGISTER * per_thread),
        rules.register_fraction * gpu.register_bytes,
    )
    room = holds(summary, blocks, numbers, gpu, rules.shared_fraction)
    return np.less_equal(register_need(summary, blocks, gpu), limit) * room
