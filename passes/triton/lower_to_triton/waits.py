"""How `lower-to-triton` writes waits, and finds what they return."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.ir import SSAValue

from comet.dialects.dataflow import WaitOp
from comet.dialects.dataflow.rank_loops import source_loops
from comet.dialects.schedule.node import outside
from comet.passes.triton.lower_to_triton.channels import (
    Received,
    from_all,
    from_owner,
    ranks_of,
    wait_for,
)
from comet.passes.triton.lower_to_triton.memory import (
    KernelMemory,
    check_wait,
)
from comet.passes.triton.lower_to_triton.values import Buffer, Scope, Tile


def lower_wait(
    op: WaitOp, scope: Scope, memory: KernelMemory, sources: Collection[str]
) -> None:
    """Write a wait for its own rank, for one source, or for all of them."""
    check_wait(op)
    assert op.flags is not None
    assert op.arrivals is not None
    channel = memory.channel(outside(op.channel))
    flags = memory.flags(outside(op.flags), op)
    found, source = [scope.values[view] for view in op.views], None
    if op.own is not None:
        source = ranks_of(scope).rank
    elif isinstance(view := found[0], Received) and view.gather in scope.owners:
        source = scope.owners[view.gather].rank
    wait_for(scope, channel, flags, op.arrivals.value.data, source)
    for awaited, view in zip(op.awaited, found, strict=True):
        scope.values[awaited] = known(scope, awaited, view, sources)


def known(
    scope: Scope, view: SSAValue, value: Tile | Buffer, sources: Collection[str]
) -> Tile | Buffer:
    """
    Return where a view lies, once it is known whether one rank sent it, or all.

    That is known after a wait for it, and inside the loop over `sources`.
    """
    if not isinstance(value, Received):
        return value
    if any(isinstance(use.operation, WaitOp) for use in view.uses):
        return value
    dim = value.gather
    if (owner := scope.owners.get(dim)) is not None:
        return from_owner(scope, value, owner)
    world = ranks_of(scope).world
    if dim in sources and any(True for _ in source_loops(view, dim, world)):
        return value
    return from_all(scope, value)
