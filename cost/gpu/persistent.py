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

    If a tile has no loop of several iterations, the loop over tiles is pipelined: it
    loads the next tile ahead. With `stationary`, operands that all tiles read are
    loaded once, and have one buffer each. With `tiles_ahead`, tiles without products
    are loaded ahead, too, if copies need no registers. `kept` bytes stay in registers
    from tile to tile, see `cost/from_ir/tile_loops.py`.
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

    The loads of a tile have a buffer for each stage, except the stage that is computed
    on, which is in registers (`tests/data/tile_loops.csv`).
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

    Values that depend on the program id stay alive in the loop, and values that do not
    depend on the tile are hoisted before it (`kept` bytes). If `unmask-loops` has
    written a loop as two, both loops add registers.
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

    These bytes of shared memory are needed `beside` the buffers of the software
    pipeline in a loop over tiles, and if the stored value is the sum of a loop: Triton
    allocates the staging buffer right after that value, before it frees the buffers of
    the loop (ReorderInstructions.cpp). Otherwise they reuse these buffers (Triton 3.6
    and 3.9 for sm_90, benchmarks/figures/kernels.md).
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
        summary.live.shared, blocks, copies=0.0, invariant=0.0, stationary=1.0
    )


def can_be_stationary(summary: KernelSummary, blocks: Blocks, gpu: Device) -> Real:
    """
    Return 1 if programs can keep operands of products, which are then read, else 0.

    Matrix instructions have to read them from shared memory: registers would not hold
    them.
    """
    some = np.greater(stationary_bytes(summary, blocks), 0)
    return some * reads_shared(summary, blocks, gpu.triton.products)
