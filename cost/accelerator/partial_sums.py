"""Where partial results are read back from memory, to be added to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from comet.cost.accelerator.problem import Problem, Tile
from comet.cost.accelerator.volume import relevant
from comet.cost.reals import Real, Truth


@dataclass(frozen=True)
class Accumulation:
    """Whether an operation adds to its result in memory, at a node and below it."""

    here: Truth
    below: Truth


def accumulation(
    loops: Sequence[tuple[str, Real]],
    result: AbstractSet[str],
    above: Truth,
    *,
    moves: bool = True,
) -> Accumulation:
    """
    Say where partial results are read back, given the loops of one node.

    `loops` are dimensions and factors, outermost first; those that are not in `result`
    are summed over. `above`: an outer loop accumulates in place at this level. A
    reduction loop outside one that changes the tile revisits each tile; inside all of
    these it leaves the tile, so the level below accumulates. So it does if nothing
    `moves` at the node, as all tiles stay below. Factors may be arrays.
    """
    summed: Truth = False
    again: Truth = False
    for dim, factor in loops:
        turns = np.greater(factor, 1)
        if dim in result:
            again = again | (summed & turns)
        else:
            summed = summed | turns
    if not moves:
        return Accumulation(above, above | summed)
    return Accumulation(above | again, summed & np.logical_not(again))


SummedLoops: TypeAlias = Callable[[int, str], Sequence[tuple[str, Real]] | None]
"""
The loops of a node that operations below it sum over, or change their results with, by
the node's index and the operation; None where they are not known yet.
"""


def partial_sums(problem: Problem, loops: SummedLoops) -> dict[tuple[int, int], Truth]:
    """
    Return where entries read back what they write: by node index and position.

    Nodes below one without known loops are left out: these may move sums to another
    level.
    """
    found: dict[tuple[int, int], Truth] = {}
    for chain in _chains(problem.root, ()):
        found.update(_in_chain(problem, chain, loops))
    return {key: truth for key, truth in found.items() if np.any(truth)}


def _chains(tile: Tile, above: tuple[Tile, ...]) -> Iterator[tuple[Tile, ...]]:
    """Yield each leaf with the nodes around it, outermost first."""
    chain = (*above, tile)
    if tile.is_leaf:
        yield chain
    for child in tile.children:
        if isinstance(child, Tile):
            yield from _chains(child, chain)


def _in_chain(
    problem: Problem, chain: Sequence[Tile], loops: SummedLoops
) -> Iterator[tuple[tuple[int, int], Truth]]:
    op = chain[-1].leaf.operation
    dims, result = problem.operation[op].dims, _result_dims(problem, op)
    found = Accumulation(here=False, below=False)
    for tile in chain:
        written = [
            position
            for position, entry in enumerate(tile.entries)
            if entry.tag == op and problem.writes(entry.tensor, op)
        ]
        if not tile.spatial:
            if (rows := loops(tile.index, op)) is None:
                return
            own = [(dim, factor) for dim, factor in rows if dim in dims]
            found = accumulation(own, result, found.below, moves=bool(written))
        for position in written:
            yield (tile.index, position), found.here


def _result_dims(problem: Problem, op: str) -> frozenset[str]:
    """Return the dimensions of what an operation writes."""
    accesses = problem.operation[op].access.values()
    written = [relevant(each.projection) for each in accesses if each.read_write]
    return frozenset[str]().union(*written)
