"""In which loops the copy of a tile must be: those that change the tile."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from comet.cost.reals import Real, Truth


def loops_around(
    tile: Collection[str],
    loops: Sequence[tuple[str, Real]],
    *,
    late: bool = False,
) -> list[Truth]:
    """
    Return, for each loop, whether the copy of a tile must be inside it.

    `tile` has the dimensions of the tile; `loops` are dimensions and trip counts,
    outermost first. A loop of several trips changes a tile that has its dimension; a
    copy is inside all loops that change its tile, and inside the loops around these. It
    is loop-invariant in the others, and can be hoisted before them. A `late` copy stays
    in all loops: it comes after a loop inside of them, so that no registers hold the
    tile while that loop runs, and to load it again from L2 takes less than they would.
    """
    changed: Truth = late
    around: list[Truth] = []
    for dim, trips in reversed(loops):
        if dim in tile:
            changed = np.logical_or(changed, np.greater(trips, 1))
        around.append(changed)
    return around[::-1]
