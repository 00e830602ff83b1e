"""
How Triton lays out the tiles of products over the warps of a program.

With one matrix instruction a warp makes 16 x 8 elements of a product. Warps are spread
over the rows and columns of a product; where it has fewer instructions than warps,
several hold the same elements. Of several products in the body of one loop, as in
attention, the last one decides for all, and warps are spread along rows or columns
alone, so that a row of scores stays in one warp. This follows Triton's pass
AccelerateMatmul, which does not look into other loops. Block sizes and launch numbers
may be arrays, one element per choice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from comet.cost.gpu.kernel import Device
from comet.cost.gpu.summary import Blocks, KernelSummary, Product
from comet.cost.reals import Real, Truth, product

ROWS = 16
COLUMNS = 8
"""The elements that a warp makes with one matrix instruction."""
QUAD = 4
"""Lanes of a warp that hold the columns of a row of these."""


@dataclass(frozen=True)
class Layout:
    """How the warps of a program are spread over the tiles of a product."""

    rows: Real
    """Warps along rows."""
    columns: Real
    """Warps along columns."""


@dataclass(frozen=True)
class Other:
    """Another product of the same program."""

    made: Product
    beside: Truth
    """Whether it is in the body of the same loop."""
    later: bool


@dataclass(frozen=True)
class Layouts:
    """The layouts of the products of a program."""

    summary: KernelSummary
    blocks: Blocks
    warps: Real
    gpu: Device

    @cached_property
    def direct(self) -> Real:
        """1 if instructions read rows from shared memory, else 0."""
        return reads_shared(self.summary, self.blocks, self.gpu)

    def product_of(self, dims: Collection[str]) -> Product:
        """Return the last product with rows and columns of a tile, or one of them."""

        def common(made: Product) -> int:
            return bool(made.rows & set(dims)) + bool(made.columns & set(dims))

        return max(reversed(self.summary.products), key=common)

    def trips_of(self, made: Product) -> Real:
        """Return the iterations of loops that sum a product."""
        dims = (dim for dim in made.loops if dim in made.summed)
        return product(self.summary.trips(dim, self.blocks) for dim in dims)

    @cached_property
    def of(self) -> Mapping[Product, Layout]:
        """The layout of the result of each product."""
        return {made: self._layout(made) for made in self.summary.products}

    def _layout(self, made: Product) -> Layout:
        """Return where the warps of a product are: copied operands are in registers."""
        others = self._others(made)
        read = self._read_from_shared(made, others)
        along = np.where(np.greater(self.direct, 0), read, self._copied(made, others))
        return Layout(along, self.warps / along)

    def _read_from_shared(self, made: Product, others: Sequence[Other]) -> Real:
        """Return the warps along rows if each takes whole 16 rows of shared memory."""
        read = (
            each.beside
            for each in others
            if each.later and each.made.summed & (made.rows | made.columns)
        )
        rows, _ = self._extents(made)
        some = np.clip(rows / ROWS, 1, self.warps)
        return np.where(_any(read), self.warps, some)

    def _copied(self, made: Product, others: Sequence[Other]) -> Real:
        """Return the warps along rows if operands are copied to registers."""
        rows, columns = self._extents(made)
        alone = _balanced(rows / ROWS, columns / (2 * COLUMNS), self.warps)
        for each in others:
            if each.later:
                last_rows, last_columns = self._extents(each.made)
                rows = np.where(each.beside, last_rows, rows)
                columns = np.where(each.beside, last_columns, columns)
        together = np.where(np.greater_equal(rows, columns), self.warps, 1.0)
        return np.where(_any(each.beside for each in others), together, alone)

    def _others(self, made: Product) -> tuple[Other, ...]:
        """Return the other products, each with whether one body has both."""
        products = self.summary.products
        place = products.index(made)
        return tuple(
            Other(other, self._in_one_body(made, other), position > place)
            for position, other in enumerate(products)
            if position != place
        )

    def _extents(self, made: Product) -> tuple[Real, Real]:
        """Return the rows and columns of the tile of a product."""
        return (
            product(self.blocks[dim] for dim in made.rows - made.batch),
            product(self.blocks[dim] for dim in made.columns - made.batch),
        )

    def _in_one_body(self, made: Product, other: Product) -> Truth:
        """Return whether the same loops are around both: those of one trip are none."""
        only = set(made.loops) ^ set(other.loops)
        trips = (self.summary.trips(dim, self.blocks) for dim in only)
        return np.less_equal(product(trips), 1)


def reads_shared(summary: KernelSummary, blocks: Blocks, gpu: Device) -> Real:
    """Return 1 if matrix instructions read rows from shared memory, else 0."""
    if summary.dot_type == "f32":
        return 0.0
    least = gpu.compiled.shared_operand_rows
    return product(
        np.greater_equal(blocks[dim], least) * 1.0 for dim in summary.dot_rows
    )


def _any(found: Iterable[Truth]) -> Truth:
    result: Truth = np.bool_(False)
    for each in found:
        result = np.logical_or(result, each)
    return result


def _balanced(rows: Real, columns: Real, warps: Real) -> Real:
    """Return the warps along rows if each factor of 2 goes where more is left."""
    along, across = np.ones_like(rows + warps), np.ones_like(rows + warps)
    while np.any(more := along * across < warps):
        taller = (rows / along >= columns / across) & (along < rows)
        along = np.where(more & taller, 2 * along, along)
        across = np.where(more & ~taller, 2 * across, across)
    return along
