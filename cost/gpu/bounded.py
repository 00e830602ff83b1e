"""
The iterations of a loop that a mask bounds, where later rows see more positions.

In causal attention the last visible key of a query is its own position: programs with
the first rows run few iterations, those with the last rows all of them. The first query
that sees a key is its own position: programs with the last keys run few iterations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from comet.cost.reals import Real


@dataclass(frozen=True)
class Bound:
    """Row r of `rows` sees a dimension up to position r + `offset`, or since then."""

    rows: str
    offset: int
    since: bool = False


@dataclass(frozen=True)
class Trips:
    """The iterations that run, of one program."""

    mean: Real
    most: Real
    tail: Real
    """
    How much longer than its share of all iterations a processor is busy at most, if the
    longest programs start first.
    """
    masked: Real
    """Those of the iterations whose positions some rows see and others do not, mean."""

    def served(self, turns: Real) -> Real:
        """
        Return the iterations of one of `turns` programs that one processor serves.

        Programs start in any order: the last to end is at most the longest program
        after the mean of the others (Graham, "Bounds on multiprocessing timing
        anomalies", 1969, for list scheduling).
        """
        return self.mean + (self.most - self.mean) / np.maximum(turns, 1)

    def served_longest_first(self, turns: Real, share: Real) -> Real:
        """
        Return the same where the longest programs start first.

        A processor's `share` of the programs may be less than `turns`: short programs
        fill the last turn.
        """
        whole = np.maximum(self.most, share * self.mean + self.tail)
        return np.minimum(self.served(turns), whole / np.maximum(turns, 1))


@dataclass(frozen=True)
class BoundedLoop:
    """
    A loop over `extent` positions: row r of `rows` sees those up to r + `offset`, or
    those since.
    """

    rows: int
    extent: int
    offset: int
    since: bool = False

    def trips(
        self,
        row_block: Real,
        block: Real,
        together: Real = 1,
        processors: int = 1,
    ) -> Trips:
        """
        Return the iterations in blocks of `block`.

        Each program has `row_block` of the rows, the last one what is left; `together`
        programs with the same rows start one after another. Of its rows the last sees
        most, or of positions since then the first, and the blocks that hold what it
        sees run.
        """

        def counted(row: float, block: float, near: float) -> tuple[float, ...]:
            return _trips(self, int(row), int(block), int(near), processors)

        found = np.vectorize(counted, otypes=[float] * 4)(row_block, block, together)
        return Trips(*found)


@lru_cache(maxsize=4096)
def _trips(
    loop: BoundedLoop, row_block: int, block: int, together: int, processors: int
) -> tuple[float, float, float, float]:
    """
    Return the mean over programs, the most iterations of one, the tail, and those with
    a mask.

    A program starts when a processor is free, at the latest after an equal share of all
    that started before (list scheduling). So of S iterations in all, A of which start
    after it, a program of p ends at most at (S - p - A) / processors + p.
    """
    starts = np.arange(0, loop.rows, row_block)
    ends = np.minimum(starts + row_block, loop.rows)
    blocks = -(-loop.extent // block)
    if loop.since:
        # The first rows see most: in the order of length, from the last rows on.
        starts, ends = starts[::-1], ends[::-1]
        hidden = np.maximum(starts + loop.offset, 0)
        trips = np.where(hidden < loop.extent, blocks - hidden // block, 0)
        some_hidden = np.clip(ends - 1 + loop.offset, 0, loop.extent)
        whole = np.maximum(blocks + -some_hidden // block, 0)
    else:
        trips = -(-np.clip(ends + loop.offset, 0, loop.extent) // block)
        whole = np.clip(starts + loop.offset + 1, 0, loop.extent) // block
    masked = np.maximum(trips - whole, 0)
    after = together * (np.cumsum(trips) - trips)
    tail = trips - (trips + after) / processors
    mean, most = float(trips.mean()), float(trips.max())
    return mean, most, float(tail.max()), float(masked.mean())
