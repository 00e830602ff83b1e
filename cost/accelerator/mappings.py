"""Arrays of mappings of one template, which are priced at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from comet.cost.accelerator.problem import Leaf, Node, Problem, Sizes, Tile
from comet.cost.reals import Real, Truth

Extents: TypeAlias = Mapping[str, Real]
"""A size per dimension."""

FactorKey: TypeAlias = tuple[int, int, int, str]
"""Node index, entry position, row, dimension."""

StepKey: TypeAlias = tuple[int, str, str]
"""Leaf index, tensor, dimension; the tensor "" stands for the tile primitive."""


@dataclass(frozen=True)
class Mappings:
    """
    Mappings of one template: a problem, and arrays that replace some of its numbers.

    All arrays have one shape. All other numbers are those of the template.
    """

    template: Problem
    factors: Mapping[FactorKey, NDArray[np.float64]] = field(
        default_factory=dict[FactorKey, NDArray[np.float64]]
    )
    steps: Mapping[StepKey, NDArray[np.float64]] = field(
        default_factory=dict[StepKey, NDArray[np.float64]]
    )
    accumulating: Mapping[tuple[int, int], NDArray[np.bool_]] = field(
        default_factory=dict[tuple[int, int], NDArray[np.bool_]]
    )
    """Where entries read back what they write, by node index and position."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the arrays; that of a number if there are none."""
        arrays = (*self.factors.values(), *self.steps.values())
        return np.broadcast_shapes(*{array.shape for array in arrays})

    @property
    def count(self) -> int:
        """How many mappings there are."""
        arrays = (*self.factors.values(), *self.steps.values())
        return max((array.size for array in arrays), default=1)

    def chunks(self, size: int) -> Iterator[Mappings]:
        """
        The mappings in chunks of at most `size`, all of about the same length.

        An array under several keys stays one object, so that products are computed
        once. Arrays of several axes are not cut.
        """
        arrays = {id(a): a for a in (*self.factors.values(), *self.steps.values())}
        if self.count <= size or any(array.ndim != 1 for array in arrays.values()):
            yield self
            return
        length = -(-self.count // -(-self.count // size))
        for start in range(0, self.count, length):
            span = slice(start, start + length)
            cut = {key: array[span] for key, array in arrays.items()}
            yield self._chunk(cut, span)

    def _chunk(self, cut: Mapping[int, NDArray[np.float64]], span: slice) -> Mappings:
        """These mappings with other arrays, by the identity of the old ones."""
        factors = {key: cut[id(array)] for key, array in self.factors.items()}
        steps = {key: cut[id(array)] for key, array in self.steps.items()}
        back = {key: array[span] for key, array in self.accumulating.items()}
        return Mappings(self.template, factors, steps, back)

    def at(self, index: int) -> Problem:
        """Return one of the mappings as a problem."""
        root = self._tile(self.template.root, index)
        return replace(self.template, root=root)

    def _tile(self, tile: Tile, index: int) -> Tile:
        children = tuple(self._node(child, index) for child in tile.children)
        entries = tuple(
            replace(
                entry,
                factors=self._rows(tile, position, index),
                accumulates=bool(
                    np.broadcast_to(
                        self.accumulates(tile, position), self.shape
                    ).reshape(-1)[index]
                ),
            )
            for position, entry in enumerate(tile.entries)
        )
        return replace(tile, entries=entries, children=children)

    def _rows(self, tile: Tile, position: int, index: int) -> tuple[Sizes, ...]:
        rows = range(len(tile.entries[position].factors))
        return tuple(_element(self.row(tile, position, row), index) for row in rows)

    def _node(self, node: Node, index: int) -> Node:
        if isinstance(node, Tile):
            return self._tile(node, index)
        if not isinstance(node, Leaf):
            return node
        primitive = _element(self.primitive(node), index)
        steps = {t: _element(self.tile_steps(node, t), index) for t in node.steps}
        order = tuple((dim, primitive[dim]) for dim, _ in node.primitive)
        reduction = tuple((d, primitive.get(d, f)) for d, f in node.reduction)
        return replace(node, primitive=order, steps=steps, reduction=reduction)

    def accumulates(self, tile: Tile, position: int) -> Truth:
        """Whether an entry reads back what it writes."""
        default = tile.entries[position].accumulates
        return self.accumulating.get((tile.index, position), default)

    def row(self, tile: Tile, position: int, row: int) -> dict[str, Real]:
        """The factors of one row of one entry."""
        row_factors = tile.entries[position].factors[row].items()
        if not self.factors:
            return {dim: float(factor) for dim, factor in row_factors}
        return {
            dim: self.factors.get((tile.index, position, row, dim), float(factor))
            for dim, factor in row_factors
        }

    def tile_steps(self, leaf: Leaf, tensor: str) -> dict[str, Real]:
        """The extents of one tensor's tile per step of a leaf."""
        sizes = leaf.steps.get(tensor, {}).items()
        if not self.steps:
            return {dim: float(size) for dim, size in sizes}
        return {
            dim: self.steps.get((leaf.index, tensor, dim), float(size))
            for dim, size in sizes
        }

    def primitive(self, leaf: Leaf) -> dict[str, Real]:
        """The extents of a leaf's tile primitive, last dimension of the text first."""
        sizes = reversed(leaf.primitive)
        if not self.steps:
            return {dim: float(size) for dim, size in sizes}
        return {
            dim: self.steps.get((leaf.index, "", dim), float(size))
            for dim, size in sizes
        }


def _element(sizes: Extents, index: int) -> Sizes:
    return {
        dim: int(size if isinstance(size, int | float) else size.reshape(-1)[index])
        for dim, size in sizes.items()
    }
