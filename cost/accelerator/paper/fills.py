"""
The first reads that reuse saves.

A node that reuses a tensor's tile over several iterations leaves it in the memory
below; the node below then need not read it again. First reads take as long as the
slowest level, so a saved read counts only as far as no other level takes longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from comet.cost.accelerator.paper.nest import READ, Stream
from comet.cost.reals import Real, add_to, ascending, longest, times

Key: TypeAlias = tuple[str, str]
"""Tensor and tag."""


@dataclass(frozen=True)
class Fill:
    """The first read of one stream of a node."""

    key: Key
    level: str
    cycles: Real
    once: Real
    """1 if the tile is read once per execution of the node, else 0."""


Fills: TypeAlias = tuple[Fill, ...]
"""The first reads of one node."""


def fills_of(streams: Sequence[Stream]) -> Fills:
    """The first reads of a node's streams."""
    return tuple(
        Fill(
            s.flow.entry.key,
            s.flow.entry.source,
            s.first,
            np.equal(s.flow.moves, 1) * 1.0,
        )
        for s in streams
        if s.port == READ
    )


def nested_fills(
    streams: Sequence[Stream], below: Sequence[Fills]
) -> tuple[Fills, ...]:
    """Return the first reads below a node that reuse above the node may save, too."""
    once = {f.key: f.once for f in fills_of(streams)}
    return tuple(
        tuple(
            Fill(f.key, f.level, f.cycles, f.once * once.get(f.key, 0.0)) for f in fills
        )
        for fills in below
    )


def saved_cycles(
    streams: Sequence[Stream], below: Sequence[Fills], iterations: Real
) -> Real:
    """
    Return the cycles that reuse saves in the nodes below, over all iterations.

    Iterations belong to classes by the streams that get a new tile. The periods of
    streams divide each other, as they are products of the same innermost loops.
    """
    keys = {f.key for fills in below for f in fills}
    periods = {
        s.flow.entry.key: s.flow.iterations / s.flow.moves
        for s in streams
        if s.port == READ and s.flow.entry.key in keys
    }
    if not periods or all(np.all(np.equal(p, 1)) for p in periods.values()):
        return 0.0
    ordered = ascending((1.0, *periods.values()))
    total: Real = 0.0
    for rank, period in enumerate(ordered):
        coarser = iterations / ordered[rank + 1] if rank + 1 < len(ordered) else 0.0
        count = iterations / period - coarser
        reused = {key: np.greater(p, period) * 1.0 for key, p in periods.items()}
        total = total + count * _saved_once(below, reused)
    return total


def _saved_once(below: Sequence[Fills], reused: Mapping[Key, Real]) -> Real:
    total: Real = 0.0
    for fills in below:
        total = total + longest_fill(fills) - longest_fill(fills, reused)
    return total


def most_saved(below: Sequence[Fills]) -> Real:
    """Return the cycles of first reads that reuse above saves at most, once."""
    keys = {fill.key: 1.0 for fills in below for fill in fills}
    return _saved_once(below, keys)


def longest_fill(
    fills: Sequence[Fill], reused: Mapping[Key, Real] | None = None
) -> Real:
    """
    Return the cycles of the level whose first reads have the largest sum.

    Tiles that are read once are not read if they are `reused`: 1 if so, else 0.
    """
    sums: dict[str, Real] = {}
    for fill in fills:
        again = None if reused is None else reused.get(fill.key)
        needed = 1.0 if again is None else 1.0 - fill.once * again
        add_to(sums, fill.level, times(fill.cycles, needed))
    return longest(sums.values())


def longest_once(fills: Sequence[Fill]) -> Real:
    """Return the cycles of first reads of tiles that are read once, at most saved."""
    sums: dict[str, Real] = {}
    for fill in fills:
        add_to(sums, fill.level, times(fill.cycles, fill.once))
    return longest(sums.values())
