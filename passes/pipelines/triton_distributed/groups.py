"""The sizes of groups of programs that share the rows of a dimension."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from comet.cost.from_ir.gpus import device_of
from comet.dialects.arch import attached_system
from comet.passes.analysis.levels import IRLevel
from comet.passes.graph.decompose import DecomposePass
from comet.passes.pipelines.triton_distributed.start import plan_start
from comet.passes.sharding.add_ctas import AXIS as CTAS
from comet.passes.sharding.dim_axes import DimAxes, extents_along

LEAST_SHARD, MOST_SHARD = 64, 256
"""Elements of a row that a program of a group has: tiles that registers hold."""


def group_sizes(
    ctx: Context, module: ModuleOp, dims: Sequence[DimAxes], ranks: int
) -> Iterator[int]:
    """
    Yield the sizes of groups to try: powers of two that leave each program a tile.

    `dims` are those of the option `dim`. Programs share the first one, of which ranks
    have shards, or the one with their axis.
    """
    shared = next((each for each in dims if CTAS in (each.axes or ())), dims[0])
    over_ranks = 1 if shared.axes == (CTAS,) else ranks
    copy = module.clone()
    if plan_start(copy, ranks)[0] is IRLevel.GRAPH:
        DecomposePass(accumulator="f32").apply(ctx, copy)
    extent = -(-max(extents_along(copy, shared.dim), default=0) // over_ranks)
    most = device_of(attached_system(module)).multiprocessors
    sizes = (2**power for power in range(1, most.bit_length()))
    for size in sizes:
        if size <= most and LEAST_SHARD * size <= extent <= MOST_SHARD * size:
            yield size
