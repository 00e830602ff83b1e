"""
The order in which the programs of a launch grid start, and the L2 swizzle.

Programs start in the order of their ids. `trips` are the numbers of tiles along the
loops of a grid, outermost first; they may be arrays, one element per choice of block
sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from comet.cost.reals import Real, product, total

GROUP = 8
"""The L2 swizzle, as in Triton's tutorial "Matrix Multiplication"."""


def l2_swizzle(trips: Sequence[Real], processors: int) -> Real:
    """
    Return the L2 swizzle, 1 for none.

    It is the number of programs along the first of two loops that start before the
    second loop advances. If a grid takes several waves, the programs of a wave then
    share more of their operands in L2.
    """
    two = np.equal(total(np.greater(count, 1) * 1.0 for count in trips), 2)
    several_waves = np.greater(product(trips), processors)
    first: Real = 1.0
    for count in reversed(trips):
        first = np.where(np.greater(count, 1), count, first)
    return np.where(two & several_waves, np.minimum(GROUP, first), 1.0)


def successive_programs(trips: Sequence[Real], index: int, swizzle: Real) -> Real:
    """
    Return the least number of successive programs with the same tile of loop `index`.

    The last loop advances fastest; with a swizzle the first of two does.
    """
    grouped = np.minimum(product(trips[:index]), swizzle)
    return np.where(np.greater(swizzle, 1), grouped, product(trips[index + 1 :]))
