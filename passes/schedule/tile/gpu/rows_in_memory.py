"""
How tensors that kernels load lie in memory: in rows, of which loads take pieces.

GPUs load up to 16 bytes at a time, if that many are aligned. What a channel holds lies
in boxes, one for each rank, whose rows are shares of the gathered dimension.
"""

from __future__ import annotations

from math import gcd

from xdsl.ir import BlockArgument, OpResult, SSAValue

from comet.dialects.collective import CollectiveOp
from comet.dialects.compound import RenameOp
from comet.dialects.compound.dims import element_type_of, extents_of
from comet.dialects.dataflow import KernelOp
from comet.dialects.dataflow.channel import ChannelType
from comet.dialects.dataflow.transfer import PullOp, ReadOp
from comet.dialects.schedule.node import NodeOp

LARGEST_LOAD = 16
"""The most bytes that one thread loads at a time."""


def bytes_at_a_time(value: SSAValue) -> int:
    """Return how many bytes a thread can load at a time from any row of a tensor."""
    row = row_extent(value) * element_type_of(value).bitwidth // 8
    return gcd(row, LARGEST_LOAD)


def row_extent(value: SSAValue) -> int:
    """Return how many elements lie side by side where `value` is loaded from."""
    tensor = tensor_in_memory(value)
    shapes = [tensor.type]
    if isinstance(owner := tensor.owner, CollectiveOp):
        shapes.append(owner.input.type)
    if isinstance(owner, ReadOp | PullOp):
        channel = owner.channel.type
        assert isinstance(channel, ChannelType)
        shapes.append(channel.sent)
    return min([1, *extents_of(shape).values()][-1] for shape in shapes)


def tensor_in_memory(value: SSAValue) -> SSAValue:
    """Return the whole tensor that a tile is part of, as it was made or received."""
    while (whole := _whole(value)) is not None:
        value = whole
    return value


def _whole(value: SSAValue) -> SSAValue | None:
    """Return what `value` is a part of, or another name for; None if there is none."""
    owner = value.owner
    if isinstance(owner, RenameOp):
        return owner.input
    if isinstance(owner, KernelOp) and isinstance(value, OpResult):
        end = owner.body.block.last_op
        return end.operands[value.index] if end else None
    if not isinstance(value, BlockArgument):
        return None
    outer = value.block.parent_op()
    if isinstance(outer, NodeOp | KernelOp) and value.index < len(outer.ins):
        return outer.ins[value.index]
    return None
