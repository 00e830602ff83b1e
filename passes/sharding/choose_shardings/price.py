"""The time of a function whose ops are sharded, before there are kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue

from comet.cost.from_ir.sharded_ops import sharded_seconds
from comet.cost.gpu.launch_plan import Machine
from comet.dialects.compound.dims import bytes_of
from comet.passes.sharding.boundary import boundary_of
from comet.passes.sharding.insert_collectives.local_body import restricted
from comet.passes.sharding.moves import received
from comet.passes.sharding.propagate_shardings.known import Known, operands_of

Needed: TypeAlias = tuple[SSAValue, tuple[tuple[str, tuple[str, ...]], ...]]
"""A value, and the dimensions and mesh axes in which it is needed in shards."""


def seconds_of(known: Known, machine: Machine) -> float:
    """
    Return the seconds of a function of which all shardings are known.

    That is the time of the ops, one after the other, and of what ranks receive between
    them. Each exchange takes a launch, the latency of the links and that of a signal as
    well. What all ranks have whole is there in any shards.
    """
    mesh = known.mesh
    computing = sum(
        sharded_seconds(
            op, {dim: mesh.size(axes) for dim, axes in split.items()}, machine.device
        )
        for op, split in known.ops.items()
    )
    net = machine.net
    exchange = machine.launch + net.latency + net.signal
    moved = [size for size in _received(known) if size > 0]
    return computing + len(moved) * exchange + sum(moved) / net.rate(net.peers)


def _received(known: Known) -> Iterator[float]:
    """Yield the bytes that a rank receives of each value, for each sharding of it."""
    for value, wanted in dict.fromkeys(_needed(known)):
        if (held := known.held(value)) is not None:
            yield received(held, dict(wanted), bytes_of(value), known.mesh) or 0.0
    for op, split in known.ops.items():
        yield from known.merged(op, split)


def _needed(known: Known) -> Iterator[Needed]:
    """Yield the values that ops and the caller need, each with its sharding."""
    for op, split in known.ops.items():
        for value in operands_of(op):
            yield value, tuple(restricted(split, value).items())
    terminator = known.func.body.block.last_op
    assert isinstance(terminator, ReturnOp)
    results = boundary_of(known.func).results
    for value, stated in zip(terminator.operands, results, strict=True):
        wanted = known.sharding(value) if stated is None else stated
        yield value, tuple(wanted.items())
