"""Which loops change a tile: those that its copy has to be in, the others not."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from comet.cost.reals import Real, Truth


def loops_around(
    tile: Collection[str], loops: Sequence[tuple[str, Real]]
) -> list[Truth]:
    """
    Say of each loop whether the copy of a tile has to be in it.

    `tile` has the dimensions of the tile; `loops` are dimensions and trip counts,
    outermost first. A loop of several trips changes a tile that has its dimension; a
    copy is in all loops that change its tile, and in those around them. It is
    loop-invariant in the others, and can be before them.
    """
    changed: Truth = False
    around: list[Truth] = []
    for dim, trips in reversed(loops):
        if dim in tile:
            changed = np.logical_or(changed, np.greater(trips, 1))
        around.append(changed)
    return around[::-1]
