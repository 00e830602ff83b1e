"""
Pushes, stages and signals at the borders of kernels -> where programs store and signal.

A part of `place-waits`. A push or stage is placed after the copy that stores the tile
to memory, or replaces it if nothing else reads that memory. A signal is the last op of
a program, and covers its stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.blocks import terminator_of
from comet.dialects.compound import View
from comet.dialects.dataflow import PushOp, SignalOp, StageOp
from comet.dialects.dataflow.signals import sent_with, store_of
from comet.dialects.schedule import CopyOp, SpatialOp, YieldOp
from comet.dialects.schedule.node import NodeOp
from comet.passes.dataflow.kernels import inside


@dataclass(frozen=True)
class SendPlan:
    """The sends and signals that move into a node."""

    node: SpatialOp
    producers: tuple[PushOp | StageOp, ...]
    signals: tuple[SignalOp, ...]
    """Signals of channels that only this node stores to."""
    local: tuple[int, ...]
    """The results that other nodes of the kernel read."""


def plan_sends(node: SpatialOp) -> SendPlan:
    """Return the sends that move into a node; those in another order stay."""
    kernel = node.parent
    assert kernel is not None
    sends = [op for op in kernel.ops if isinstance(op, PushOp | StageOp)]
    signals = [op for op in kernel.ops if isinstance(op, SignalOp)]
    producers = [op for op in sends if _can_store(op, node, signals)]
    stored = [op.channel for op in producers]
    outside = [op.channel for op in sends if op not in producers]
    done = (
        op
        for op in signals
        if op.flags is not None
        and all(channel in stored and channel not in outside for channel in op.channels)
    )
    local = (i for i, out in enumerate(node.outs) if _is_read(out))
    return SendPlan(node, tuple(producers), tuple(done), tuple(local))


def _can_store(
    op: PushOp | StageOp, node: SpatialOp, signals: Sequence[SignalOp]
) -> bool:
    """
    Return whether the node copies the sent tile to memory, before any signal of it.
    """
    early = (
        signal
        for signal in signals
        if op.channel in signal.channels and signal.is_before_in_block(op)
    )
    return (
        op.epoch is not None
        and op.value in node.outs
        and isinstance(store_of(_sent_value(op, node)), CopyOp)
        and not any(early)
    )


def _sent_value(op: PushOp | StageOp, node: SpatialOp) -> SSAValue:
    """Return the value in the body of `node` that `op` sends as the node's result."""
    assert isinstance(op.value, OpResult)
    return node.yielded[op.value.index]


def _is_read(out: SSAValue) -> bool:
    """Whether another node of the kernel reads a result."""
    users = (use.operation for use in out.uses)
    return any(isinstance(user, View | SpatialOp) for user in users)


def place_sends(plan: SendPlan) -> None:
    """Move what a node sends and signals into its body."""
    for op in plan.producers:
        _place_producer(op, plan.node)
    for signal in plan.signals:
        _place_signal(signal, plan)
    for op in (*plan.signals, *plan.producers):
        Rewriter.erase_op(op)


def _place_producer(op: PushOp | StageOp, node: SpatialOp) -> None:
    """Store a tile to a channel after the copy of it, or in place of that."""
    value = _sent_value(op, node)
    copy = store_of(value)
    assert copy is not None
    assert copy.parent is not None
    assert op.epoch is not None
    channel, epoch = (inside(value, copy.parent) for value in (op.channel, op.epoch))
    send = type(op)(copy.operands[0], channel, epoch, copy.results[0].type)
    send.location = op.location
    assert send.stored is not None
    send.stored.name_hint = copy.results[0].name_hint
    last = [copy, *(sent for sent in sent_with(value) if sent is not copy)][-1]
    Rewriter.insert_op(send, InsertPoint.after(last))
    if isinstance(copy, CopyOp) and not _is_kept(op.value, value):
        copy.result.replace_all_uses_with(send.stored)
        Rewriter.erase_op(copy)


def _is_kept(out: SSAValue, yielded: SSAValue) -> bool:
    """Whether a result of a node is stored for others than its channels."""
    sent = (isinstance(use.operation, PushOp | StageOp) for use in out.uses)
    rest = (
        isinstance(use.operation, YieldOp)
        for value in _chain(yielded)
        for use in value.uses
    )
    return not (all(sent) and all(rest))


def _chain(value: SSAValue) -> Iterator[SSAValue]:
    """Yield a value of a body, and what inner nodes yield as this value."""
    yield value
    if isinstance(value, OpResult) and isinstance(inner := value.op, NodeOp):
        yield from _chain(inner.yielded[value.index])


def _place_signal(signal: SignalOp, plan: SendPlan) -> None:
    """
    Signal at the end of a node, for what it sent.

    The signal also covers the results that other nodes of the kernel read.
    """
    node, channels = plan.node, signal.channels
    block = node.body.block
    sent = [_sent_value(op, node) for op in plan.producers if op.channel in channels]
    covered = [*sent, *(node.yielded[index] for index in plan.local)]
    assert signal.flags is not None
    assert signal.epoch is not None
    operands = (signal.flags, signal.epoch, *channels)
    flags, epoch, channel, *others = (inside(value, block) for value in operands)
    covered = (*others, *dict.fromkeys(covered))
    inner = SignalOp(channel, flags, epoch, covered=covered)
    for name in ("semantics", "scope", "fence"):
        inner.properties.pop(name, None)
        if name in signal.properties:
            inner.properties[name] = signal.properties[name]
    inner.location = signal.location
    Rewriter.insert_op(inner, InsertPoint.before(terminator_of(block)))
