"""The producers and consumers of a channel, as `bsp-to-dataflow` writes them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import (
    Block,
    Operation,
    OpResult,
    Region,
    SSAValue,
)
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects import dataflow
from comet.dialects.blocks import terminator_of, values_in
from comet.dialects.collective.ops import MovingCollective
from comet.dialects.compound.dims import ceil_div, extents_of, with_extents
from comet.dialects.dataflow import (
    KernelOp,
    PullOp,
    PushOp,
    ReadOp,
    SignalOp,
    StageOp,
    WaitOp,
)
from comet.dialects.dataflow.channel import ChannelMode
from comet.dialects.dataflow.locality import collective_of
from comet.dialects.dataflow.program import shards_attr
from comet.dialects.dataflow.rank_loops import loops_over, tile_of
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import LoopAttr
from comet.dialects.schedule.node import NodeOp
from comet.passes.dataflow.bsp_to_dataflow.copy_kernel import (
    CopyRules,
    CopyTiles,
    communication_tiles,
    copy_node,
)
from comet.passes.dataflow.bsp_to_dataflow.plan import (
    ChannelPlan,
    moved_dims,
)
from comet.passes.dataflow.kernels import rebuild_kernel
from comet.passes.schedule.retile import set_loops


def insert_copy(transfer: ChannelPlan, channel: SSAValue) -> None:
    """Replace a collective's kernel by one that copies the value to a channel."""
    old = transfer.kernel
    ins = [*old.ins, channel]
    body = Block(arg_types=[value.type for value in ins])
    body.add_ops([*_copy_ops(transfer, body.args), dataflow.YieldOp()])
    kernel = KernelOp(old.sym_name.data, ins, [], Region(body))
    _keep_sent(transfer, kernel)
    Rewriter.insert_op(kernel, InsertPoint.before(old))


def insert_copy_into(
    kernel: KernelOp, transfer: ChannelPlan, channel: SSAValue
) -> None:
    """
    Make the consumer of a channel also its producer.

    Its stores come before its waits, so that those programs run first.
    """
    body = kernel.body.block
    argument = body.args[list(kernel.ins).index(channel)]
    sent = transfer.kernel.ins
    inputs = [body.insert_arg(value.type, len(body.args)) for value in sent]
    first = next(op for op in body.ops if isinstance(op, WaitOp | ReadOp | PullOp))
    for op in _copy_ops(transfer, (*inputs, argument)):
        Rewriter.insert_op(op, InsertPoint.before(first))
    _keep_sent(transfer, kernel)
    rebuild_kernel(kernel, [*kernel.ins, *sent], range(len(kernel.results_)))


def insert_signal_into(kernel: KernelOp, channel: SSAValue) -> None:
    """Let the consumer of a channel first signal that its input has arrived."""
    argument = kernel.body.block.args[list(kernel.ins).index(channel)]
    first = kernel.body.block.first_op
    assert first is not None
    Rewriter.insert_op(SignalOp(argument), InsertPoint.before(first))


def _copy_ops(transfer: ChannelPlan, arguments: Sequence[SSAValue]) -> list[Operation]:
    """Return the ops that copy a value, tile by tile, to the last of `arguments`."""
    old = transfer.kernel.body.block
    values: dict[SSAValue, SSAValue] = {}
    for before, argument in zip(old.args, arguments, strict=False):
        argument.name_hint = before.name_hint
        values[before] = argument
    ops: list[Operation] = []
    for op in old.ops:
        if op is transfer.collective:
            break
        ops.append(op.clone(value_mapper=values))
    sent = values.get(transfer.collective.input)
    assert sent is not None
    node = copy_node(sent, transfer.copy)
    return [*ops, node, *_send_ops(node.outs[0], arguments[-1], transfer)]


def _keep_sent(transfer: ChannelPlan, kernel: KernelOp) -> None:
    """Keep the dimensions of which a kernel that sends a copy has, or sends, shards."""
    _keep_shards(transfer.kernel, kernel)
    if (split := transfer.type.split) is not None:
        kernel.destinations = _named(kernel.destinations, split)


def _keep_shards(
    exchange: KernelOp, kernel: KernelOp, *, received: bool = False
) -> None:
    """
    Keep the global extents of dimensions of which a rank sends, or receives, a shard.

    Extents do not show it: a shard of one element may be the whole.
    """
    collective = collective_of(exchange)
    assert isinstance(collective, MovingCollective)
    gather, split = moved_dims(collective)
    value, unsharded = collective.input, split
    if received:
        value, unsharded = collective.result, gather
    dims = extents_of(value).keys() - {unsharded}
    extents = {dim: n for dim, n in exchange.shard_extents.items() if dim in dims}
    kernel.shards = shards_attr(kernel.shard_extents | extents)


def _send_ops(
    value: SSAValue, channel: SSAValue, transfer: ChannelPlan
) -> list[Operation]:
    """Return the ops that store `value` to a channel and signal it."""
    channel.name_hint = "channel"
    pushed = transfer.type.mode is ChannelMode.PUSH
    store = (PushOp if pushed else StageOp)(value, channel)
    return [store, SignalOp(channel)] if transfer.signals else [store]


