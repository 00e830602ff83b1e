"""How `lower-to-triton` writes waits, and finds what they return."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from comet.dialects.compound import RenameOp
from comet.dialects.compound.dims import names_of
from comet.dialects.dataflow import ReadTileOp, WaitOp
from comet.dialects.dataflow.flags import FlagScope, Semantics
from comet.dialects.dataflow.rank_loops import source_loops
from comet.dialects.errors import OpError
from comet.dialects.schedule.node import outside
from comet.passes.triton.lower_to_triton.buffers import Buffer, Flags, Received
from comet.passes.triton.lower_to_triton.channels import (
    from_all,
    from_owner,
    wait_for,
)
from comet.passes.triton.lower_to_triton.memory import received
from comet.passes.triton.lower_to_triton.ranks import RankParameters
from comet.passes.triton.lower_to_triton.table import lowers
from comet.passes.triton.lower_to_triton.values import Scope, Tile


@lowers(WaitOp)
def lower_wait(op: WaitOp, scope: Scope) -> None:
    """Write a wait for its own rank, for one source, or for all of them."""
    channel, flags = scope.memory.channel(op.channel), scope.memory.flags(op.flags, op)
    _check_wait(op, channel.ranks)
    assert op.arrivals is not None
    found, source = [scope.values[view] for view in op.views], None
    if op.own is not None:
        source = channel.ranks.rank
    elif isinstance(view := found[0], Received) and view.gather in scope.owners:
        source = scope.owners[view.gather].rank
    for names in _namings(op.views, flags):
        wait_for(scope, channel, flags, names, op.arrivals.value.data, source)
    for awaited, view in zip(op.awaited, found, strict=True):
        scope.values[awaited] = with_sources(scope, awaited, view)


def _namings(views: Sequence[SSAValue], flags: Flags) -> list[dict[str, str]]:
    """Return the names in views by dimension of the flags' blocks, without doubles."""
    found: list[dict[str, str]] = []
    for names in map(_names_in, views):
        named = {b.dim: names.get(b.dim, b.dim) for b in flags.type.blocks}
        if named not in found:
            found.append(named)
    return found


def _names_in(view: SSAValue) -> dict[str, str]:
    """Return the dimension names of a view, by those of the value it is a view of."""
    value = outside(view)
    match value.owner:
        case RenameOp(input=renamed) as rename:
            names = _names_in(renamed)
            return {dim: rename.renaming[name] for dim, name in names.items()}
        case WaitOp() as wait:
            return _names_in(wait.views[wait.awaited.index(value)])
        case _:
            return {dim: dim for dim in names_of(value)}


def _check_wait(op: WaitOp, ranks: RankParameters) -> None:
    """Raise OpError unless a wait acquires from all ranks, as the shim's does."""
    kinds = (op.semantics and op.semantics.data, op.scope and op.scope.data)
    scope = FlagScope.GPU if ranks.shares_memory else FlagScope.SYSTEM
    if kinds != (Semantics.ACQUIRE, scope):
        raise OpError(
            op,
            f"lower-to-triton: dataflow.wait is an acquire of {scope} scope; "
            "verify-sync says what else would break",
        )


@lowers(ReadTileOp)
def lower_read_tile(op: ReadTileOp, scope: Scope) -> Buffer:
    """Return the memory that the programs of the group have stored to."""
    return received(op.channel, op.result, scope.memory)


def with_sources(scope: Scope, view: SSAValue, value: Tile | Buffer) -> Tile | Buffer:
    """
    Return the memory of a view of a channel, if its sources are known here.

    They are after the wait: one rank inside a loop over ranks, else all ranks.
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
