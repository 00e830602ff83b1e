"""
Programs that are clusters of thread blocks: their block sizes and their exchanges.

A cluster divides the columns of a program among its thread blocks, and block sizes are
those of one thread block. Block sizes and launch numbers may be arrays, one element per
choice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from comet.cost.gpu.device import Device
from comet.cost.gpu.layouts import Layouts
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks, Term
from comet.cost.reals import Real, total

MOST_ROWS = 128
"""The most rows of a tile whose columns Triton distributes: PlanCTA, getCTATiling."""
LEAST_COLUMNS = 64
"""The fewest columns of a thread block, see there."""

EXCHANGES = 2
"""
The exchanges of a step of a reduction: Triton has a barrier of the cluster before the
loads from other blocks, and one after them. Read in kernels compiled for sm_90.
"""


def cluster_sizes(summary: KernelSummary, gpu: Device) -> Sequence[int]:
    """Return the thread blocks that a program of a kernel may have, 1 first."""
    most = 1 if summary.nest.split is None else gpu.limits.most_cluster_blocks
    return [2**power for power in range(most.bit_length())]


def block_of(summary: KernelSummary, blocks: Blocks, cluster: Real) -> Blocks:
    """Return the block sizes of one thread block, from those of the whole program."""
    if summary.nest.split is None:
        return blocks
    column = summary.nest.split.column
    return {**blocks, column: blocks[column] / cluster}


def is_divided(summary: KernelSummary, blocks: Blocks, cluster: Real) -> Real:
    """Return 1 if Triton divides the columns of a program as `blocks` say, else 0."""
    if summary.nest.split is None:
        return np.less_equal(cluster, 1) * 1.0
    rows = np.less_equal(blocks[summary.nest.split.row], MOST_ROWS)
    columns = np.greater_equal(blocks[summary.nest.split.column], LEAST_COLUMNS)
    return np.where(np.greater(cluster, 1), rows & columns, True) * 1.0


def cluster_exchanges(
    summary: KernelSummary, blocks: Blocks, warps: Real, cluster: Real, gpu: Device
) -> Real:
    """Return how often a block waits for values of others of its cluster."""
    if summary.nest.split is None or not np.any(np.greater(cluster, 1)):
        return 0.0
    steps = reduction_steps(summary, blocks, warps, cluster, gpu)
    found = EXCHANGES * steps * summary.nest.split.reductions
    return np.greater(cluster, 1) * found  # a number for one choice, which has a hash


def reduction_steps(
    summary: KernelSummary, blocks: Blocks, warps: Real, cluster: Real, gpu: Device
) -> Real:
    """
    Return the steps in which the blocks of a cluster reduce a row.

    Each warp along the columns of each thread block has a part of the row. One step
    reduces as many parts as there are lanes that hold a row
    (`tests/data/cluster_registers.csv`).
    """
    layouts = Layouts.once(summary, summary.padded(blocks), warps, gpu)
    (dot,) = dict.fromkeys(summary.products.roles)
    parts = cluster * layouts.of[dot].columns
    return np.where(np.greater(parts, layouts.fragments[dot].lanes), 2.0, 1.0)


def repeated_bytes(
    summary: KernelSummary, blocks: Blocks, warps: Real, cluster: Real, gpu: Device
) -> Real:
    """
    Return the bytes that the threads of a block hold to store matrices, 0 if once each.

    For stores, the threads of a warp, and then the warps, are along whole rows. If they
    cover more columns than a thread block has, several threads hold the same elements.
    """
    if summary.nest.split is None or not gpu.triton.stores.stores_full_rows:
        return 0.0
    column = summary.nest.split.column
    bytes_along = gpu.limits.warp_threads * warps * gpu.memory.load_bytes

    def held(store: Term) -> Real:
        spread = np.minimum(bytes_along / store.weight, cluster * blocks[column])
        return store.per_tile(blocks) * np.maximum(spread / blocks[column], 1.0)

    stored = total(
        held(store) for store in summary.moves.stores if column in store.dims
    )
    return np.where(np.greater(cluster, 1), stored, 0.0)
