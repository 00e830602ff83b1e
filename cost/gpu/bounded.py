"""
The iterations of a loop that a mask ends, where later rows see more positions.

In causal attention the last visible key of a query is its own position: programs with
the first rows run few iterations, those with the last rows all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from comet.cost.reals import Real


@dataclass(frozen=True)
class Bound:
    """Row r of `rows` sees the positions up to r + `offset` of a dimension."""

    rows: str
    offset: int


@dataclass(frozen=True)
class Trips:
    """The iterations that run, of one program."""

    mean: Real
    most: Real

    def served(self, turns: Real) -> Real:
        """
        Return the iterations of one of `turns` programs that one processor serves.

        Programs start in any order: the last to end is at most the longest program
        behind the mean of the others (Graham, "Bounds on multiprocessing timing
        anomalies", 1969, for list scheduling).
        """
        return self.mean + (self.most - self.mean) / np.maximum(turns, 1)


def bounded_trips(
    rows: int, extent: int, offset: int, row_block: Real, block: Real
) -> Trips:
    """
    Return the iterations of a loop over `extent` positions in blocks of `block`.

    Each program has `row_block` of `rows` rows, the last one what is left. Of its rows
    the last sees most: row r sees the first r + `offset` + 1 positions, and the blocks
    that hold these run.
    """

    def counted(row_block: float, block: float) -> tuple[float, float]:
        return _trips(rows, extent, offset, int(row_block), int(block))

    mean, most = np.vectorize(counted, otypes=[float, float])(row_block, block)
    return Trips(mean, most)


@lru_cache(maxsize=4096)
def _trips(
    rows: int, extent: int, offset: int, row_block: int, block: int
) -> tuple[float, float]:
    """Return the mean over programs and the most iterations of one."""
    ends = np.minimum(np.arange(row_block, rows + row_block, row_block), rows)
    visible = np.clip(ends + offset, 0, extent)
    trips = -(-visible // block)
    return float(trips.mean()), float(trips.max())
