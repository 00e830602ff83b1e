"""
Where tiles are in device memory, and how many bytes a thread can load at a time.
"""

from __future__ import annotations

from math import gcd

from xdsl.ir import BlockArgument, OpResult, SSAValue

from comet.dialects.collective import CollectiveOp
from comet.dialects.compound import (
    ConcatOp,
    GatherOp,
    IndexOp,
    RenameOp,
    SliceOp,
)
from comet.dialects.compound.dims import bits_of, extents_of, names_of
from comet.dialects.compound.views import gather_ids, gathered_dims
from comet.dialects.dataflow import KernelOp
from comet.dialects.dataflow.channel import ChannelType
from comet.dialects.dataflow.transfer import PullOp, ReadOp
from comet.dialects.schedule.node import NodeOp


def vector_width(value: SSAValue, limit: int) -> int:
    """Return the vector width (bytes) of loads from a tensor, at most `limit`."""
    row = row_extent(value) * bits_of(value) // 8
    return gcd(row, limit)


def row_extent(value: SSAValue) -> int:
    """Return the contiguous elements of a row of the tensor that `value` is part of."""
    tensor = tensor_in_memory(value)
    if isinstance(tensor.owner, SliceOp | ConcatOp):
        return _aligned(tensor.owner)
    if isinstance(gather := tensor.owner, GatherOp):
        row = row_extent(gather.table)
        if names_of(gather.table)[-1] != gather.along:
            return row
        # Positions are in order: a rank's shard of what all have begins at its number.
        in_order = isinstance(gather.ids.owner, IndexOp)
        return gcd(row, *extents_of(gather.ids).values()) if in_order else 1
    shapes = [tensor.type]
    if isinstance(owner := tensor.owner, CollectiveOp):
        shapes.append(owner.input.type)
    if isinstance(owner, ReadOp | PullOp):
        channel = owner.channel.type
        assert isinstance(channel, ChannelType)
        shapes.append(channel.sent)
    return min([1, *extents_of(shape).values()][-1] for shape in shapes)


def _aligned(view: SliceOp | ConcatOp) -> int:
    """Return the number of elements to which rows of a part or a concat are aligned."""
    rows = [row_extent(value) for value in view.operands]
    last = [*extents_of(view.result)][-1:]
    if isinstance(view, ConcatOp):
        return gcd(*rows, *(view.firsts if [view.dim.data] == last else ()))
    return gcd(*rows, *(n for dim, n in view.offsets.items() if [dim] == last))


def tensor_in_memory(value: SSAValue) -> SSAValue:
    """Return the computed or received tensor that a tile is part of."""
    while (outer := _containing(value)) is not None:
        value = outer
    return value


def _containing(value: SSAValue) -> SSAValue | None:
    """Return the value that `value` is a tile or a rename of, None for others."""
    if isinstance(value, BlockArgument):
        outer = value.block.parent_op()
        if isinstance(outer, NodeOp | KernelOp) and value.index < len(ins := outer.ins):
            return ins[value.index]
        return None
    owner = value.owner
    if isinstance(owner, RenameOp):
        return owner.input
    if isinstance(owner, KernelOp) and isinstance(value, OpResult):
        return owner.yielded[value.index]
    return None


def ids_of(tile: SSAValue) -> tuple[tuple[str, ...], int]:
    """
    Return the dimensions along which the rows of a tile are gathered, and the bytes of
    an id: none and 0 for a tile that is not gathered.
    """
    ids = gather_ids(value := _seen(tile))
    return ((), 0) if ids is None else (gathered_dims(value), bits_of(ids) // 8)


def _seen(tile: SSAValue) -> SSAValue:
    """Return the value outside of all nodes that a tile is part of, or a view of it."""
    value = tile
    while (
        isinstance(value, BlockArgument) and (outer := _containing(value)) is not None
    ):
        value = outer
    return value
