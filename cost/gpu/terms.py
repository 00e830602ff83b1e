"""
The terms of the summary of a GPU kernel: costs and tiles by their dimensions.

Block sizes are numbers, or arrays with one element per choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from comet.cost.reals import Real, product

Blocks: TypeAlias = "Mapping[str, Real]"
"""The block size (elements) of each dimension of a kernel; arrays for many choices."""


class Tiles(dict[str, "Real"]):
    """Blocks with the elements of tiles, which are computed once."""

    def __init__(self, blocks: Blocks):
        super().__init__(blocks)
        self._elements: dict[tuple[str, ...], Real] = {}

    def elements(self, dims: tuple[str, ...]) -> Real:
        """Return the elements of a tile."""
        if dims not in self._elements:
            self._elements[dims] = product(self[dim] for dim in dims)
        return self._elements[dims]


def elements(dims: tuple[str, ...], blocks: Blocks) -> Real:
    """Return the elements of a tile with some dimensions."""
    if isinstance(blocks, Tiles):
        return blocks.elements(dims)
    return product(blocks[dim] for dim in dims)


class LoopCost(NamedTuple):
    """The cost of an op per element in a loop of contractions, in additions."""

    lanes: float
    """Of vector lanes."""
    special: float = 0.0
    """Of special function units, which run beside them."""


class Term(NamedTuple):
    """A cost per element of a tile: operations, or bytes that are moved or held."""

    dims: tuple[str, ...]
    weight: float
    """Bytes or operations per element."""
    loops: tuple[str, ...] = ()
    """The loops of the program around it, the innermost last."""
    single: tuple[str, ...] = ()
    """If not empty, it counts only where the blocks of all these dimensions are 1."""
    several: tuple[str, ...] = ()
    """If not empty, it counts only where one of these blocks is larger than 1."""
    inner: tuple[str, ...] = ()
    """Loops inside of `loops`: it counts only where each of them has one trip."""
    mask: str = ""
    """The loop whose mask it computes; see `Nest.unmasked`."""
    in_loop: LoopCost | None = None
    """Its cost in a loop of contractions, if that is not `weight`."""
    late: bool = False
    """Whether it is loaded after an inner loop, and so not hoisted; see `hoisting`."""
    tensor: int | None = None
    """The position of the tensor that it is loaded from in `Moves.tensors`."""
    repeated: tuple[str, ...] = ()
    """If not empty, it is loaded already where these loops have one iteration."""

    def per_tile(self, blocks: Blocks) -> Real:
        """Return the cost of one tile."""
        cost = self.weight * elements(self.dims, blocks)
        if self.single:
            cost = cost * _all_single(self.single, blocks)
        if self.several:
            cost = cost * (1 - _all_single(self.several, blocks))
        return cost


def _all_single(dims: Sequence[str], blocks: Blocks) -> Real:
    """Return 1 if the blocks of all dimensions are 1, else 0."""
    return product(np.less_equal(blocks[dim], 1) * 1.0 for dim in dims)


class Wait(NamedTuple):
    """A point where a program waits for loads."""

    loops: tuple[str, ...]
    """The loops of the program around it, the innermost last."""
    joined: tuple[str, ...] | None = None
    """
    If these loops have one iteration, a software pipeline waits here and at another
    point together; None for never.
    """
    repeated: tuple[str, ...] = ()
    """If not empty, there is none where these loops have one iteration."""
    coalesced: int = 0
    """How many of the innermost loops are one loop, if that is several."""


@dataclass(frozen=True)
class Product:
    """A contraction, which is a dot if all dimensions of `batch` have blocks of 1."""

    rows: frozenset[str]
    columns: frozenset[str]
    summed: frozenset[str]
    batch: frozenset[str]
    loops: tuple[str, ...] = ()
    """The loops of the program around it, the innermost last."""
    coalesced: int = 0
    """How many of the innermost loops are one loop, if that is several."""

    def inside(self, loops: tuple[str, ...], coalesced: int = 0) -> Product:
        """Return the same contraction inside `loops`, some of them `coalesced`."""
        return replace(self, loops=loops, coalesced=coalesced)

    def wastes_dot(self, blocks: Blocks, minimum: int) -> Real:
        """
        Return 1 if it is no dot although it is large enough for one, else 0.

        A dot needs at least `minimum` rows, columns and terms.
        """
        sides = (self.rows, self.columns, self.summed)
        large = (
            np.greater_equal(product(blocks[dim] for dim in dims), minimum) * 1.0
            for dims in sides
        )
        return product(large) * (1 - _all_single(tuple(self.batch), blocks))


@dataclass(frozen=True)
class Operands:
    """The operands of a contraction, bytes."""

    left: Term
    right: Term
    product: Product

    def inside(self, loops: tuple[str, ...], coalesced: int = 0) -> Operands:
        """Return the same operands, of the contraction inside `loops`."""
        product = self.product.inside(loops, coalesced)
        return Operands(self.left, self.right, product)

    @property
    def transposed(self) -> tuple[Term, ...]:
        """The operands whose summed elements are not contiguous in memory."""
        summed = self.product.summed
        sides = ((self.left, True), (self.right, False))
        return tuple(
            tile
            for tile, last in sides
            if tile.dims and (tile.dims[-1] in summed) is not last
        )


@dataclass(frozen=True)
class RowSplit:
    """How the thread blocks of a cluster divide the tile of a program."""

    row: str
    """The rows of the product, all of which each block has."""
    column: str
    """The columns, whose parts the blocks have."""
    reductions: int
    """The reductions of rows."""


@dataclass(frozen=True)
class DividedEpilogue:
    """The epilogue of a program, if subtiles can divide it."""

    accumulators: tuple[Term, ...]
    """The sums of products that it reads, bytes."""
    loads: bool
    """Whether it loads tiles, for which each subtile waits."""

    @property
    def dim(self) -> str:
        """The dimension along which subtiles divide it: the last of accumulators."""
        return self.accumulators[0].dims[-1]


@dataclass(frozen=True)
class Point:
    """The values in registers at one op of a program, bytes."""

    tiles: tuple[Term, ...]
    """Without the results of elementwise ops that are no whole tile at any time."""
    broadcast: tuple[Term, ...] = ()
    """
    Vectors that an elementwise op combines with each row or column, and loop-invariant
    ones that loops of several iterations keep in that layout.
    """
    operands: Operands | None = None
    """The operands of the op if it is a contraction."""
    before: bool = False
    """Whether this is the point just before the contraction."""
    accumulator: tuple[Term, ...] = ()
    """At such a point, the accumulator: alive if a loop has begun to sum into it."""
    epilogue: DividedEpilogue | None = None
    """The epilogue that the op is in, if subtiles can divide it."""

    def fraction(self, tile: Term, subtiles: Real) -> Real:
        """Return the fraction of a tile in registers, by the number of subtiles."""
        divided = self.epilogue is not None and self.epilogue.dim in tile.dims
        return 1 / subtiles if divided else 1.0
