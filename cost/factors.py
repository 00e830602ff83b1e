"""Other factors and loop orders for the temporal nodes of a `Problem`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from comet.cost.problem import Entry, Leaf, Node, Problem, Sizes, Tile

Rows: TypeAlias = tuple[tuple[str, int], ...]
"""Dimension and factor of each loop of a temporal node, outermost first."""


def with_factors(problem: Problem, rows: Sequence[Rows]) -> Problem:
    """
    Return `problem` with `rows` for its temporal nodes, in document order.

    The temporal nodes of `problem` have factor 1 everywhere. Leaves take what is left
    of their sizes; a factor that does not divide them leaves the rounded-down share.
    Loops count for the operations that have their dimension.
    """
    return replace(problem, root=_Rewrite(problem, iter(rows)).tile(problem.root, ()))


@dataclass
class _Rewrite:
    problem: Problem
    rows: Iterator[Rows]

    def tile(self, tile: Tile, path: tuple[Rows, ...]) -> Tile:
        """Return `tile`, and all below it, with its rows; `path` holds those above."""
        if tile.spatial:
            children = tuple(self.node(child, path) for child in tile.children)
            return replace(tile, children=children)
        rows = next(self.rows)
        inner = (*path, rows)
        named = tuple(dim for dim, _ in reversed(rows))
        rest = tuple(dim for dim in tile.order if dim not in named)
        return replace(
            tile,
            order=(*named, *rest),
            entries=tuple(self.entry(entry, rows) for entry in tile.entries),
            children=tuple(self.node(child, inner) for child in tile.children),
        )

    def node(self, node: Node, path: tuple[Rows, ...]) -> Node:
        """Return a child of a tile below the rows of `path`."""
        if isinstance(node, Tile):
            return self.tile(node, path)
        return self.leaf(node, path) if isinstance(node, Leaf) else node

    def entry(self, entry: Entry, rows: Rows) -> Entry:
        """Return `entry` with the factors of the dimensions that its operation has."""
        op = self.problem.operation.get(entry.tag)
        relevant = set(self.problem.dims if op is None else op.dims)
        factors = {dim: factor for dim, factor in rows if dim in relevant}
        return replace(entry, factors=({**entry.factors[0], **factors},))

    def leaf(self, leaf: Leaf, path: tuple[Rows, ...]) -> Leaf:
        """Return `leaf` with its share of the sizes."""
        relevant = set(self.problem.operation[leaf.operation].dims)
        shares = {
            dim: prod(f for rows in path for d, f in rows if d == dim)
            for dim in relevant
        }
        primitive = dict(_shared(dict(leaf.primitive), shares))
        reduction = (
            (dim, factor // shares.get(dim, 1)) for dim, factor in leaf.reduction
        )
        return replace(
            leaf,
            primitive=tuple(primitive.items()),
            steps={t: dict(_shared(sizes, shares)) for t, sizes in leaf.steps.items()},
            reduction=tuple(reduction),
        )


def _shared(sizes: Sizes, shares: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    for dim, size in sizes.items():
        yield dim, max(1, size // shares.get(dim, 1))
