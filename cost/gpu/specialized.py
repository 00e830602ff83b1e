"""
The work of kernels whose warps are specialized.

One group of warps loads; others compute, each with a part of the rows. Together they
get all registers of a multiprocessor. `specialized` of the hardware file has the
numbers. Counts may be arrays, one element per choice.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from comet.cost.gpu.device import Device
from comet.cost.gpu.registers import LaunchNumbers, thread_registers
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks
from comet.cost.gpu.triton_rules import SpecializedWarps
from comet.cost.gpu.work import KernelWork, ProgramNeeds
from comet.cost.reals import Real, Truth, longest, product


def specialized_needs(
    needs: ProgramNeeds, summary: KernelSummary, blocks: Blocks, gpu: Device
) -> ProgramNeeds:
    """
    Return the needs of a program with producer warps.

    Results pass through additional shared memory. The registers are infinite if groups
    of warps cannot compute such blocks, or if the GPU has no producer warps.
    """
    if (warps := gpu.triton.specialized) is None:
        return replace(needs, registers=np.inf)
    fit = _fit_groups(summary, blocks, warps, gpu)
    stored = _largest_store(summary, blocks)
    return replace(
        needs,
        groups=warps.groups,
        registers=np.where(fit, gpu.limits.register_bytes, np.inf),
        shared=needs.shared + stored + warps.shared_bytes,
    )


def persistent_shared_bytes(
    needs: ProgramNeeds, summary: KernelSummary, blocks: Blocks
) -> Real:
    """
    Return the shared memory of persistent programs, from the `needs` of others.

    Producer warps load the next tile while the groups still compute, so that tiles that
    are loaded before the loops have two buffers. Only one group at a time has its part
    of the results in shared memory. Read in attention by Triton 3.6 and 3.9 for sm_90.
    """
    ahead = summary.peak(summary.live.shared, blocks, copies=0.0)
    waiting = _largest_store(summary, blocks) * (1 - 1 / needs.groups)
    return np.where(
        np.greater(needs.groups, 1), needs.shared + ahead - waiting, needs.shared
    )


def _largest_store(summary: KernelSummary, blocks: Blocks) -> Real:
    return longest((0.0, *(tile.per_tile(blocks) for tile in summary.moves.stores)))


def specialized_work(
    work: KernelWork, summary: KernelSummary, blocks: Blocks, gpu: Device
) -> KernelWork:
    """
    Return the work of a kernel with producer warps.

    The groups wait once for all loads of an iteration, and at first for the tiles that
    are loaded before the loop.
    """
    if gpu.triton.specialized is None:
        return work
    rounds = longest(
        product(summary.iterated(dim, blocks) for dim in wait.loops)
        for wait in summary.sync.waits
    )
    pipelines = work.loops.pipelines + 1
    loops = replace(work.loops, rounds=rounds, joined=0.0, pipelines=pipelines)
    return replace(work, loops=loops)


def _fit_groups(
    summary: KernelSummary, blocks: Blocks, warps: SpecializedWarps, gpu: Device
) -> Truth:
    """
    Return whether groups have whole matrix instructions, and registers suffice.

    Loops inside the specialized one have one iteration.
    """
    rows = longest(
        product(blocks[dim] for dim in dot.rows - dot.batch)
        for dot in summary.products.roles
    )
    inside = longest(
        product(summary.trips(dim, blocks) for dim in dot.loops[1:])
        for dot in summary.products.roles
    )
    numbers = LaunchNumbers(warps.warps * warps.groups, warps.stages)
    needed = thread_registers(summary, blocks, numbers, gpu)
    fit = np.less_equal(needed, warps.registers - gpu.triton.limits.spare_registers)
    return np.equal(rows, warps.groups * warps.rows) & np.less_equal(inside, 1) & fit
