"""
In which order the programs of a launch grid start: its axes, and the L2 swizzle.

Programs start in the order of their numbers. `trips` are the tiles along the loops of a
grid, outermost first; they may be arrays, one element for each choice of block sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from comet.cost.reals import Real, product, total

GROUP = 8
"""L2 swizzle: programs along the first loop of a grid that run together."""


def l2_swizzle(trips: Sequence[Real], processors: int) -> Real:
    """
    Return the L2 swizzle: how many programs along the first of two loops run together.

    If a product takes several waves, programs that are near each other along both loops
    share more of their operands in L2.
    """
    two = np.equal(total(np.greater(each, 1) * 1.0 for each in trips), 2)
    several_waves = np.greater(product(trips), processors)
    first: Real = 1.0
    for each in reversed(trips):
        first = np.where(np.greater(each, 1), each, first)
    return np.where(two & several_waves, np.minimum(GROUP, first), 1.0)


def neighbours(trips: Sequence[Real], index: int, axes: int, swizzle: Real) -> Real:
    """
    Return how many programs with one tile of a loop start one after another, at least.

    With `axes` axes of the launch grid the loops of several tiles have one each, of
    which that of the last loop advances slowest; further loops are on the axis of the
    first, where the last of them advances fastest. With a swizzle the first of two
    loops does.
    """
    split = [np.greater(each, 1) * 1.0 for each in trips]

    def shares(loop: int) -> Real:
        """Return 1 if a loop is on the first axis, else 0."""
        return np.greater_equal(total(split[loop + 1 :]), axes - 1) * 1.0

    later = product(
        np.where(np.greater(shares(loop), 0), trips[loop], 1.0)
        for loop in range(index + 1, len(trips))
    )
    earlier = product(trips[:index])
    alone = np.where(np.greater(shares(index), 0), later, earlier)
    return np.where(np.greater(swizzle, 1), np.minimum(earlier, swizzle), alone)
