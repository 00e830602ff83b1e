"""
Persistent kernels: `bsp-to-dataflow` merges a producer and its consumer into one
kernel.

The producer's nodes come first, so its programs do, too: no program waits for one that
starts later, and any number of resident programs is enough.
"""

from __future__ import annotations

from collections.abc import Iterator

from comet.dialects.dataflow import (
    KernelOp,
    ProgramOp,
    PushOp,
    StageOp,
    WaitOp,
    program_value,
)
from comet.dialects.schedule import SpatialOp
from comet.passes.dataflow.bsp_to_dataflow.plan import extents_tell_shards
from comet.passes.dataflow.kernel_locals import unawaited
from comet.passes.dataflow.kernels import joined


def merge_kernels(program: ProgramOp) -> None:
    """Merge every producer with the kernel that is launched next, if that waits."""
    first, *others = list(program.kernels())
    for kernel in others:
        first = joined(first, kernel) if can_merge(first, kernel) else kernel


def can_merge(producer: KernelOp, consumer: KernelOp) -> bool:
    """
    Return whether two kernels, launched one after the other, may become one.

    The consumer waits for a channel of the producer, before it reads any other result
    of the producer.
    """
    given = {program_value(op.channel) for op in _ops(producer, PushOp, StageOp)}
    awaited = {program_value(op.channel) for op in _ops(consumer, WaitOp)}
    nodes = [op for op in consumer.body.block.ops if isinstance(op, SpatialOp)]
    early = [value for node in nodes for value in unawaited(node, producer)]
    pairs = (producer, consumer), (consumer, producer)
    known = all(extents_tell_shards(*pair) for pair in pairs)
    same = _same_global_extents(producer, consumer)
    return bool(given & awaited) and not early and same and known


def _ops(
    kernel: KernelOp, *kinds: type[PushOp | StageOp | WaitOp]
) -> Iterator[PushOp | StageOp | WaitOp]:
    return (op for op in kernel.body.block.ops if isinstance(op, kinds))


def _same_global_extents(producer: KernelOp, consumer: KernelOp) -> bool:
    """Whether both have the same unevenly sharded dimensions."""
    one, other = producer.shard_extents, consumer.shard_extents
    return all(one[dim] == other[dim] for dim in one.keys() & other.keys())
