"""
The forward analysis of SPMD regions below the elementary level.

The nodes of a tile tree, the kernels of a program and its channels hand on how a value
relates to the global one: reading a channel gives what its collective would.
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from comet.dialects.collective.analysis import result_states
from comet.dialects.collective.state import State, States
from comet.dialects.compound.dims import names_of
from comet.dialects.dataflow import KernelOp, ProgramOp
from comet.dialects.dataflow.channel import ChannelOp, InboxOp, behind
from comet.dialects.dataflow.transfer import PullOp, PushOp, ReadOp, StageOp
from comet.dialects.schedule.analysis import node_states
from comet.dialects.schedule.node import NodeOp

UNSAID = State({}, {}, uniform=True)
"""What is known of a buffer that nothing has been written to."""


def states_after(op: Operation, states: States) -> States:
    """
    Return the states of the results of an op of any level, and of all it holds.

    Raises VerifyException where `op` uses a value as what it is not, or one from
    outside of the region.
    """
    if any(value not in states for value in op.operands):
        raise VerifyException(
            f"'{op.name}' op uses a value from outside of its region; hand it in as an "
            "operand of the op around it"
        )
    match op:
        case NodeOp():
            return node_states(op, states)
        case ProgramOp() | KernelOp():
            return _region_states(op, states)
        case PushOp() | StageOp():
            made = behind(op.channel).owner
            assert isinstance(made, ChannelOp | InboxOp)
            return {made.result: _received(op, made, op.value, states)}
        case ChannelOp() | InboxOp() if op.input is not None:
            return {op.result: _received(op, op, op.input, states)}
        case ReadOp() | PullOp():
            return {op.result: states[behind(op.channel)]}
        case _ if op.dialect_name() == "dataflow":
            return dict.fromkeys(op.results, UNSAID)
        case _:
            return result_states(op, states)


def _region_states(op: ProgramOp | KernelOp, states: States) -> States:
    """Return the states of everything in a region, and of the op's results."""
    block = op.body.block
    inner = dict(states)
    inner.update((a, states[v]) for a, v in zip(block.args, op.ins, strict=True))
    *ops, terminator = block.ops
    for each in ops:
        inner |= states_after(each, inner)
    yielded = [inner[value] for value in terminator.operands]
    return inner | dict(zip(op.results_, yielded, strict=True))


def _received(
    op: Operation, made: ChannelOp | InboxOp, value: SSAValue, states: States
) -> State:
    """
    Return the state of what receivers see of a value that ranks give to a channel.

    Raises VerifyException unless the ranks hold shares of the gathered dimension, or
    terms that are stacked along it.
    """
    channel, state = made.type, states[value]
    gathers = channel.gather in names_of(value)
    for axis in made.axis_names:
        fits = state.sharded.get(axis) == channel.gather
        if not (fits if gathers else axis in state.partial):
            raise VerifyException(
                f"'{op.name}' op lays {channel.gather} side by side over axis "
                f"'{axis}', along which its operand is {state.describe(axis)}"
            )
    others = [axis for axis in state.sharded if axis not in made.axis_names]
    sharded = {axis: state.sharded[axis] for axis in others}
    if channel.split is not None:
        sharded |= dict.fromkeys(made.axis_names, channel.split)
    pending = {a: k for a, k in state.partial.items() if a not in made.axis_names}
    return State(sharded, pending, rooted=state.rooted)
