"""
Whether the tiles of a program fit a multiprocessor of a GPU.

Sizes are bytes; block sizes and launch numbers may be arrays, one element per choice.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from comet.cost.gpu.device import Device
from comet.cost.gpu.layouts import reads_shared
from comet.cost.gpu.registers import REGISTER, alive_bytes, register_bound
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks
from comet.cost.gpu.work import ProgramNeeds
from comet.cost.reals import Real, longest


def shared_need(
    summary: KernelSummary,
    blocks: Blocks,
    stages: Real,
    gpu: Device,
    *,
    stationary: bool = False,
) -> Real:
    """
    Return the bytes of shared memory of one program.

    A tile has a buffer for each stage, except the stage that is computed on: its tile
    is in registers, unless matrix instructions read shared memory. Without a pipeline
    there is one buffer, through which the tile reaches registers.

    A loop-invariant tile has one buffer, and so has a `stationary` operand. If matrix
    instructions read registers, the tile passes through its buffer while the pipeline
    loads others, and computed operands pass through one more buffer
    (`tests/data/registers.csv`); if the pipeline is in an inner loop, it has ended by
    then, and its buffers are reused.

    After the loops, tiles of products that are added to memory pass through shared
    memory, one after another, as Triton 3.9 converts their layout.
    """
    blocks = summary.padded(blocks)
    computed_on = reads_shared(summary, blocks, gpu.triton.products)
    buffers = np.maximum(stages - 1 + computed_on, 1)
    kept = computed_on if stationary else None
    # Where copies pass registers, compilers use the same bytes again.
    asynchronous = 1.0 * (not gpu.triton.copies.copies_pass_registers)
    pipelined = np.greater(stages, 1) * _ends_with_its_loop(summary, blocks)
    pipelined = pipelined * asynchronous
    single = np.maximum(computed_on, pipelined)
    loops = summary.peak(summary.live.shared, blocks, buffers, single, kept)
    computed = longest((0.0, *_computed_operands(summary, blocks)))
    loops = loops + pipelined * (1 - computed_on) * computed
    added = longest((0.0, *(tile.per_tile(blocks) for tile in summary.live.added)))
    return np.maximum(loops, added)


def _ends_with_its_loop(summary: KernelSummary, blocks: Blocks) -> Real:
    """Return 1 if no loop with several iterations is inside another one, else 0."""
    return 1 - summary.is_looped(tuple(summary.nest.inner_dims), blocks)


def _computed_operands(summary: KernelSummary, blocks: Blocks) -> Iterator[Real]:
    """Yield the bytes of left operands of products that no pipeline loads."""
    loaded = {tile.dims for tiles in summary.live.shared for tile in tiles}
    for point in summary.live.points:
        if point.operands is not None and point.operands.left.dims not in loaded:
            yield point.operands.left.per_tile(blocks)


def holds(
    summary: KernelSummary,
    blocks: Blocks,
    shared: Real,
    gpu: Device,
    share: float = 1.0,
) -> Real:
    """
    Return 1 if one multiprocessor holds the live tiles of a program, else 0.

    `shared` are the bytes of shared memory that it needs, see `shared_need`; they may
    fill the fraction `share` of what there is.
    """
    alive = alive_bytes(summary, blocks, gpu.triton.stores.epilogue_subtiles)
    return (
        np.less_equal(alive, gpu.limits.register_bytes)
        * np.less_equal(shared, share * gpu.limits.shared_bytes)
        * 1.0
    )


def fits(
    summary: KernelSummary, blocks: Blocks, needs: ProgramNeeds, gpu: Device
) -> Real:
    """
    Return 1 if a multiprocessor holds a program, else 0.

    `needs` are the needs of a program with these `blocks`, see `program_needs`. Unlike
    in `holds`, these include all registers that a thread needs.
    """
    needed = needs.registers / (gpu.limits.warp_threads * needs.warps) / REGISTER
    room = holds(summary, blocks, needs.shared, gpu, gpu.triton.limits.shared_fraction)
    grouped = np.greater(needs.groups, 1) & np.less_equal(
        needs.registers, gpu.limits.register_bytes
    )
    few = np.less_equal(needed, register_limit(needs.warps, gpu))
    return np.where(few | grouped, room, 0.0)


def may_fit(summary: KernelSummary, blocks: Blocks, warps: Real, gpu: Device) -> Real:
    """
    Return 0 if no program with blocks of these sizes or larger fits, else 1.

    `summary` may lack live tiles, as that of `summarize_products` does.
    """
    needed = register_bound(summary, blocks, warps, gpu)
    return np.less_equal(needed, register_limit(warps, gpu)) * 1.0


def register_limit(warps: Real, gpu: Device) -> Real:
    """Return the most registers per thread that `thread_registers` may estimate."""
    held = gpu.limits.register_bytes / REGISTER / (gpu.limits.warp_threads * warps)
    rules = gpu.triton
    return np.minimum(rules.limits.most_registers, held) - rules.limits.spare_registers
