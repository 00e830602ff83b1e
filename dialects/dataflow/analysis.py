"""
The forward analysis of SPMD regions below the elementary level.

The nodes of a tile tree, the kernels of a program and its channels propagate the states
of values: reading a channel has the state of its collective's result.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from comet.dialects.collective.analysis import op_states, states_after
from comet.dialects.collective.state import State, States
from comet.dialects.compound.dims import names_of
from comet.dialects.dataflow.arrival import ArriveOp, CountersOp
from comet.dialects.dataflow.channel import (
    ChannelOp,
    ReceiveBufferOp,
    channel_op,
    program_value,
)
from comet.dialects.dataflow.flags import EpochOp, FlagsOp
from comet.dialects.dataflow.program import BarrierOp, BufferOp, KernelOp, ProgramOp
from comet.dialects.dataflow.shares import SharesOp
from comet.dialects.dataflow.signals import sent_with
from comet.dialects.dataflow.transfer import (
    PullOp,
    PushOp,
    ReadOp,
    ReadTileOp,
    SignalOp,
    StageOp,
    WaitOp,
)
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import group_around

UNWRITTEN = State({}, {}, uniform=True)
"""The state of a buffer that nothing has been written to."""


@op_states.register
def _(op: ProgramOp | KernelOp, states: States) -> States:
    """Return the states of all values in a region, and of the op's results."""
    block = op.body.block
    inner = dict(states)
    inner.update((a, states[v]) for a, v in zip(block.args, op.ins, strict=True))
    *ops, terminator = block.ops
    for nested in ops:
        inner |= states_after(nested, inner)
        if isinstance(nested, SpatialOp):
            inner |= _sent(nested, inner)
    yielded = [inner[value] for value in terminator.operands]
    return inner | dict(zip(op.results_, yielded, strict=True))


def _sent(node: SpatialOp, states: States) -> States:
    """Return the states of the channels to which the programs of a node store."""
    found: dict[SSAValue, State] = {}
    for out, value in zip(node.outs, node.yielded, strict=True):
        for op in sent_with(value):
            channel = channel_op(op.channel)
            found[channel.result] = _received(op, channel, out, states)
    return found


@op_states.register
def _(op: PushOp | StageOp, states: States) -> States:
    if op.stored is not None:
        if isinstance(op, PushOp) and op.root is not None:
            _verify_equal(op, states[op.value])
        return {op.stored: states[op.value]}
    channel = channel_op(op.channel)
    return {channel.result: _received(op, channel, op.value, states)}


def _verify_equal(op: PushOp, state: State) -> None:
    """Check that all programs of a group have what the root sends for them."""
    group = group_around(op)
    for axis in () if group is None else (loop.axis for loop in group.loops):
        if axis is not None and (axis in state.sharded or axis in state.partial):
            raise VerifyException(
                f"'{op.name}' op the root sends, for all programs along axis '{axis}', "
                f"a value that is {state.describe(axis)}; exchange it among them first"
            )


@op_states.register
def _(op: ChannelOp | ReceiveBufferOp, states: States) -> States:
    state = UNWRITTEN if op.input is None else _received(op, op, op.input, states)
    return {op.result: state}


@op_states.register
def _(op: WaitOp, states: States) -> States:
    return {new: states[old] for old, new in zip(op.views, op.awaited, strict=True)}


@op_states.register
def _(op: ArriveOp, states: States) -> States:
    return {new: states[old] for old, new in zip(op.partials, op.complete, strict=True)}


@op_states.register
def _(op: ReadTileOp, states: States) -> States:
    return {op.result: _received(op, channel_op(op.channel), op.stored, states)}


@op_states.register
def _(op: ReadOp | PullOp, states: States) -> States:
    return {op.result: states[program_value(op.channel)]}


@op_states.register
def _(
    op: BufferOp | BarrierOp | FlagsOp | CountersOp | EpochOp | SharesOp | SignalOp,
    states: States,
) -> States:
    return dict.fromkeys(op.results, UNWRITTEN)


def _received(
    op: Operation, memory: ChannelOp | ReceiveBufferOp, value: SSAValue, states: States
) -> State:
    """
    Return the state of what receivers read of a value that ranks store to a channel.

    Raises VerifyException unless the ranks have shards of the gathered dimension, or
    terms that are stacked along it.
    """
    channel, state = memory.type, states[value]
    gathers = channel.gather in names_of(value)
    for axis in memory.axis_names:
        fits = state.sharded.get(axis) == channel.gather
        if not (fits if gathers else axis in state.partial):
            raise VerifyException(
                f"'{op.name}' op concatenates {channel.gather} over axis "
                f"'{axis}', along which its operand is {state.describe(axis)}"
            )
    others = [axis for axis in state.sharded if axis not in memory.axis_names]
    sharded = {axis: state.sharded[axis] for axis in others}
    if channel.split is not None:
        sharded |= dict.fromkeys(memory.axis_names, channel.split)
    pending = {a: k for a, k in state.partial.items() if a not in memory.axis_names}
    return State(sharded, pending, rooted=state.rooted)
