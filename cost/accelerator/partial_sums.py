"""The nodes at which operations read back partial results, to add to them."""

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
    """Whether an operation reads back its result, at a node and below it."""

    here: Truth
    below: Truth


def accumulation(
    loops: Sequence[tuple[str, Real]],
    result: AbstractSet[str],
    above: Truth,
    *,
    moves: bool,
) -> Accumulation:
    """
    Return where partial results are read back, given the loops of one node.

    `loops` are dimensions and factors, outermost first; those that are not in `result`
    are reduction loops. `above`: an outer loop accumulates in place at this level. A
    reduction loop outside one that changes the tile revisits each tile. Inside all of
    these it stays on one tile, so the level below accumulates; and also if no tile
    `moves` at the node, as all tiles stay below. Factors may be arrays.
    """
    reduces: Truth = False
    revisits: Truth = False
    for dim, factor in loops:
        repeats: Truth = factor > 1
        if dim in result:
            revisits = revisits | (reduces & repeats)
        else:
            reduces = reduces | repeats
    if not moves:
        return Accumulation(above, above | reduces)
    return Accumulation(above | revisits, reduces & np.logical_not(revisits))


SummedLoops: TypeAlias = Callable[[int, str], Sequence[tuple[str, Real]] | None]
"""
The loops of a node by its index and an operation below it, outermost first; None if
they are not known yet.
"""


@dataclass(frozen=True)
class SumChain:
    """An operation, and the nodes around it that may add up its result."""

    operation: str
    dims: frozenset[str]
    result: frozenset[str]
    """The dimensions of its result."""
    nodes: tuple[tuple[Tile, tuple[int, ...]], ...]
    """Outermost first, each with the positions of the entries that write the result."""


def sum_chains(problem: Problem) -> tuple[SumChain, ...]:
    """Return the chain of each operation."""
    return tuple(_sum_chain(problem, chain) for chain in _chains(problem.root, ()))


def partial_sums(
    chains: Sequence[SumChain], loops: SummedLoops
) -> dict[tuple[int, int], Truth]:
    """
    Return the entries that read back their results, by node index and position.

    Nodes below one without known loops are left out, as its loops may move the sum to
    another level.
    """
    found = {key: truth for chain in chains for key, truth in _in_chain(chain, loops)}
    return {key: truth for key, truth in found.items() if np.any(truth)}


def _chains(tile: Tile, above: tuple[Tile, ...]) -> Iterator[tuple[Tile, ...]]:
    """Yield each leaf with the nodes around it, outermost first."""
    chain = (*above, tile)
    if tile.is_leaf:
        yield chain
    for child in tile.children:
        if isinstance(child, Tile):
            yield from _chains(child, chain)


def _sum_chain(problem: Problem, chain: Sequence[Tile]) -> SumChain:
    op = chain[-1].leaf.operation
    accesses = problem.operation[op].access.values()
    written = [relevant(access.projection) for access in accesses if access.read_write]

    def positions(tile: Tile) -> Iterator[int]:
        for position, entry in enumerate(tile.entries):
            if entry.tag == op and problem.writes(entry.tensor, op):
                yield position

    return SumChain(
        op,
        frozenset(problem.operation[op].dims),
        frozenset[str]().union(*written),
        tuple((tile, tuple(positions(tile))) for tile in chain),
    )


def _in_chain(
    chain: SumChain, loops: SummedLoops
) -> Iterator[tuple[tuple[int, int], Truth]]:
    found = Accumulation(here=False, below=False)
    for tile, written in chain.nodes:
        if not tile.spatial:
            if (rows := loops(tile.index, chain.operation)) is None:
                return
            chain_rows = [(dim, factor) for dim, factor in rows if dim in chain.dims]
            found = accumulation(
                chain_rows, chain.result, found.below, moves=bool(written)
            )
        for position in written:
            yield (tile.index, position), found.here
