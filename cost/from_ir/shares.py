"""Reads how programs share lists of tiles, see `dataflow.shares`."""

from __future__ import annotations

from xdsl.ir import OpResult

from comet.cost.gpu.shares import SharedTiles
from comet.dialects.dataflow.shares import SharesOp, shares_of
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.masked_loops import copied_value


def shared_tiles(node: SpatialOp) -> SharedTiles | None:
    """Return how programs of a node share tiles of sequences, None if not."""
    if (shares := shares_of(node)) is None:
        return None
    loops = frozenset(loop.dim for op in _ended(node) for loop in op.loops)
    return _tiles(shares, loops)


def seen_parts(node: SpatialOp) -> dict[str, float]:
    """Return the mean fraction that there is of parts of sequences, by dimension."""
    if (shares := shares_of(node)) is not None:
        return {shares.part: _tiles(shares, frozenset()).seen_parts}
    found: dict[str, float] = {}
    for op in _ended(node):
        assert op.end is not None
        count = copied_value(op.ins[op.end.value.data])
        if isinstance(count, OpResult) and isinstance(count.op, SharesOp):
            seen = _tiles(count.op, frozenset()).seen_parts
            found |= {loop.dim: seen for loop in op.loops}
    return found


def _ended(node: SpatialOp) -> list[TemporalOp]:
    """Return the loops of a node whose iterations end at a number of them."""
    loops = (op for op in node.walk() if isinstance(op, TemporalOp))
    return [op for op in loops if op.end is not None]


def _tiles(shares: SharesOp, loops: frozenset[str]) -> SharedTiles:
    return SharedTiles(
        shares.part,
        shares.dim,
        loops,
        shares.sequences,
        shares.parts,
        shares.run_count,
    )
