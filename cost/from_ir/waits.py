"""Where a program of a GPU kernel waits for loads, and which waits are one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.ir import Operation

from comet.cost.from_ir.bodies import Body
from comet.cost.from_ir.tile_traffic import gathered_ids
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.transfers import loads


def rounds(bodies: Iterable[Body]) -> Iterator[tuple[str, ...]]:
    """
    Yield the loops around each point where a program waits for loads.

    It waits for the ids of rows that it gathers before it loads these.
    """
    for body in bodies:
        for ids in gathered_ids(body):
            yield tuple(dim for dim in body.loops if dim in ids.dims)
        yield from [body.loops] * _waits(body)


def joined_rounds(
    bodies: Iterable[Body],
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """
    Yield the loops around each wait that a pipeline has with another, and those inside.

    The latter have one iteration then: the loop around them loads, too.
    """
    for body in bodies:
        waits = _waits(body)
        yield from [(body.loops, ())] * (waits - 1)
        if waits and (inner := _loops_to_loading(body)) is not None:
            yield body.loops, inner


def repeated_rounds(
    bodies: Iterable[Body],
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """
    Yield the loops around the waits all of whose loads are repeated, see `Body`.

    Each comes with the loops that must have one trip.
    """
    for body in bodies:
        for is_late in (False, True):
            tiles = [
                load.tile for load in body.loads if (load.tile in body.late) is is_late
            ]
            if tiles and all(tile in body.repeated for tile in tiles):
                both = (dim for tile in tiles for dim in body.repeated[tile])
                yield body.loops, tuple(dict.fromkeys(both))


def _waits(body: Body) -> int:
    """Return how often a body waits: for its early loads, and for its late loads."""
    return len({load.tile in body.late for load in body.loads})


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
