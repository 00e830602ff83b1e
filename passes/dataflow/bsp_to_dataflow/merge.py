"""
Persistent kernels: `bsp-to-dataflow` merges a producer and its consumer into one
kernel.

The producer's nodes come first, so its programs do, too: no program waits for one that
starts later, and any number of resident programs is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from comet.dialects import dataflow
from comet.dialects.dataflow import (
    KernelOp,
    ProgramOp,
    PushOp,
    StageOp,
    WaitOp,
    program_value,
)
from comet.dialects.dataflow.program import shards_attr
from comet.dialects.schedule import SpatialOp
from comet.passes.dataflow.kernel_locals import unawaited
from comet.passes.dataflow.kernels import erase, insert_before


@dataclass(frozen=True)
class Merge:
    """Two kernels, launched one after the other, that become one."""

    producer: KernelOp
    consumer: KernelOp
    ins: tuple[SSAValue, ...]
    """The operands of both that the producer does not compute, each once."""


def merge_kernels(program: ProgramOp) -> None:
    """Merge every producer with the kernel that is launched next, if that waits."""
    first, *others = list(program.kernels())
    for kernel in others:
        merge = plan_merge(first, kernel)
        first = kernel if merge is None else merged(merge)


def plan_merge(producer: KernelOp, consumer: KernelOp) -> Merge | None:
    """
    Return how two kernels become one, None if they cannot.

    The consumer waits for a channel of the producer, before it reads any other result
    of the producer.
    """
    given = {program_value(op.channel) for op in _ops(producer, PushOp, StageOp)}
    awaited = {program_value(op.channel) for op in _ops(consumer, WaitOp)}
    nodes = [op for op in consumer.body.block.ops if isinstance(op, SpatialOp)]
    early = [value for node in nodes for value in unawaited(node, producer)]
    if not given & awaited or early or not _same_global_extents(producer, consumer):
        return None
    ins = dict.fromkeys((*producer.ins, *consumer.ins))
    return Merge(
        producer, consumer, tuple(v for v in ins if v not in producer.results_)
    )


def _ops(
    kernel: KernelOp, *kinds: type[PushOp | StageOp | WaitOp]
) -> Iterator[PushOp | StageOp | WaitOp]:
    return (op for op in kernel.body.block.ops if isinstance(op, kinds))


def _same_global_extents(producer: KernelOp, consumer: KernelOp) -> bool:
    """Whether both have the same unevenly sharded dimensions."""
    one, other = producer.shard_extents, consumer.shard_extents
    return all(one[dim] == other[dim] for dim in one.keys() & other.keys())


def merged(merge: Merge) -> KernelOp:
    """Replace two kernels by one, at the position of the consumer."""
    producer, consumer = merge.producer, merge.consumer
    body = Block(arg_types=[value.type for value in merge.ins])
    values: dict[SSAValue, SSAValue] = dict(zip(merge.ins, body.args, strict=True))
    yielded: list[SSAValue] = []
    for kernel in (producer, consumer):
        made = _copy_into(body, kernel, values)
        values |= zip(kernel.results_, made, strict=True)
        yielded += made
    body.add_op(dataflow.YieldOp(*yielded))
    outs = (*producer.outs, *consumer.outs)
    kernel = KernelOp(consumer.sym_name.data, merge.ins, outs, Region(body))
    _keep_attributes(kernel, producer, consumer)
    insert_before(consumer, kernel)
    before = (*producer.results_, *consumer.results_)
    for old, new in zip(before, kernel.results_, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    erase(consumer)
    erase(producer)
    return kernel


def _copy_into(
    body: Block, kernel: KernelOp, values: dict[SSAValue, SSAValue]
) -> Sequence[SSAValue]:
    """Copy the ops of a kernel to the end of `body`; return what it yields there."""
    inner: dict[SSAValue, SSAValue] = {}
    for argument, value in zip(kernel.body.block.args, kernel.ins, strict=True):
        inner[argument] = values[value]
        values[value].name_hint = values[value].name_hint or argument.name_hint
    terminator = kernel.body.block.last_op
    assert isinstance(terminator, dataflow.YieldOp)
    for op in kernel.body.block.ops:
        if op is not terminator:
            _copy(body, op, inner)
    return [inner[value] for value in terminator.values]


def _copy(body: Block, op: Operation, values: dict[SSAValue, SSAValue]) -> None:
    copy = op.clone(value_mapper=values)
    body.add_op(copy)
    values |= zip(op.results, copy.results, strict=True)


def _keep_attributes(kernel: KernelOp, producer: KernelOp, consumer: KernelOp) -> None:
    """Give `kernel` the properties of both kernels for their dimensions."""
    kernel.attributes |= {**producer.attributes, **consumer.attributes}
    kernel.sources = _joined(producer.sources, consumer.sources)
    kernel.destinations = _joined(producer.destinations, consumer.destinations)
    kernel.shards = shards_attr(producer.shard_extents | consumer.shard_extents)


def _joined(
    one: ArrayAttr[StringAttr] | None, other: ArrayAttr[StringAttr] | None
) -> ArrayAttr[StringAttr] | None:
    names = dict.fromkeys((*(one or ()), *(other or ())))
    return ArrayAttr(names) if names else None
