"""Where a program of a GPU kernel waits for loads, and which waits are one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.ir import Operation, SSAValue

from comet.cost.from_ir.bodies import Body
from comet.cost.from_ir.tile_traffic import gathered_ids
from comet.cost.gpu.terms import Wait
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.transfers import loads


def waits_for_loads(bodies: Iterable[Body]) -> Iterator[Wait]:
    """
    Yield the waits of bodies.

    A body waits for its early loads, and for its late loads; before, for the ids of the
    rows that it gathers.
    """
    for body in bodies:
        for ids in gathered_ids(body):
            yield Wait(tuple(dim for dim in body.loops if dim in ids.dims))
        loaded = [load.tile for load in body.loads]
        early = [tile for tile in loaded if tile not in body.late]
        late = [tile for tile in loaded if tile in body.late]
        count = body.coalesced
        if early:
            joined = () if late else _loops_to_loading(body)
            yield Wait(body.loops, joined, _repeated(early, body), count)
        if late:
            around = _loops_to_loading(body)
            yield Wait(body.loops, around, _repeated(late, body), count)


def _repeated(tiles: Sequence[SSAValue], body: Body) -> tuple[str, ...]:
    """Return the loops of tiles that are all repeated, see `Body`, else none."""
    if any(tile not in body.repeated for tile in tiles):
        return ()
    return tuple(dict.fromkeys(dim for tile in tiles for dim in body.repeated[tile]))


def _loops_to_loading(body: Body) -> tuple[str, ...] | None:
    """Return the loops inside the next loop that loads, from a body outwards."""
    inner: tuple[str, ...] = ()
    loop: Operation | None = body.node
    while isinstance(loop, TemporalOp):
        inner = (*loop.factors, *inner)
        loop = loop.parent_op()
        if isinstance(loop, TemporalOp) and any(loads(loop)):
            return inner
    return None
