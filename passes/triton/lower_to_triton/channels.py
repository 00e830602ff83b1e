"""
How `lower-to-triton` writes channels: their memory, and waits for messages in it.

A receive buffer is [slot][source][message] in the receiver's memory; a staged value is
[slot] and the value, in the sender's. Senders and receivers are visited in the order
own rank, next rank, and so on, so that ranks do not all access the same peer at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from comet.dialects import tl
from comet.dialects.compound.dims import ceil_div, extents_of, names_of
from comet.dialects.dataflow.channel import ChannelMode
from comet.dialects.tl.types import BinaryKind
from comet.passes.triton.lower_to_triton.access import scaled
from comet.passes.triton.lower_to_triton.buffers import (
    Buffer,
    Channel,
    Flags,
    Gathered,
    Received,
    row_major,
)
from comet.passes.triton.lower_to_triton.offsets import DimSlice, inner_slice
from comet.passes.triton.lower_to_triton.ranks import RankParameters
from comet.passes.triton.lower_to_triton.values import GridIndex, Owner, Scope, scope_in
from comet.passes.triton.slices import LoopSlice, Slice


def ranks_of(scope: Scope) -> RankParameters:
    """Return the ids of the ranks; only in a kernel of several ranks."""
    assert scope.ranks is not None
    return scope.ranks


def grid_index(scope: Scope, loops: Sequence[GridIndex]) -> SSAValue:
    """Return the index of a program along some loops, the last one fastest."""
    first, *others = loops
    for loop in loops:
        loop.index.name_hint = loop.index.name_hint or f"pid_{loop.dim.lower()}"
    index = first.index
    for loop in others:
        index = scope.binary(BinaryKind.MUL, index, loop.count)
        index = scope.binary(BinaryKind.ADD, index, loop.index)
    return index


def peer_at(scope: Scope, index: SSAValue, hint: str) -> SSAValue:
    """Return the rank that comes `index` after the own one."""
    ranks, home = ranks_of(scope), scope.prologue
    after = home.binary(BinaryKind.ADD, ranks.rank, index)
    return home.binary(BinaryKind.MOD, after, ranks.world_size, hint)


def loop_over_peers(scope: Scope, comment: str) -> tuple[Scope, SSAValue]:
    """Insert a loop over all ranks, own one first; return its scope and the rank."""
    zero, one = (scope.integer(number) for number in (0, 1))
    loop = tl.ForOp(zero, ranks_of(scope).world_size, one, [])
    loop.attributes[tl.COMMENT] = StringAttr(comment)
    scope.builder.insert(loop)
    loop.body.block.args[0].name_hint = "i"
    inner = scope_in(loop.body.block, scope)
    return inner, peer_at(inner, loop.body.block.args[0], "dest")


def owned_slice(
    scope: Scope, whole: DimSlice, loop: LoopSlice, peer: SSAValue
) -> tuple[DimSlice, Owner]:
    """Return the shard that a rank has of a dimension, at most `loop.tile` elements."""
    first = peer
    if loop.tile > 1:
        shard = scope.constexprs.extent(loop.dim, loop.tile)
        hint = f"start_{loop.dim.lower()}"
        first = scope.prologue.binary(BinaryKind.MUL, peer, shard, hint)
    loop = replace(loop, is_bounded=True)
    shape = whole.shape.of_rank(loop, ranks_of(scope).world)
    return inner_slice(whole, loop, shape, first, scope.prologue), Owner(peer, first)


def from_owner(scope: Scope, received: Received, owner: Owner) -> Buffer:
    """Return the message of one source, as memory that can be loaded."""
    channel = received.channel
    assert channel is not None
    base = _message(scope, channel, owner.rank)
    base.name_hint = message_name(channel)
    origins = {received.gather: owner.first}
    return _buffer(received, base, origins)


def from_all(scope: Scope, received: Received) -> Buffer:
    """Return the messages of all sources, as memory that can be loaded."""
    channel = received.channel
    assert channel is not None
    ranks = channel.ranks
    pushed = channel.type.mode is ChannelMode.PUSH
    shard, stored = channel.type.source_extent, channel.type.gather
    base = begin_of_slot(scope, channel, channel.pointer, ranks.world if pushed else 1)
    if not pushed:
        base = _local_shard(scope, channel, base)
    name_message(base, channel)
    message = channel.slot_stride if pushed else None
    gathered = Gathered(received.gather, shard, stored, message, ranks)
    return replace(_buffer(received, base, {}), gathered=gathered)


def name_message(base: SSAValue, channel: Channel) -> None:
    """Name the pointer to a message, unless it is the pointer to the whole memory."""
    if base is not channel.pointer:
        base.name_hint = message_name(channel)


def message_name(channel: Channel) -> str:
    """Name one message of a channel: a_message in a_recv."""
    return f"{channel.name.removesuffix('_recv')}_message"


def _buffer(received: Received, base: SSAValue, origins: dict[str, SSAValue]) -> Buffer:
    """Return the memory of one sender's value, with the dimension names of the view."""
    channel = received.channel
    assert channel is not None
    extents = channel.in_memory
    strides = dict(zip(extents, row_major(extents), strict=True))
    return Buffer(
        base,
        received.dims,
        tuple(extents.values()),
        tuple(strides.get(dim) for dim in names_of(channel.type.received)),
        origins,
    )


