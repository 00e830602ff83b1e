"""
The iterations of a loop that a mask bounds, by the rows of a program.

In causal attention, query m sees the keys up to m: in a loop over keys, programs with
the first queries run few iterations, those with the last ones run all. Key n is seen by
the queries from n on: in a loop over queries, programs with the last keys run few
iterations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from comet.cost.reals import Real

Counts: TypeAlias = "NDArray[np.int_]"
"""Iterations of each tile of rows."""


@dataclass(frozen=True)
class Bound:
    """The visible positions of a loop for row r of `rows`: those up to r + `offset`."""

    rows: str
    offset: int
    since: bool = False
    """If true, the visible positions are those from r + `offset` on instead."""
    first: int | None = None
    """If given, no position before r + `first` is visible, either: a window."""


@dataclass(frozen=True)
class Trips:
    """The iterations that the programs of a kernel run."""

    mean: Real
    """The mean over all programs."""
    longest: Real
    """The iterations of the longest program."""
    tail: Real
    """
    If the longest programs start first, an upper bound of the iterations by which the
    busiest processor exceeds an equal share.
    """
    masked: Real
    """The mean of the iterations with positions that only some of the rows see."""

    def served(self, turns: Real) -> Real:
        """
        Return the iterations per turn if a processor runs `turns` programs in turn.

        Programs start in any order: at worst, the longest program comes last, after an
        equal share of the others (Graham, "Bounds on multiprocessing timing anomalies",
        1969, for list scheduling).
        """
        return self.mean + (self.longest - self.mean) / np.maximum(turns, 1)

    def served_longest_first(self, turns: Real, share: Real) -> Real:
        """
        Return the iterations per turn if the longest programs start first.

        `share` is the number of programs over that of processors, `turns` the same
        rounded up: short programs fill the last turn.
        """
        seconds = np.maximum(self.longest, share * self.mean + self.tail)
        return np.minimum(self.served(turns), seconds / np.maximum(turns, 1))


@dataclass(frozen=True)
class BoundedLoop:
    """
    A loop over `extent` positions, bounded for `rows` rows as in `Bound`.
    """

    rows: int
    extent: int
    offset: int
    since: bool = False
    first: int | None = None

    def trips(
        self,
        row_block: Real,
        block: Real,
        successive: Real = 1,
        processors: int = 1,
    ) -> Trips:
        """
        Return the iterations of programs with `row_block` rows, in blocks of `block`.

        A program runs the blocks with a position that one of its rows sees.
        `successive` programs with the same rows start one after another.
        """

        arrays = np.broadcast_arrays(row_block, block, successive)
        choices = list(zip(*(array.ravel().tolist() for array in arrays), strict=True))
        found = {
            sizes: _trips(self, *map(int, sizes), processors)
            for sizes in dict.fromkeys(choices)
        }
        columns = np.array([found[sizes] for sizes in choices]).T
        return Trips(*(column.reshape(arrays[0].shape) for column in columns))

    def by_tile(self, row_block: int, block: int) -> Counts:
        """Return the iterations of each tile of rows, from the first rows on."""
        return _by_tile(self, row_block, block)[0]


@lru_cache(maxsize=4096)
def _trips(
    loop: BoundedLoop, row_block: int, block: int, successive: int, processors: int
) -> tuple[float, float, float, float]:
    """
    Return the fields of `Trips`.

    A program starts when a processor is free, at the latest after an equal share of the
    iterations that started before (list scheduling). With S iterations in total, of
    which A start after it, a program of p iterations ends at the latest at
    (S - p - A) / processors + p.
    """
    trips, unmasked = _by_tile(loop, row_block, block)
    if loop.since:
        # The first rows see most: in the order of length, from the last rows on.
        trips, unmasked = trips[::-1], unmasked[::-1]
    masked = np.maximum(trips - unmasked, 0)
    after = successive * (np.cumsum(trips) - trips)
    tail = trips - (trips + after) / processors
    mean, longest = float(trips.mean()), float(trips.max())
    return mean, longest, float(tail.max()), float(masked.mean())


def busiest(lengths: Counts, processors: int) -> float:
    """
    Return the mean iterations of a tile on the busiest processor.

    Processors take the tiles in turn.
    """
    turns = np.pad(lengths, (0, -len(lengths) % processors)).reshape(-1, processors)
    return float(turns.sum(0).max()) / len(turns)


def _by_tile(loop: BoundedLoop, row_block: int, block: int) -> tuple[Counts, Counts]:
    """Return the iterations of each tile of rows, and those without a mask."""
    starts = np.arange(0, loop.rows, row_block)
    ends = np.minimum(starts + row_block, loop.rows)
    blocks = -(-loop.extent // block)
    if loop.since:
        hidden = np.maximum(starts + loop.offset, 0)
        trips = np.where(hidden < loop.extent, blocks - hidden // block, 0)
        some_hidden = np.clip(ends - 1 + loop.offset, 0, loop.extent)
        unmasked = np.maximum(blocks + -some_hidden // block, 0)
    else:
        trips = -(-np.clip(ends + loop.offset, 0, loop.extent) // block)
        unmasked = np.clip(starts + loop.offset + 1, 0, loop.extent) // block
        if loop.first is not None:
            # What is before the first visible position, and what some rows see of it.
            trips = trips - np.clip(starts + loop.first, 0, loop.extent) // block
            seen = np.clip(ends - 1 + loop.first, 0, loop.extent)
            trips, unmasked = np.maximum(trips, 0), unmasked - -(-seen // block)
            unmasked = np.maximum(unmasked, 0)
    return trips, unmasked
