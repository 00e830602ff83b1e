"""
Rows over ranks: loops that visit what one rank sent, or made for one rank, at a time.

The row of a dimension becomes two: the first runs over the ranks' shares, the second
cuts a share into tiles. Tiles keep their extent unless a share is shorter.
"""

from __future__ import annotations

from xdsl.ir import Block
from xdsl.rewriter import Rewriter

from comet.dialects.compound.dims import extents_of, with_extents
from comet.dialects.dataflow.rank_loops import tile_of
from comet.dialects.schedule.attributes import LoopAttr
from comet.dialects.schedule.node import NodeOp
from comet.passes.schedule.retile import set_rows


def split_by_rank(node: NodeOp, dim: str, ranks: int) -> None:
    """Give `node`, which loops over `dim`, a first row of it over the ranks' shares."""
    if [row.dim for row in node.loops].count(dim) > 1:
        return
    extent = next(e[dim] for value in node.ins if dim in (e := extents_of(value)))
    tile = tile_of(node, dim)
    share = -(-extent // ranks)
    rows: list[LoopAttr] = []
    for row in node.loops:
        if row.dim == dim:
            rows.append(LoopAttr(dim, ranks, row.axis))
            row = LoopAttr(dim, -(-share // min(tile, share)), row.axis)
        rows.append(row)
    set_rows(node, _renumbered(rows))
    if tile > share:
        _cap(node.body.block, dim, share)


def _renumbered(rows: list[LoopAttr]) -> list[LoopAttr]:
    """Return rows whose axes, if they have any, are g0, g1, .."""
    return [
        LoopAttr(row.dim, row.factor, None if row.axis is None else f"g{index}")
        for index, row in enumerate(rows)
    ]


def _cap(block: Block, dim: str, extent: int) -> None:
    """Make no value in `block` longer than `extent` along `dim`; adapt loops to it."""
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
    """Set the factor of the row of `dim` to what its tiles say."""
    extent = next(e[dim] for value in node.ins if dim in (e := extents_of(value)))
    factor = -(-extent // tile_of(node, dim))
    rows = [
        LoopAttr(dim, factor, row.axis) if row.dim == dim else row for row in node.loops
    ]
    set_rows(node, rows)
