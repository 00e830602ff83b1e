"""
Rows over ranks: loops that visit what one rank sent, or made for one rank, at a time.

The row of a dimension becomes two: the first runs over the ranks' shares, the second
cuts a share into tiles. Tiles keep their extent unless a share is shorter.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter

from comet.dialects.compound import RenameOp
from comet.dialects.compound.dims import extents_of, with_extents
from comet.dialects.dataflow import KernelOp, PullOp, PushOp, ReadOp, StageOp
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import LoopAttr
from comet.dialects.schedule.node import NodeOp
from comet.passes.schedule.retile import set_rows


def loops_over(value: SSAValue, dim: str) -> Iterator[tuple[NodeOp, str]]:
    """
    Yield the outermost nodes that loop over a dimension of `value`.

    With each comes the name that the dimension has there, as views may change it.
    """
    for use in value.uses:
        op = use.operation
        if isinstance(op, RenameOp):
            yield from loops_over(op.result, op.renaming[dim])
        elif isinstance(op, NodeOp) and dim in op.factors:
            yield op, dim
        elif isinstance(op, NodeOp):
            yield from loops_over(op.body.block.args[use.index], dim)


def source_dims(kernel: KernelOp, node: SpatialOp) -> tuple[str, ...]:
    """
    Return the dimensions along which `node` visits what one rank sent at a time.

    The kernel names those of all its nodes; one of these may loop over the same name
    without receiving anything.
    """
    named = () if kernel.sources is None else [name.data for name in kernel.sources]
    received = [op for op in kernel.body.block.ops if isinstance(op, ReadOp | PullOp)]
    looped = {
        dim
        for op in received
        for inner, dim in loops_over(op.result, op.channel_type.gather)
        if node.is_ancestor(inner)
    }
    return tuple(dim for dim in named if dim in looped)


def destination_dims(kernel: KernelOp, node: SpatialOp) -> tuple[str, ...]:
    """Return the dimensions whose shares `node` makes for one rank after another."""
    names = kernel.destinations
    named = () if names is None else [name.data for name in names]
    given = [op for op in kernel.body.block.ops if isinstance(op, PushOp | StageOp)]
    split = {op.channel_type.split for op in given if op.value in node.outs}
    return tuple(dim for dim in named if dim in split)


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


def tile_of(node: NodeOp, dim: str) -> int:
    """Return the extent of the tiles that `node` cuts `dim` into."""
    tiles = (extents_of(tile) for tile in node.body.block.args)
    return next(extents[dim] for extents in tiles if dim in extents)


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
