"""
The loads of software pipelines, and the operations that they wait for.

Read in kernels that Triton 3.6 compiles for sm_90. Block sizes may be arrays, one
element per choice.
"""

from __future__ import annotations

import numpy as np

from comet.cost.gpu.device import Device
from comet.cost.gpu.layouts import Layouts
from comet.cost.gpu.registers import replication
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks, Product
from comet.cost.reals import Real, product, total


def joined_rounds(summary: KernelSummary, blocks: Blocks) -> Real:
    """Return how many waits in loops of contractions are merged with another wait."""
    return total(
        product(summary.iterated(dim, blocks) for dim in wait.loops)
        * (1 - summary.is_looped(wait.joined, blocks))
        for wait in summary.sync.waits
        if wait.joined is not None and wait.loops in summary.products.loops
    )


def loaded_outside(summary: KernelSummary, blocks: Blocks) -> Real:
    """Return the bytes that one program loads outside of loops of contractions."""
    loads = zip(summary.moves.loads, summary.moved_by_loads(blocks), strict=True)
    inside = summary.products.loops
    return total(moved for load, moved in loads if load.loops not in inside)


def read_operations(
    summary: KernelSummary, blocks: Blocks, warps: Real, gpu: Device
) -> Real:
    """
    Return the operations of contractions that end before a loop starts later loads.

    These contractions give results that the loop reads; a sum over the loop is not one
    of them. If matrix instructions read registers, all are: each ends before the next
    starts.
    """
    asynchronous = Layouts.once(summary, blocks, warps, gpu).reads_shared
    replicas = replication(summary, blocks, warps, gpu)
    return total(
        summary.per_program((term,), blocks)
        * replicas(dims)
        * (1 - asynchronous * _sums_in_loop(dot, summary, blocks))
        for term, dims, dot in zip(
            summary.products.operations,
            summary.products.results,
            summary.products.roles,
            strict=True,
        )
    )


def _sums_in_loop(dot: Product, summary: KernelSummary, blocks: Blocks) -> Real:
    """Return 1 if the innermost loop around a contraction sums it, else 0."""
    return total(
        np.greater(summary.trips(dim, blocks), 1)
        * (1 - summary.is_looped(dot.loops[position + 1 :], blocks))
        for position, dim in enumerate(dot.loops)
        if dim in dot.summed
    )
