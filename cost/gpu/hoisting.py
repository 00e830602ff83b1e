"""How far the copy of a tile can be hoisted: the rule for prices and rewrites."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from comet.cost.reals import Real, Truth, any_of


def loops_around(
    tile: Collection[str],
    loops: Sequence[tuple[str, Real]],
    *,
    late: bool = False,
) -> list[Truth]:
    """
    Return, for each loop, whether the copy of a tile must be inside it.

    `tile` has the dimensions of the tile; `loops` are dimensions and trip counts,
    outermost first. A loop of several trips changes a tile that has its dimension. The
    copy must be inside the loops that change the tile, and inside all loops around
    these; it is loop-invariant in the others, and can be hoisted before them. A `late`
    copy comes after a loop inside of them, and stays: hoisted, it would hold registers
    while that loop runs, which costs more than loading the tile again from L2.
    """
    changed: Truth = late
    around: list[Truth] = []
    for dim, trips in reversed(loops):
        if dim in tile:
            changed = np.logical_or(changed, np.greater(trips, 1))
        around.append(changed)
    return around[::-1]


def same_in_all_tiles(tile: Collection[str], grid: Sequence[tuple[str, Real]]) -> Truth:
    """
    Return whether all tiles of the launch grid read the same tile of a tensor.

    `tile` has the dimensions of the tensor's tile; `grid` are the dimensions of the
    grid, each with its number of tiles. A persistent program can load it once.
    """
    changed = any_of(np.greater(tiles, 1) for dim, tiles in grid if dim in tile)
    return np.logical_not(changed)
