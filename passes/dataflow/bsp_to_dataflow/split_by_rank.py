"""
Splits the loop over a dimension into a loop over ranks, and one inside each shard.

Each iteration of the first loop is for what one rank sends or receives. Tiles keep
their extent unless a shard is shorter.
"""

from __future__ import annotations

from xdsl.ir import Block
from xdsl.rewriter import Rewriter

from comet.dialects.compound.dims import extents_of, with_extents
from comet.dialects.dataflow.rank_loops import tile_of
from comet.dialects.schedule.attributes import LoopAttr
from comet.dialects.schedule.node import NodeOp
from comet.passes.schedule.retile import set_loops


def split_by_rank(node: NodeOp, dim: str, ranks: int) -> None:
    """Split the loop of `node` over `dim`: a first loop is over the ranks' shards."""
    if [loop.dim for loop in node.loops].count(dim) > 1:
        return
    extent = next(e[dim] for value in node.ins if dim in (e := extents_of(value)))
    tile = tile_of(node, dim)
    shard = -(-extent // ranks)
    loops: list[LoopAttr] = []
    for loop in node.loops:
        if loop.dim == dim:
            loops.append(LoopAttr(dim, ranks, loop.axis))
            loop = LoopAttr(dim, -(-shard // min(tile, shard)), loop.axis)
        loops.append(loop)
    set_loops(node, _renumbered(loops))
    if tile > shard:
        _cap(node.body.block, dim, shard)


def _renumbered(loops: list[LoopAttr]) -> list[LoopAttr]:
    """Return loops whose axes, if they have any, are g0, g1, .."""
    return [
        LoopAttr(loop.dim, loop.factor, None if loop.axis is None else f"g{index}")
        for index, loop in enumerate(loops)
    ]


def _cap(block: Block, dim: str, extent: int) -> None:
    """Limit all values in `block` to `extent` along `dim`; adapt loops to it."""
    values = [
        *block.args,
        *(result for op in block.walk() for result in op.results),
        *(
            argument
            for op in block.walk()
            for region in op.regions
            for inner in region.blocks
            for argument in inner.args
        ),
    ]
    for value in values:
        if extents_of(value).get(dim, 0) > extent:
            capped = with_extents(value.type, {dim: extent})
            Rewriter.replace_value_with_new_type(value, capped)
    for op in block.walk():
        if isinstance(op, NodeOp) and dim in op.factors:
            _refit(op, dim)


def _refit(node: NodeOp, dim: str) -> None:
    """Set the factor of the loop over `dim` from its tiles."""
    extent = next(e[dim] for value in node.ins if dim in (e := extents_of(value)))
    factor = -(-extent // tile_of(node, dim))
    loops = [
        LoopAttr(dim, factor, loop.axis) if loop.dim == dim else loop
        for loop in node.loops
    ]
    set_loops(node, loops)
