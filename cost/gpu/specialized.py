"""
The work of kernels whose warps are specialised, in what Triton makes of them for sm_90.

One group of four warps loads; two compute, each with a part of the rows. Together they
get all registers of a multiprocessor, by `setmaxnreg` 232 a thread where they compute.
Read in attention compiled by Triton 3.6, of 18 tilings: those of 64 rows a group and
at most 232 registers spill nothing. Counts may be arrays, one element per choice.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from comet.cost.gpu.device import Device
from comet.cost.gpu.kernel import KernelWork
from comet.cost.gpu.registers import LaunchNumbers, thread_registers
from comet.cost.gpu.summary import Blocks, KernelSummary
from comet.cost.reals import Truth, longest, product

WARPS = 4
"""The warps of a program whose loops Triton specialises: those of a group."""
STAGES = 2
"""The most stages of a loop with several products; see benchmarks/figures/h200.md."""
GROUPS = 2
"""The groups that compute."""
GROUP_ROWS = 64
"""The rows of a group: those of a matrix instruction of four warps, wgmma."""
GROUP_REGISTERS = 232
"""The registers of a thread of a group that computes."""
PASSING_BYTES = 17408
"""Shared memory beside tiles and results: what groups pass to each other."""


def specialized_work(
    work: KernelWork, summary: KernelSummary, blocks: Blocks, gpu: Device
) -> KernelWork:
    """
    Return the work of a kernel if warps of their own load.

    These wait once for all loads of an iteration, and first for the tiles before the
    loop. Results pass through shared memory of their own. Registers are infinite where
    groups cannot compute such blocks.
    """
    rounds = longest(
        product(summary.iterated(dim, blocks) for dim in loops)
        for loops in summary.rounds
    )
    fit = _fit_groups(summary, blocks, gpu)
    stored = longest((0.0, *(tile.per_tile(blocks) for tile in summary.stores)))
    return replace(
        work,
        groups=GROUPS,
        rounds=rounds,
        pipelines=work.pipelines + 1,
        registers=np.where(fit, gpu.register_bytes, np.inf),
        shared=work.shared + stored + PASSING_BYTES,
    )


def _fit_groups(summary: KernelSummary, blocks: Blocks, gpu: Device) -> Truth:
    """
    Return whether groups have whole matrix instructions, and registers suffice.

    Loops inside the specialised one have one iteration.
    """
    rows = longest(
        product(blocks[dim] for dim in dot.rows - dot.batch) for dot in summary.products
    )
    inside = product(summary.trips(dim, blocks) for dim in summary.inner_dims)
    numbers = LaunchNumbers(WARPS * GROUPS, STAGES)
    needed = thread_registers(summary, blocks, numbers, gpu)
    fit = np.less_equal(needed, GROUP_REGISTERS - gpu.compiled.spare_registers)
    return np.equal(rows, GROUPS * GROUP_ROWS) & np.less_equal(inside, 1) & fit