def send_from_producer(
    result: OpResult, transfer: ChannelPlan, channel: SSAValue
) -> None:
    """
    Let the kernel that computes a value store it to a channel.

    It keeps its buffer only if other kernels of the rank read it.
    """
    old = result.op
    assert isinstance(old, KernelOp)
    body = old.body.block
    terminator = terminator_of(body)
    value = terminator.operands[result.index]
    node = value.owner
    assert isinstance(node, SpatialOp)
    split = transfer.type.split
    if split is not None and split in node.factors:
        split_by_rank(node, split, transfer.ranks)
        old.destinations = _named(old.destinations, split)
    argument = body.insert_arg(channel.type, len(body.args))
    for op in _send_ops(value, argument, transfer):
        Rewriter.insert_op(op, InsertPoint.before(terminator))
    kept = [i for i, r in enumerate(old.results_) if r is not result or r.uses]
    yielded = [terminator.operands[i] for i in kept]
    Rewriter.replace_op(terminator, dataflow.YieldOp(*yielded))
    rebuild_kernel(old, [*old.ins, channel], kept)


def read_from_channel(
    kernel: KernelOp, index: int, channel: SSAValue, transfer: ChannelPlan
) -> None:
    """
    Let a kernel read its operand `index` from a channel.

    Its loops over the gathered dimension visit one source after another, or tiles
    across all of them, which it waits for at once.
    """
    body = kernel.body.block
    before = body.args[index]
    argument = body.insert_arg(channel.type, index)
    argument.name_hint = "channel"
    reads = transfer.type.mode is ChannelMode.PUSH
    op = (ReadOp if reads else PullOp)(argument)
    op.result.name_hint = before.name_hint
    received = [read for read in body.ops if isinstance(read, ReadOp | PullOp)]
    place = received[-1].next_op if received else body.first_op
    assert place is not None
    if transfer.signals:
        Rewriter.insert_op(WaitOp(argument), InsertPoint.before(place))
    Rewriter.insert_op(op, InsertPoint.before(place))
    before.replace_all_uses_with(op.result)
    body.erase_arg(before)
    kernel.operands[index] = channel
    loops = dict.fromkeys(loops_over(op.result, transfer.type.gather))
    for node, dim in loops if transfer.by_source else ():
        split_by_rank(node, dim, transfer.ranks)
        kernel.sources = _named(kernel.sources, dim)


def _named(names: ArrayAttr[StringAttr] | None, dim: str) -> ArrayAttr[StringAttr]:
    """Return names of dimensions with one more, unless it is among them."""
    listed = () if names is None else tuple(names)
    return ArrayAttr(dict.fromkeys((*listed, StringAttr(dim))))


def copy_to_buffer(kernel: KernelOp, value: SSAValue, rules: CopyRules) -> KernelOp:
    """Return a kernel that copies the result of a collective to its own buffer."""
    buffer = dataflow.BufferOp(value.type)
    buffer.result.name_hint = value.name_hint
    body = Block(arg_types=[value.type])
    body.args[0].name_hint = value.name_hint
    tiles = communication_tiles(extents_of(value), {}, rules)
    node = copy_node(body.args[0], CopyTiles(tiles, rules.level))
    body.add_ops([node, dataflow.YieldOp(node.outs[0])])
    name = f"{kernel.sym_name.data}_land"
    copy = KernelOp(name, [value], [buffer.result], Region(body))
    _keep_shards(kernel, copy, received=True)
    copy.results_[0].name_hint = value.name_hint
    return copy


def split_by_rank(node: NodeOp, dim: str, ranks: int) -> None:
    """
    Split the loop of `node` over `dim`: a first loop is over the ranks' shards.

    Tiles keep their extent unless a shard is shorter.
    """
    if [loop.dim for loop in node.loops].count(dim) > 1:
        return
    tile = tile_of(node, dim)
    shard = ceil_div(node.extents[dim], ranks)
    loops: list[LoopAttr] = []
    for loop in node.loops:
        if loop.dim == dim:
            loops.append(LoopAttr(dim, ranks, loop.axis))
            loop = LoopAttr(dim, ceil_div(shard, min(tile, shard)), loop.axis)
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
    for value in tuple(values_in(block)):
        if extents_of(value).get(dim, 0) > extent:
            capped = with_extents(value.type, {dim: extent})
            Rewriter.replace_value_with_new_type(value, capped)
    for op in block.walk():
        if isinstance(op, NodeOp) and dim in op.factors:
            _refit(op, dim)


def _refit(node: NodeOp, dim: str) -> None:
    """Set the factor of the loop over `dim` from its tiles."""
    factor = ceil_div(node.extents[dim], tile_of(node, dim))
    loops = [
        LoopAttr(dim, factor, loop.axis) if loop.dim == dim else loop
        for loop in node.loops
    ]
    set_loops(node, loops)
