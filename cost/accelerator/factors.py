"""Other factors and loop orders for the temporal nodes of a `Problem`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from graphlib import CycleError
from typing import TypeAlias

from comet.cost.accelerator.problem import Entry, Leaf, Node, Problem, Sizes, Tile
from comet.cost.estimate import CostError
from comet.digraph import topological_order

Loops: TypeAlias = tuple[tuple[str, int], ...]
"""Dimension and factor of each loop of a temporal node, outermost first."""

Nests: TypeAlias = Mapping[tuple[int, str], Loops]
"""The loops of a temporal node, by its index, for each operation below it."""


def with_factors(
    problem: Problem,
    loops: Nests,
    accumulating: AbstractSet[tuple[int, int]] = frozenset(),
) -> Problem:
    """
    Return `problem` with `loops` in its temporal nodes.

    The temporal nodes of `problem` have factor 1 everywhere. Leaves take the remaining
    extents, rounded down if a factor does not divide. A loop repeats operations that
    lack its dimension. `accumulating` has the entries that read back their results, by
    node index and position. Raises CostError if operations below one node have
    different loop orders, as a node has one order.
    """
    rewrite = _Rewrite(problem, loops, accumulating)
    return replace(problem, root=rewrite.tile(problem.root, ()))


def agree(problem: Problem, loops: Nests) -> bool:
    """Return whether operations below one node loop in one order, for any factors."""
    for tile, below in problem.operations_below.items():
        nests = (loops.get((tile, op), ()) for op in below)
        orders = [[dim for dim, _ in nest] for nest in nests]
        if merged_order(orders, problem.dims)[1]:
            return False
    return True


@dataclass
class _Rewrite:
    problem: Problem
    loops: Nests
    accumulating: AbstractSet[tuple[int, int]]

    def tile(self, tile: Tile, path: tuple[int, ...]) -> Tile:
        """Return `tile` and its descendants with loops; `path` has the nodes above."""
        if tile.spatial:
            children = tuple(self.node(child, path) for child in tile.children)
            entries = tuple(
                _marked(entry, (tile.index, position) in self.accumulating)
                for position, entry in enumerate(tile.entries)
            )
            return replace(tile, entries=entries, children=children)
        inner = (*path, tile.index)
        below = self.problem.operations_below[tile.index]
        return replace(
            tile,
            order=_order(tile, [self.loops.get((tile.index, op), ()) for op in below]),
            entries=tuple(
                self.entry(tile.index, position, entry)
                for position, entry in enumerate(tile.entries)
            ),
            children=tuple(self.node(child, inner) for child in tile.children),
        )

    def node(self, node: Node, path: tuple[int, ...]) -> Node:
        """Return a child of a tile below the loops of `path`."""
        if isinstance(node, Tile):
            return self.tile(node, path)
        return self.leaf(node, path) if isinstance(node, Leaf) else node

    def entry(self, index: int, position: int, entry: Entry) -> Entry:
        """Return an entry of a temporal node with the loops of its operation."""
        accumulates = (index, position) in self.accumulating
        factors = dict(self.loops.get((index, entry.tag), ()))
        if not factors:
            return _marked(entry, accumulates)
        row = {**entry.factors[0], **factors}
        return replace(entry, factors=(row,), accumulates=accumulates)

    def leaf(self, leaf: Leaf, path: tuple[int, ...]) -> Leaf:
        """Return `leaf` with the sizes that the loops above leave."""
        factors = dict.fromkeys(self.problem.dims, 1)
        for tile in path:
            for dim, factor in self.loops.get((tile, leaf.operation), ()):
                factors[dim] *= factor
        primitive = dict(_left(dict(leaf.primitive), factors))
        reduction = (
            (dim, factor // factors.get(dim, 1)) for dim, factor in leaf.reduction
        )
        return replace(
            leaf,
            primitive=tuple(primitive.items()),
            steps={t: dict(_left(sizes, factors)) for t, sizes in leaf.steps.items()},
            reduction=tuple(reduction),
        )


def _marked(entry: Entry, accumulates: bool) -> Entry:
    """Return an entry that reads back its results, or does not."""
    if entry.accumulates is accumulates:
        return entry
    return replace(entry, accumulates=accumulates)


def _order(tile: Tile, nests: Sequence[Loops]) -> tuple[str, ...]:
    """
    Return one loop order, innermost first, that agrees with all nests of a node.

    Raises CostError if there is none. Loops of one iteration are ordered too, if that
    is possible.
    """
    every = [[dim for dim, _ in loops] for loops in nests]
    repeating = [[dim for dim, factor in loops if factor > 1] for loops in nests]
    for orders in (every, repeating):
        dims = dict.fromkeys(dim for order in orders for dim in order)
        outermost, disputed = merged_order(orders, dims)
        if not disputed:
            break
    else:
        raise CostError(
            f"the operations of {tile.name} loop over {' and '.join(disputed)} in "
            "different orders, and a node has one; order their loops alike"
        )
    rest = (dim for dim in tile.order if dim not in outermost)
    return (*reversed(outermost), *rest)


def merged_order(
    orders: Sequence[Sequence[str]], dims: Iterable[str]
) -> tuple[list[str], list[str]]:
    """
    Return an order that agrees with all `orders`, and dimensions on which they differ.

    One of both is empty. Of dimensions that could be next, the first one in `dims` is.
    """

    def before(dim: str) -> Iterator[str]:
        for order in orders:
            if dim in order:
                yield from order[: order.index(dim)]

    known = [dim for dim in dims if any(dim in order for order in orders)]
    try:
        return list(topological_order(known, before)), []
    except CycleError as error:
        cycle: Sequence[str] = error.args[1]
        return [], [dim for dim in known if dim in cycle]


def _left(sizes: Sizes, factors: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    for dim, size in sizes.items():
        yield dim, max(1, size // factors.get(dim, 1))
