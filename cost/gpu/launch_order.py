"""
The order in which the programs of a launch grid start, and the L2 swizzle.

Programs start in the order of their ids. `trips` are the numbers of tiles along the
loops of a grid, outermost first; they may be arrays, one element per choice of block
sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from comet.cost.reals import Real, product, total

Tiles: TypeAlias = "NDArray[np.int_]"
"""The number of a tile of each program."""

GROUP = 8
"""The L2 swizzle, as in Triton's tutorial "Matrix Multiplication"."""


@dataclass(frozen=True)
class LaunchOrder:
    """The choices of the order in which the programs of a grid start."""

    reversed: frozenset[str] = frozenset()
    """The dimensions whose last tiles are launched first."""
    swizzle: int = 0
    """The L2 swizzle; 0 before it is chosen, then that of `l2_swizzle`."""
    persistent: int = 0
    """The number of persistent programs; 0 for a program for each tile."""


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

    The last loop advances fastest. With a swizzle, groups of `swizzle` tiles of the
    loops before it advance through it together; the last group may have fewer, which
    does not count here.
    """
    inside = product(trips[index + 1 :])
    between = np.maximum(inside / last_of_several(trips), 1).astype(int)
    run = np.gcd(between, np.asarray(swizzle, int))
    outer = np.where(np.equal(run, swizzle), inside, run)
    own = np.minimum(product(trips[:index]), swizzle)
    grouped = np.where(np.greater(inside, 1), outer, own)
    return np.where(np.greater(swizzle, 1), grouped, inside)


def last_of_several(trips: Sequence[Real]) -> Real:
    """Return the tiles of the last loop of several, 1 if there is none."""
    last: Real = 1.0
    for count in trips:
        last = np.where(np.greater(count, 1), count, last)
    return last


def tiles_in_order(trips: Sequence[int], index: int, swizzle: int) -> Tiles:
    """
    Return the tile of loop `index` that each program has, in the order of their start.

    The order is that of `tl.swizzle2d`, whose rows are the loops before the last one.
    """
    split = [loop for loop, count in enumerate(trips) if count > 1]
    program = np.arange(prod(trips))
    if swizzle == 1 or len(split) < 2:
        return np.unravel_index(program, trips)[index]
    *others, last = split
    rows = [trips[loop] for loop in others]
    group, place = np.divmod(program, swizzle * trips[last])
    size = np.minimum(prod(rows) - group * swizzle, swizzle)
    found = np.unravel_index(group * swizzle + place % size, rows)
    tiles = dict(zip(others, found, strict=True)) | {last: place // size}
    return tiles.get(index, np.zeros_like(program))
