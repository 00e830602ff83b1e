"""How `lower-to-triton` writes stores to channels, and signals."""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import tl
from comet.dialects.compound.dims import ceil_div, extents_of, level_of, names_of
from comet.dialects.dataflow import PushOp, SignalOp, StageOp
from comet.dialects.dataflow.flags import FlagScope, Semantics
from comet.dialects.errors import OpError
from comet.dialects.schedule import CopyOp
from comet.dialects.tl.types import BinaryKind, CompareKind
from comet.passes.triton.lower_to_triton.access import placed, steps_along, store
from comet.passes.triton.lower_to_triton.buffers import (
    Buffer,
    Channel,
    Flags,
    buffer_at,
)
from comet.passes.triton.lower_to_triton.channels import (
    begin_of_slot,
    in_receive_buffer,
    loop_over_peers,
    message_name,
    name_message,
    slice_in_message,
)
from comet.passes.triton.lower_to_triton.ranks import RankParameters
from comet.passes.triton.lower_to_triton.table import lowers
from comet.passes.triton.lower_to_triton.values import (
    Owner,
    Scope,
    Tile,
    both,
    scope_in,
)


def at_root(scope: Scope) -> Scope:
    """
    Return the scope of the branch that only the first program of a group runs.

    If that branch was just written, it is continued.
    """
    assert scope.group is not None
    is_root, before = scope.group.is_root(), scope.builder.insertion_point.insert_before
    branch = None if before is None else before.prev_op
    if not isinstance(branch, tl.IfOp) or branch.condition is not is_root:
        branch = scope.builder.insert(tl.IfOp(is_root))
    return scope_in(branch.then.block, scope)


@lowers(PushOp)
def lower_push(op: PushOp, scope: Scope) -> Buffer | None:
    """
    Write the stores of a tile to the receive buffers of its receivers.

    It has one receiver, or all ranks, which a loop visits, its own rank first; or the
    programs of a group, which share one memory.
    """
    channel = scope.memory.channel(op.channel)
    target, within = _stored_target(op, scope)
    tile, comment = scope.tile(op.value), f"push: {_moved(op)}"
    split = channel.type.split
    if split is not None and split in scope.owners:
        _store(scope, channel, tile, scope.owners[split], comment, within)
        return target
    if (ranks := channel.ranks).shares_memory:
        _store(scope, channel, tile, Owner(ranks.rank, ranks.rank), comment, within)
        return target
    if op.root is not None:
        scope = at_root(scope)
    inner, peer = loop_over_peers(scope, f"push to {channel.name}")
    if split is None:
        _store(inner, channel, tile, Owner(peer, peer), comment, within)
        return target
    shard = extents_of(channel.type.received)[split]
    size = inner.constexprs.extent(split, shard)
    first = inner.binary(BinaryKind.MUL, peer, size)
    first.name_hint = f"start_{split.lower()}"
    inside = _inside_shard(inner, channel, split, first, size)
    inside = inside if within is None else both(inner, inside, within)
    _store(inner, channel, tile, Owner(peer, first), comment, inside)
    return target


@lowers(StageOp)
def lower_stage(op: StageOp, scope: Scope) -> Buffer | None:
    """Write the store of a tile to its own rank's memory, from which others load it."""
    channel = scope.memory.channel(op.channel)
    target, within = _stored_target(op, scope)
    base = begin_of_slot(scope, channel, channel.pointer, 1)
    base.name_hint = message_name(channel)
    message, cache = buffer_at(base, channel.in_memory), channel.ranks.shared.cache()
    message = replace(message, cache=cache, within=within)
    store(scope, message, scope.tile(op.value), None, f"stage: {_moved(op)}")
    return target


def _stored_target(
    op: PushOp | StageOp, scope: Scope
) -> tuple[Buffer | None, SSAValue | None]:
    """
    Return the buffer to which a sent tile is also stored, and the mask of the stores.

    The mask is also that of the send: of programs with the same tile only one sends it.
    """
    assert op.stored is not None
    target, previous = scope.targets.get(op.stored), op.prev_op
    while isinstance(previous, PushOp | StageOp):
        previous = previous.prev_op
    if isinstance(previous, CopyOp) and previous.source is op.value:
        copied = scope.values[previous.result]
        target = (copied.copy or copied) if isinstance(copied, Buffer) else None
    return target, target and target.within


def _moved(op: PushOp | StageOp) -> str:
    """Return the levels between which a tile moves, as comments have them."""
    assert op.stored is not None
    return f"{level_of(op.value)} -> {level_of(op.stored)}"


def _inside_shard(
    scope: Scope, channel: Channel, split: str, first: SSAValue, size: SSAValue
) -> SSAValue:
    """Return which elements of a slice are in the shard that begins at `first`."""
    offsets = scope.slices[split].offsets()
    if offsets is None:  # A dimension of one element.
        offsets = scope.integer(0)
    axes = scope.axes(names_of(channel.type.sent))
    offsets = placed(scope, split, offsets, axes)
    after = scope.compare(CompareKind.GE, offsets, first)
    end = scope.binary(BinaryKind.ADD, first, size)
    before = scope.compare(CompareKind.LT, offsets, end)
    return both(scope, after, before)


