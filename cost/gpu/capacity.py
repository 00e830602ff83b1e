"""
Whether a multiprocessor of a GPU has room for the tiles of a program.

One program runs on one multiprocessor. Sizes are bytes; block sizes and launch numbers
may be arrays, one element per choice.
"""

from __future__ import annotations

import numpy as np

from comet.cost.gpu.kernel import Device
from comet.cost.gpu.layouts import reads_shared
from comet.cost.gpu.registers import (
    REGISTER,
    LaunchNumbers,
    alive_bytes,
    least_registers,
    thread_registers,
)
from comet.cost.gpu.summary import Blocks, KernelSummary
from comet.cost.reals import Real


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
    shared = shared_need(summary, blocks, numbers.stages, gpu)
    return (
        np.less_equal(alive_bytes(summary, blocks), gpu.register_bytes)
        * np.less_equal(shared, share * gpu.shared_bytes)
        * 1.0
    )


def fits(
    summary: KernelSummary, blocks: Blocks, numbers: LaunchNumbers, gpu: Device
) -> Real:
    """Return 1 if a program also has the registers that the compiler adds, else 0."""
    needed = thread_registers(summary, blocks, numbers, gpu)
    room = holds(summary, blocks, numbers, gpu, gpu.compiled.shared_fraction)
    return np.less_equal(needed, most_registers(numbers.warps, gpu)) * room


def may_fit(summary: KernelSummary, blocks: Blocks, warps: Real, gpu: Device) -> Real:
    """
    Return 0 if programs with blocks of at least these sizes do not fit, else 1.

    Also if `summary` lacks some of what is alive, see `summarize_products`.
    """
    needed = least_registers(summary, blocks, warps, gpu)
    return np.less_equal(needed, most_registers(warps, gpu)) * 1.0


def most_registers(warps: Real, gpu: Device) -> Real:
    """Return the most registers of a thread that a program may need by our estimate."""
    held = gpu.register_bytes / REGISTER / (gpu.warp_threads * warps)
    rules = gpu.compiled
    return np.minimum(rules.most_registers, held) - rules.spare_registers
