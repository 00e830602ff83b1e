"""
Evaluates launch plans: the body of each kernel, one after another, on all ranks.

Kernels run in lockstep over the ranks, so barriers, signals and waits do nothing: all
later consumers can read what a producer has stored to a channel. All programs of a node
arrive at its counters before the next node runs. `verify-sync` proves that the
synchronization suffices without lockstep.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from xdsl.utils.exceptions import InterpretationError

from comet.dialects.collective.mesh import lookup_mesh
from comet.dialects.compound.dims import extents_of
from comet.dialects.dataflow import (
    ArriveOp,
    BarrierOp,
    BufferOp,
    ChannelOp,
    ChannelType,
    CountersOp,
    EpochOp,
    FlagsOp,
    KernelOp,
    MappingOp,
    ProgramOp,
    PullOp,
    PushOp,
    ReadOp,
    ReadTileOp,
    ReceiveBufferOp,
    SharesOp,
    SignalOp,
    StageOp,
    WaitOp,
    program_value,
)
from comet.dialects.dataflow.channel import channel_op
from comet.interpreter.instances import join, split
from comet.interpreter.machine import Interpreter, Values, evaluate
from comet.interpreter.schedule import whole
from comet.interpreter.tensor import Tensor, scalar


@evaluate.register
def _(op: ProgramOp, machine: Interpreter, args: Values) -> Values:
    return machine.run_block(op.body.block, args)


@evaluate.register
def _(op: KernelOp, machine: Interpreter, args: Values) -> Values:
    return machine.run_block(op.body.block, args[: len(op.ins)])


@evaluate.register
def _(op: MappingOp, machine: Interpreter, args: Values) -> Values:
    if op.function() is None:
        raise InterpretationError(
            f"'{op.name}' op has no meaning in the interpreter once @{op.symbol} is "
            "lowered to COMET files"
        )
    return replace(machine, module=op.module()).call(op.symbol, args)


@evaluate.register
def _(op: BufferOp, machine: Interpreter, args: Values) -> Values:
    return (_undefined(extents_of(op.result)),)


def _undefined(extents: dict[str, int]) -> Tensor:
    """Return a value of memory that was not written: NaN."""
    return Tensor((), tuple(extents), np.full(tuple(extents.values()), np.nan))


@evaluate.register
def _(op: BarrierOp | SignalOp, machine: Interpreter, args: Values) -> Values:
    return ()


@evaluate.register
def _(op: WaitOp, machine: Interpreter, args: Values) -> Values:
    return args[: len(op.views)]


@evaluate.register
def _(op: ArriveOp, machine: Interpreter, args: Values) -> Values:
    return args[: len(op.partials)]


@evaluate.register
def _(op: SharesOp, machine: Interpreter, args: Values) -> Values:
    """Return the first tile of each part, where it ends, and the number of parts."""
    last = args[0].data + op.offset.value.data
    seen = np.minimum(last // op.size.value.data + 1, op.tiles.value.data)
    tiles = np.where(last < 0, op.tiles.value.data, seen)
    before = np.cumsum(tiles) - tiles
    shares = np.ceil(tiles.sum() / op.run_count)
    run = max(shares, np.ceil((tiles.max() - 1) / (op.parts - 1)))
    runs = before // run + np.arange(op.parts)[:, None]
    first = np.maximum(runs * run - before, 0)
    end = np.minimum((runs + 1) * run - before, tiles)
    count = (before + tiles - 1) // run - before // run + 1
    both = op.part, op.dim
    return Tensor((), both, first), Tensor((), both, end), Tensor((), both[1:], count)


@evaluate.register
def _(op: EpochOp | FlagsOp | CountersOp, machine: Interpreter, args: Values) -> Values:
    """A program runs once, so the epoch is 1, and no result depends on the others."""
    return (scalar(1),)


@evaluate.register
def _(op: ChannelOp | ReceiveBufferOp, machine: Interpreter, args: Values) -> Values:
    """The value of a channel is what its consumers read."""
    if args:  # an input of the program, which has no producer
        return (_received(op, args[0]),)
    return (_undefined(extents_of(op.type.received)),)


@evaluate.register
def _(op: PushOp | StageOp, machine: Interpreter, args: Values) -> Values:
    channel = program_value(op.channel)
    assert isinstance(channel.owner, ChannelOp | ReceiveBufferOp)
    if not _is_read_in_tiles(op):
        machine.values[channel] = _received(channel.owner, whole(op, args[0]))
    return args[: len(op.results)]


def _is_read_in_tiles(op: PushOp | StageOp) -> bool:
    """Whether a `read_tile` reads the stored value; then the channel has no value."""
    uses = () if op.stored is None else op.stored.uses
    return any(isinstance(use.operation, ReadTileOp) for use in uses)


def _received(channel: ChannelOp | ReceiveBufferOp, value: Tensor) -> Tensor:
    """Return the value that each rank reads once every rank has stored its `value`."""
    type_: ChannelType = channel.type
    extents = extents_of(type_.received)
    mesh = lookup_mesh(channel, channel.mesh).axis_extents
    group = {axis: mesh[axis] for axis in channel.axis_names}
    seen = join(value, type_.gather, group, extents[type_.gather])
    if type_.split is not None:
        seen = split(seen, type_.split, group, extents[type_.split])
    dims = tuple(extents)
    return replace(seen, dims=dims, data=seen.view(seen.axes, dims))


@evaluate.register
def _(op: ReadTileOp, machine: Interpreter, args: Values) -> Values:
    return (_received(channel_op(op.channel), machine.values[op.stored]),)


@evaluate.register
def _(op: ReadOp | PullOp, machine: Interpreter, args: Values) -> Values:
    return (machine.values[program_value(op.channel)],)
