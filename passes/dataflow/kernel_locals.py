"""
Values that one node of a kernel reads from another node of the same kernel.

Only flags order the programs of a kernel. A channel whose producer is the first node
also orders its other stores: the signal follows all stores of a program, and the second
node waits for the message of its own rank before it loads anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import OpResult, SSAValue

from comet.dialects.compound.dims import names_of
from comet.dialects.compound.rename import viewed
from comet.dialects.compound.views import sources
from comet.dialects.dataflow import (
    KernelOp,
    PullOp,
    ReadOp,
    WaitOp,
    program_value,
)
from comet.dialects.dataflow.channel import ChannelType
from comet.dialects.dataflow.signals import awaited_channel, blocks_of, producers_in
from comet.dialects.schedule import SpatialOp


def node_result(value: SSAValue) -> OpResult | None:
    """Return the node result, in any kernel, that `value` is or views, else None."""
    value = program_value(viewed(value))
    if isinstance(value, OpResult) and isinstance(value.op, KernelOp):
        value = value.op.yielded[value.index]
    if isinstance(value, OpResult) and isinstance(value.op, SpatialOp):
        return value
    return None


def unawaited(node: SpatialOp, producers: KernelOp) -> Iterator[SSAValue]:
    """Yield the operands from nodes of `producers` that no wait of `node` covers."""
    for value, result in operands_from(node, producers):
        if _ordering_wait(node, value, result) is None:
            yield value


def local_waits(node: SpatialOp) -> dict[SSAValue, WaitOp]:
    """
    Return, for each operand from another node of the kernel, the wait that covers it.

    It is a wait of the kernel for a channel; before the load of the operand, the node
    waits for the message of its own rank.
    """
    kernel = node.parent_op()
    assert isinstance(kernel, KernelOp)
    found = {
        operand: _ordering_wait(node, operand, result)
        for operand, result in operands_from(node, kernel)
    }
    return {operand: wait for operand, wait in found.items() if wait is not None}


def operands_from(
    node: SpatialOp, producers: KernelOp
) -> Iterator[tuple[SSAValue, OpResult]]:
    """Yield the operands of `node` from nodes of `producers`, with the node results."""
    for value in node.ins:
        for result in map(node_result, sources(value)):
            if result is not None and result.op.parent_op() is producers:
                yield value, result


def _ordering_wait(
    node: SpatialOp, operand: SSAValue, result: OpResult
) -> WaitOp | None:
    """
    Return the wait of a kernel that orders an operand after `result`, None without one.

    None for a slice or a concat, whose slices are not those of `result`.
    """
    if node_result(operand) is not result:
        return None
    kernel = node.parent
    assert kernel is not None
    received = [viewed(value).owner for value in node.ins]
    channels = [op.channel for op in received if isinstance(op, ReadOp | PullOp)]
    for wait in (op for op in kernel.ops if isinstance(op, WaitOp)):
        awaited = awaited_channel(wait)
        if wait.channel in channels and is_signalled(node, operand, result, awaited):
            return wait
    return None


def is_signalled(
    node: SpatialOp, operand: SSAValue, result: OpResult, channel: SSAValue
) -> bool:
    """
    Return whether the signal of a channel also covers an operand of its own rank.

    The signalling programs must have computed the operand before, and a program must
    have the same slices of the operand and of the sent value.
    """
    type_ = program_value(channel).type
    assert isinstance(type_, ChannelType)
    return (
        # A receiver of a shard gets only its signals.
        type_.split is None
        # A program that reads what one rank sent has only another slice.
        and type_.gather not in node.factors
        and _is_producer(result, program_value(channel))
        and all(_keeps(dim, result, operand) for dim in blocks_of(channel))
    )


def _is_producer(result: OpResult, channel: SSAValue) -> bool:
    """
    Whether the node that computes a value is a producer of a channel, perhaps of
    another value.
    """
    kernel, node = result.op.parent_op(), result.op
    assert isinstance(kernel, KernelOp)
    assert isinstance(node, SpatialOp)
    producers = producers_in(kernel, node)
    return any(program_value(op.channel) is channel for op in producers)


def _keeps(dim: str, result: SSAValue, operand: SSAValue) -> bool:
    """Whether the computed value has the dimension by the name that its reader uses."""
    names, others = names_of(result), names_of(operand)
    return len(names) == len(others) and (dim, dim) in zip(names, others, strict=True)
