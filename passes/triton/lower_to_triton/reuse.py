"""
Which tiles `lower-to-triton` loads before a loop: those that the loop does not change.

A temporal node hands a tensor in device memory on to the nodes of its body, and each of
them loads its tile. Where none of them cuts the tensor, all iterations load one tile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from xdsl.ir import SSAValue

from comet.dialects.compound import ReduceKind, ReduceOp
from comet.dialects.compound.dims import names_of
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.transfers import borders


def padding_for(value: SSAValue) -> float:
    """Return what a loaded tile should hold beyond its ends: what its users want."""
    uses = [use.operation for use in value.uses]
    if uses and all(
        isinstance(op, ReduceOp) and op.kind.data is ReduceKind.MAX for op in uses
    ):
        return -math.inf
    return 0.0


def common_tile(argument: SSAValue) -> SSAValue | None:
    """
    Return the tile that the nodes of a body make of `argument`, a tensor in memory.

    None unless all that use it load it whole and want the same beyond its ends.
    """
    tiles = list(_tiles_of(argument))
    first = tiles[0] if tiles else None
    if first is None:
        return None
    padding = padding_for(first)
    same = all(tile is not None and padding_for(tile) == padding for tile in tiles)
    return first if same else None


def _tiles_of(argument: SSAValue) -> Iterator[SSAValue | None]:
    """Yield what each use of `argument` loads; None where it is cut, or not loaded."""
    for use in argument.uses:
        node = use.operation
        if not isinstance(node, TemporalOp) or use.index >= len(node.ins):
            yield None
            continue
        border = list(borders(node))[use.index]
        if any(node.factors.get(dim, 1) > 1 for dim in names_of(border.tile)):
            yield None
        elif border.is_transfer:
            yield border.tile
        else:
            yield from _tiles_of(border.tile)
