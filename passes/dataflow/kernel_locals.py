"""
What a node of a kernel reads from another node of the same kernel.

The programs of a kernel run in no order but the one that flags make. A channel of which
the first node is the producer orders both: its signal follows all stores of a program,
and the second node waits for its own rank's message before it loads anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import OpResult, SSAValue

from comet.dialects.compound.dims import names_of
from comet.dialects.compound.rename import viewed
from comet.dialects.dataflow import (
    KernelOp,
    PullOp,
    PushOp,
    ReadOp,
    StageOp,
    WaitOp,
    program_value,
)
from comet.dialects.dataflow.rank_loops import loops_over
from comet.dialects.dataflow.signals import awaited_channel, blocks_of
from comet.dialects.schedule import SpatialOp


def maker_of(value: SSAValue) -> OpResult | None:
    """Return the result of a node, of any kernel, that `value` is; None if of none."""
    value = program_value(viewed(value))
    if isinstance(value, OpResult) and isinstance(value.op, KernelOp):
        terminator = value.op.body.block.last_op
        assert terminator is not None
        value = terminator.operands[value.index]
    if isinstance(value, OpResult) and isinstance(value.op, SpatialOp):
        return value
    return None


def unawaited(node: SpatialOp, makers: KernelOp) -> Iterator[SSAValue]:
    """Yield what `node` reads of the nodes of `makers` although no flags order them."""
    for value, made in _read_of(node, makers):
        if _waited_for(node, value, made) is None:
            yield value


def awaited_first(node: SpatialOp) -> tuple[SSAValue, ...]:
    """
    Return the operands that `node` waits for, of its own rank, before it loads others.

    These come from channels, the others from nodes of its kernel.
    """
    kernel = node.parent_op()
    assert isinstance(kernel, KernelOp)
    found = (_waited_for(node, *read) for read in _read_of(node, kernel))
    return tuple(dict.fromkeys(value for value in found if value is not None))


def _read_of(node: SpatialOp, makers: KernelOp) -> Iterator[tuple[SSAValue, OpResult]]:
    """Yield the operands of `node` that nodes of `makers` make, with their results."""
    for value in node.ins:
        made = maker_of(value)
        if made is not None and made.op.parent_op() is makers:
            yield value, made


def _waited_for(node: SpatialOp, read: SSAValue, made: OpResult) -> SSAValue | None:
    """Return the operand from a channel, a wait for which is one for what is read."""
    kernel = node.parent
    assert kernel is not None
    waits = {op.channel: op for op in kernel.ops if isinstance(op, WaitOp)}
    for value in node.ins:
        op = viewed(value).owner
        if not isinstance(op, ReadOp | PullOp) or op.channel not in waits:
            continue
        dims = blocks_of(awaited_channel(waits[op.channel]))
        if (
            # A receiver of a part gets signals of that part only.
            op.channel_type.split is None
            and _is_producer(made, program_value(op.channel))
            and all(_same_slice(dim, op.result, value, made, read) for dim in dims)
            and not _is_gathered_on_grid(op, node)
        ):
            return value
    return None


def _is_producer(made: OpResult, channel: SSAValue) -> bool:
    """
    Whether the node that makes a value is a producer of a channel, perhaps of another
    value.
    """
    return any(
        isinstance(use.operation, PushOp | StageOp)
        and program_value(use.operation.channel) is channel
        for out in made.op.results
        for use in out.uses
    )


def _same_slice(
    dim: str, sent: SSAValue, received: SSAValue, made: SSAValue, read: SSAValue
) -> bool:
    """Whether a reader cuts a dimension of a message as that of what else is made."""
    one, other = _renamed(sent, received), _renamed(made, read)
    return dim in other and other[dim] == one.get(dim)


def _renamed(value: SSAValue, view: SSAValue) -> dict[str, str]:
    """Return what a view calls dimensions; nothing where it sees one in parts."""
    names, others = names_of(value), names_of(view)
    return dict(zip(names, others, strict=True)) if len(names) == len(others) else {}


def _is_gathered_on_grid(op: ReadOp | PullOp, node: SpatialOp) -> bool:
    """Whether a program sees what one rank sent only."""
    loops = loops_over(op.result, op.channel_type.gather)
    return any(inner is node for inner, _ in loops)
