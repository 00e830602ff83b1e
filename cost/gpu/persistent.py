"""
The work of persistent programs, each of which computes several tiles.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from comet.cost.gpu.capacity import shared_need
from comet.cost.gpu.device import Device
from comet.cost.gpu.layouts import reads_shared
from comet.cost.gpu.registers import REGISTER
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks
from comet.cost.gpu.work import KernelWork
from comet.cost.reals import Real


def persistent_work(
    work: KernelWork,
    summary: KernelSummary,
    blocks: Blocks,
    programs: Real,
    gpu: Device,
    *,
    stationary: bool,
    tiles_ahead: bool = False,
    kept: Real = 0.0,
) -> KernelWork:
    """
    Return the work of a kernel whose tiles are computed by persistent `programs`.

    Without a loop of several iterations in a tile, the software pipeline is that of the
    loop over tiles: it loads the next tile ahead. Operands that all tiles read may be
    `stationary`: they are loaded once, and have one buffer each. `tiles_ahead` says
    that tiles without products are loaded ahead, too, if copies can do without
    registers. `kept` are bytes that stay in registers: `cost/from_ir/tile_loops.py`.
    """
    work = with_tile_loop(work, summary, gpu, kept)
    loops, moved = work.loops, work.moved
    if tiles_ahead and can_load_ahead(gpu) and np.all(np.greater(loops.stages, 1)):
        return _loading_tiles_ahead(work)
    ahead = loops.loads_ahead or bool(pipelines_tiles(summary, blocks))
    work = replace(work, loops=replace(loops, loads_ahead=ahead))
    if not stationary:
        return work
    again = 1 - np.minimum(programs / work.programs, 1)
    saved = again * stationary_bytes(summary, blocks)
    shared = shared_need(summary, blocks, loops.stages, gpu, stationary=True)
    return replace(
        work,
        moved=replace(moved, l2=moved.l2 - saved),
        needs=replace(work.needs, shared=shared),
    )


def can_load_ahead(gpu: Device) -> bool:
    """Whether copies reach shared memory while a program computes something else."""
    return not gpu.triton.copies.copies_pass_registers


def _loading_tiles_ahead(work: KernelWork) -> KernelWork:
    """
    Return the work of programs that load later tiles while they compute one.

    What a tile loads has a buffer for each stage but the one that is computed on, which
    is in registers (`tests/data/tile_loops.csv`).
    """
    loops, moved, needs = work.loops, work.moved, work.needs
    buffers = (loops.stages - 1) * (moved.l2 - moved.stored)
    return replace(
        work,
        moved=replace(moved, exposed=0),
        loops=replace(loops, pipelines=0, exposed=0, tiles_ahead=True),
        needs=replace(needs, shared=np.maximum(needs.shared, buffers)),
    )


def with_tile_loop(
    work: KernelWork, summary: KernelSummary, gpu: Device, kept: Real
) -> KernelWork:
    """
    Return the work of a kernel with the registers that a loop over tiles adds.

    What is computed from the number of a program stays alive in the loop, and what does
    not depend on the tile is hoisted before it (`kept` bytes); of a loop
    written as two, both need it.
    """
    loops, needs = gpu.triton.loops, work.needs
    threads = gpu.limits.warp_threads * needs.warps
    added = loops.outer_loop_registers
    added += loops.second_loop_registers * bool(summary.nest.unmasked)
    registers = np.minimum(
        needs.registers + added * threads * REGISTER + kept, gpu.limits.register_bytes
    )
    return replace(work, needs=replace(needs, registers=registers))


def staged_work(work: KernelWork, staged: Real, beside: bool) -> KernelWork:
    """
    Return the work of a kernel whose results pass through `staged` bytes.

    They are `beside` the buffers of the software pipeline in a loop over tiles, and
    where they are what a loop sums: Triton allocates a block right after what it holds,
    so before it frees the buffers of that loop (ReorderInstructions.cpp). Else they
    take their place: as Triton 3.6 and 3.9 compile for sm_90,
    benchmarks/figures/kernels.md.
    """
    needs = work.needs
    kept = needs.shared if beside else 0.0
    shared = np.maximum(needs.shared, kept + staged)
    return replace(work, needs=replace(needs, shared=shared))


def pipelines_tiles(summary: KernelSummary, blocks: Blocks) -> Real:
    """Return 1 if no loop in a tile has several iterations, else 0."""
    return 1 - summary.is_looped(summary.nest.loops, blocks)


def stationary_bytes(summary: KernelSummary, blocks: Blocks) -> Real:
    """Return the bytes of the staged tiles that all tiles of the launch grid read."""
    return summary.peak(
        summary.held.shared, blocks, copies=0.0, invariant=0.0, stationary=1.0
    )


def can_be_stationary(summary: KernelSummary, blocks: Blocks, gpu: Device) -> Real:
    """
    Return 1 if programs can keep operands of products, which are then read, else 0.

    Matrix instructions have to read them from shared memory: registers would not hold
    them.
    """
    some = np.greater(stationary_bytes(summary, blocks), 0)
    return some * reads_shared(summary, blocks, gpu.triton.products)