def begin_of_slot(
    scope: Scope, channel: Channel, pointer: SSAValue, sources: int
) -> SSAValue:
    """Return where the slot of this epoch begins."""
    ranks = channel.ranks
    if ranks.shares_memory:
        return pointer
    slot = ranks.shared.slot(channel.slots)
    if sources > 1:
        slot = scope.binary(BinaryKind.MUL, slot, ranks.world_size)
    offset = scaled(scope, slot, channel.slot_stride, channel.is_wide)
    return scope.insert(tl.AddPtrOp(pointer, offset))


def _message(scope: Scope, channel: Channel, source: SSAValue) -> SSAValue:
    """Return where a source's message to this rank begins."""
    ranks = channel.ranks
    if channel.type.mode is ChannelMode.PUSH:
        return in_receive_buffer(scope, channel, channel.pointer, source)
    there = tl.RebaseOp(channel.pointer, ranks.rank, source, ranks.bases)
    pointer = begin_of_slot(scope, channel, scope.insert(there, "there"), 1)
    return _local_shard(scope, channel, pointer)


def _local_shard(scope: Scope, channel: Channel, pointer: SSAValue) -> SSAValue:
    """
    Return where this rank's shard begins in a value, if it is split over the ranks.
    """
    split = channel.type.split
    if split is None:
        return pointer
    shard = extents_of(channel.type.received)[split]
    size = scope.constexprs.extent(split, shard)
    first = tl.BinaryOp(BinaryKind.MUL, channel.ranks.rank, size)
    stored = channel.in_memory
    stride = row_major(stored)[list(stored).index(split)]
    offset = scaled(scope, scope.insert(first), stride, channel.is_wide)
    return scope.insert(tl.AddPtrOp(pointer, offset))


def in_receive_buffer(
    scope: Scope, channel: Channel, receive_buffer: SSAValue, source: SSAValue
) -> SSAValue:
    """Return where the message of a source begins in a receive buffer."""
    ranks, message = channel.ranks, source
    if not ranks.shares_memory:
        slot = ranks.shared.slot(channel.slots)
        message = scope.binary(BinaryKind.MUL, slot, ranks.world_size)
        message = scope.binary(BinaryKind.ADD, message, source)
    offset = scaled(scope, message, channel.slot_stride, channel.is_wide)
    return scope.insert(tl.AddPtrOp(receive_buffer, offset))


def wait_for(
    scope: Scope,
    channel: Channel,
    flags: Flags,
    names: Mapping[str, str],
    arrivals: int,
    source: SSAValue | None,
) -> None:
    """
    Wait until the blocks that the current slices touch are there.

    They come from `source`, or from all ranks if it is None. Each epoch adds `arrivals`
    to a flag. `names` are the node's names of the channel's dimensions.
    """
    ranks = channel.ranks
    target = ranks.shared.awaited(arrivals)
    scope, flag = _flag_touched(scope, channel, flags, names, source)
    pointer = flags.pointer
    if flag is not None:
        pointer = scope.insert(tl.AddPtrOp(pointer, flag))
    if source is not None:
        scope.builder.insert(tl.WaitOp(pointer, target))
        return
    if ranks.shares_memory:
        scope.builder.insert(tl.WaitProgramsOp(pointer, target))
        return
    count = prod(block.factor for block in flags.type.blocks)
    stride = scope.integer(count)
    scope.builder.insert(tl.WaitAllOp(pointer, target, stride, ranks.world_size))