def _store(
    scope: Scope,
    channel: Channel,
    tile: Tile,
    owner: Owner,
    comment: str,
    within: SSAValue | None,
) -> None:
    """Store a tile to the receive buffer of one receiver."""
    ranks, there = channel.ranks, channel.pointer
    if not ranks.shares_memory:
        rebased = tl.RebaseOp(there, ranks.rank, owner.rank, ranks.bases)
        there = scope.insert(rebased, "there")
    base = in_receive_buffer(scope, channel, there, ranks.rank)
    name_message(base, channel)
    split = channel.type.split
    origins = {} if split is None else {split: owner.first}
    message = buffer_at(base, channel.in_memory, origins)
    target = _from_corner(scope, message)
    target = replace(target, cache=ranks.shared.cache(), within=within)
    store(scope, target, tile, None, comment)


def _from_corner(scope: Scope, message: Buffer) -> Buffer:
    """
    Return the memory with a pointer to the first element of the current slice.

    The offsets from this corner are the same for all receivers, and many are constants,
    so that the addresses of a tile take few registers. The memory of a vector stays as
    it is: it has few addresses, and offsets from a corner would be further values that
    registers hold in all loops around.
    """
    corner, origins = message.pointer, dict(message.origins)
    assert corner is not None
    if len(scope.axes(message.dims)) < 2:
        return message
    for dim, stride in zip(message.dims, message.strides, strict=True):
        start = scope.slices[dim].named_start()
        if start is None:
            continue
        for step in steps_along(scope, message, dim, stride, start):
            corner = scope.insert(tl.AddPtrOp(corner, step))
        origins[dim] = start
    if corner is not message.pointer:
        corner.name_hint = "corner"
    return replace(message, pointer=corner, origins=origins)


@lowers(SignalOp)
def lower_signal(op: SignalOp, scope: Scope) -> None:
    """Write a signal that a tile more of its block is there: to one receiver or all."""
    channel, flags = scope.memory.channel(op.channel), scope.memory.flags(op.flags, op)
    ranks, split = channel.ranks, channel.type.split
    _check_signal(op, ranks)
    signal: Operation
    if ranks.shares_memory:
        flag = _flag(scope, channel, flags)
        scope.builder.insert(tl.SignalProgramsOp(flag))
        return
    if op.root is not None:
        scope = at_root(scope)
    scope = _in_a_block(scope, channel, flags)
    flag, once = _flag(scope, channel, flags), flags.writers == 1
    value = ranks.shared.epoch() if once else scope.integer(1)
    if split is not None and split in scope.owners:
        to_one = tl.SignalOp if once else tl.SignalAddOp
        dest = scope.owners[split].rank
        signal = to_one(flag, value, ranks.rank, dest, ranks.bases)
    else:
        to_all = tl.SignalAllOp if once else tl.SignalAddAllOp
        signal = to_all(flag, value, ranks.rank, ranks.bases, ranks.world_size)
    scope.builder.insert(signal)


def _check_signal(op: SignalOp, ranks: RankParameters) -> None:
    """Raise OpError unless a signal is a fence and a release, as the shim's is."""
    kinds = (op.semantics and op.semantics.data, op.scope and op.scope.data)
    scope = FlagScope.GPU if ranks.shares_memory else FlagScope.SYSTEM
    if kinds != (Semantics.RELEASE, scope) or op.fence is None:
        raise OpError(
            op,
            f"lower-to-triton: dataflow.signal is a release of {scope} scope after a "
            "fence; verify-sync says what else would break",
        )


def _in_a_block(scope: Scope, channel: Channel, flags: Flags) -> Scope:
    """Return where this program's slice is in a block: in a branch if it may not be."""
    extents = extents_of(channel.type.message)
    for block in flags.type.blocks:
        if block.factor == 1:
            continue  # Of one block all programs signal that they are done.
        current = slice_in_message(scope, channel, block.dim, block.dim)
        end = ceil_div(extents[block.dim], block.factor) * block.factor
        if current.start is not None and current.end > end:
            inside = scope.compare(CompareKind.LT, current.start, scope.integer(end))
            branch = scope.builder.insert(tl.IfOp(inside))
            scope = scope_in(branch.then.block, scope)
    return scope


def _flag(scope: Scope, channel: Channel, flags: Flags) -> SSAValue:
    """
    Return the pointer to the flag of the block that was made: its own rank's, or that
    of the group.
    """
    ranks, extents = channel.ranks, extents_of(channel.type.message)
    flag = None if ranks.shares_memory else ranks.rank
    for block in flags.type.blocks:
        size = ceil_div(extents[block.dim], block.factor)
        if flag is not None:
            flag = scope.binary(BinaryKind.MUL, flag, block.factor)
        index = _block_of_slice(scope, channel, block.dim, size, block.factor)
        if index is not None and flag is not None:
            index = scope.binary(BinaryKind.ADD, flag, index)
        flag = flag if index is None else index
    if flag is None:
        return flags.pointer
    return scope.insert(tl.AddPtrOp(flags.pointer, flag))


def _block_of_slice(
    scope: Scope, channel: Channel, dim: str, size: int, count: int
) -> SSAValue | None:
    """
    Return the index of the block of this program's slice, None if there is one block.

    Raises `PassFailedException` where a slice belongs to two blocks.
    """
    if count == 1:
        return None
    current = slice_in_message(scope, channel, dim, dim)
    if current.start is None or not current.shape.is_in_one_block(size):
        raise PassFailedException(
            f"lower-to-triton: programs make tiles of {current.shape.length} along "
            f"{dim}, and {channel.name} is signalled in blocks of {size}; cut both "
            "alike"
        )
    return scope.binary(BinaryKind.FLOORDIV, current.start, size)
