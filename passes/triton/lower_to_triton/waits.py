"""How `lower-to-triton` writes waits, and finds what they return."""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.dataflow import WaitOp
from comet.dialects.dataflow.flags import FlagScope, Semantics
from comet.dialects.dataflow.rank_loops import source_loops
from comet.passes.triton.lower_to_triton.buffers import Buffer, Received
from comet.passes.triton.lower_to_triton.channels import (
    from_all,
    from_owner,
    ranks_of,
    wait_for,
)
from comet.passes.triton.lower_to_triton.table import lowers
from comet.passes.triton.lower_to_triton.values import Scope, Tile


@lowers(WaitOp)
def lower_wait(op: WaitOp, scope: Scope) -> None:
    """Write a wait for its own rank, for one source, or for all of them."""
    _check_wait(op)
    assert op.arrivals is not None
    channel, flags = scope.memory.channel(op.channel), scope.memory.flags(op.flags, op)
    found, source = [scope.values[view] for view in op.views], None
    if op.own is not None:
        source = ranks_of(scope).rank
    elif isinstance(view := found[0], Received) and view.gather in scope.owners:
        source = scope.owners[view.gather].rank
    wait_for(scope, channel, flags, op.arrivals.value.data, source)
    for awaited, view in zip(op.awaited, found, strict=True):
        scope.values[awaited] = known(scope, awaited, view)


def _check_wait(op: WaitOp) -> None:
    """Reject what the shim's wait is not: an acquire of what any rank released."""
    kinds = (op.semantics and op.semantics.data, op.scope and op.scope.data)
    if kinds != (Semantics.ACQUIRE, FlagScope.SYSTEM):
        raise PassFailedException(
            "lower-to-triton: dataflow.wait is an acquire of system scope; verify-sync "
            "says what else would break"
        )


def known(scope: Scope, view: SSAValue, value: Tile | Buffer) -> Tile | Buffer:
    """
    Return where a view lies, once it is known whether one rank sent it, or all.

    That is known after a wait for it, and inside the loop over the ranks.
    """
    if not isinstance(value, Received):
        return value
    if any(isinstance(use.operation, WaitOp) for use in view.uses):
        return value
    dim = value.gather
    if (owner := scope.owners.get(dim)) is not None:
        return from_owner(scope, value, owner)
    ranks = scope.over_ranks
    if dim in ranks.sources and any(True for _ in source_loops(view, dim, ranks.ranks)):
        return value
    return from_all(scope, value)