def _flag_touched(
    scope: Scope,
    channel: Channel,
    flags: Flags,
    names: Mapping[str, str],
    source: SSAValue | None,
) -> tuple[Scope, SSAValue | None]:
    """
    Return the flag of the block that the current slices touch, None for number 0.

    It is that of a source, or the first one's; of several blocks, in a loop over all.
    """
    flag, extents = source, extents_of(channel.type.message)
    for block in flags.type.blocks:
        size = ceil_div(extents[block.dim], block.factor)
        dim = names[block.dim]
        if block.dim == channel.type.gather and dim not in scope.owners:
            inner, index = _each_block(scope, block.factor)
        else:
            touched = slice_in_message(scope, channel, block.dim, dim)
            inner, index = _block_touched(scope, touched, size, block.factor)
        if inner is not scope and flag is not None and flag is not source:
            flag.name_hint = "flag"
        scope = inner
        if flag is not None:
            flag = scope.binary(BinaryKind.MUL, flag, block.factor)
            flag = scope.binary(BinaryKind.ADD, flag, index)
        elif block.factor > 1:
            flag = index
    return scope, flag


@dataclass(frozen=True)
class MessageSlice:
    """The current slice of a dimension, in the message of a channel."""

    shape: Slice
    start: SSAValue | None
    """Its first element in the message; None for the first element of the message."""
    end: int = 0
    """
    The end of the shards of all ranks, if the last shard were as long as the others:
    every slice begins before it. 0 for a slice in no shard of another channel.
    """


def slice_in_message(
    scope: Scope, channel: Channel, stored: str, dim: str
) -> MessageSlice:
    """
    Return the current slice of `dim`, with positions from the start of a message.

    `stored` is the name of the dimension in messages. A message has the shard of one
    rank if the channel gathers or splits the dimension. Otherwise it has the whole
    dimension, even if the slice is in a shard for the sake of another channel.
    """
    current, owner = scope.slices[dim], scope.owners.get(dim)
    start = current.named_start()
    if owner is None:
        return MessageSlice(current.shape, start)
    if stored not in (channel.type.gather, channel.type.split):
        end = current.shape.shard * scope.over_ranks.ranks
        return MessageSlice(current.shape.of_whole, start, end)
    if start is None or start is owner.first:
        return MessageSlice(current.shape, None)
    first = tl.BinaryOp(BinaryKind.SUB, start, owner.first)
    return MessageSlice(current.shape, scope.insert(first))


def _block_touched(
    scope: Scope, touched: MessageSlice, size: int, count: int
) -> tuple[Scope, SSAValue]:
    """Return the block of a slice; a slice in several blocks gets a loop over them."""
    start = touched.start
    zero = scope.integer(0)
    last: SSAValue = scope.integer(count)
    if start is not None:
        first = scope.binary(BinaryKind.FLOORDIV, start, size)
        if touched.shape.is_in_one_block(size):
            if touched.end > size * count:
                first = scope.binary(BinaryKind.MIN, first, scope.integer(count - 1))
            return scope, first
        first.name_hint = "first"
        last = scope.binary(BinaryKind.ADD, start, touched.shape.length + size - 1)
        last = scope.binary(BinaryKind.FLOORDIV, last, size)
        count_ = scope.integer(count)
        last = scope.binary(BinaryKind.MIN, last, count_, "end")
        zero = first
    elif count == 1:
        return scope, zero
    return _loop_over_blocks(scope, zero, last)


def _each_block(scope: Scope, count: int) -> tuple[Scope, SSAValue]:
    """Return each block of a gathered dimension, of which tiles have all sources."""
    zero = scope.integer(0)
    if count == 1:
        return scope, zero
    return _loop_over_blocks(scope, zero, scope.integer(count))


def _loop_over_blocks(
    scope: Scope, first: SSAValue, end: SSAValue
) -> tuple[Scope, SSAValue]:
    """Insert a loop over blocks; return its scope and the block."""
    one = scope.integer(1)
    loop = tl.ForOp(first, end, one, [])
    scope.builder.insert(loop)
    index = loop.body.block.args[0]
    index.name_hint = "block"
    return scope_in(loop.body.block, scope), index
