"""
How Triton distributes the tiles of products over the warps of a program.

A warp computes 16 x 8 elements of a product with one matrix instruction. Warps are
distributed along the rows and columns of a product; if it has fewer instructions than
there are warps, several warps hold the same elements. If the body of a loop has several
products, as in attention, the last one decides for all, and warps are distributed along
rows or columns only, so that a row of scores stays in one warp. This follows Triton's
pass AccelerateMatmul, which looks at one loop body at a time. Block sizes and launch
numbers may be arrays, one element per choice.
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
"""The elements of the result of one matrix instruction of a warp."""
QUAD = 4
"""The lanes of a warp that hold one row of that result."""


@dataclass(frozen=True)
class Layout:
    """How the warps of a program are distributed over the result of a product."""

    rows: Real
    """Warps along rows."""
    columns: Real
    """Warps along columns."""


@dataclass(frozen=True)
class Other:
    """Another product of a program, as seen from one of its products."""

    product: Product
    same_body: Truth
    """Whether both are in the body of the same loop."""
    later: bool
    """Whether it comes later in the program."""


@dataclass(frozen=True)
class Layouts:
    """The layouts of the products of a program."""

    summary: KernelSummary
    blocks: Blocks
    warps: Real
    gpu: Device

    @cached_property
    def reads_shared(self) -> Real:
        """1 if matrix instructions read rows from shared memory, else 0."""
        return reads_shared(self.summary, self.blocks, self.gpu)

    def product_of(self, dims: Collection[str]) -> Product:
        """
        Return the product whose layout a tile with these dimensions has.

        That is the last product with rows and columns of the tile; if there is none,
        the last one with either; else the last product.
        """

        def common(made: Product) -> int:
            return bool(made.rows & set(dims)) + bool(made.columns & set(dims))

        return max(reversed(self.summary.products), key=common)

    def trips_of(self, made: Product) -> Real:
        """Return the iterations of the loops that sum into a product."""
        dims = (dim for dim in made.loops if dim in made.summed)
        return product(self.summary.trips(dim, self.blocks) for dim in dims)

    @cached_property
    def of(self) -> Mapping[Product, Layout]:
        """The layout of the result of each product."""
        return {made: self._layout(made) for made in self.summary.products}

    def _layout(self, made: Product) -> Layout:
        """Return the layout of the result of a product."""
        others = self._others(made)
        shared = self._rows_from_shared(made, others)
        registers = self._rows_from_registers(made, others)
        along = np.where(np.greater(self.reads_shared, 0), shared, registers)
        return Layout(along, self.warps / along)

    def _rows_from_shared(self, made: Product, others: Sequence[Other]) -> Real:
        """Return the warps along rows if instructions read shared memory."""
        read = (
            each.same_body
            for each in others
            if each.later and each.product.summed & (made.rows | made.columns)
        )
        rows, _ = self._extents(made)
        some = np.clip(rows / ROWS, 1, self.warps)
        return np.where(_any(read), self.warps, some)

    def _rows_from_registers(self, made: Product, others: Sequence[Other]) -> Real:
        """Return the warps along rows if instructions read registers."""
        rows, columns = self._extents(made)
        single = _balanced(rows / ROWS, columns / (2 * COLUMNS), self.warps)
        for each in others:
            if each.later:
                last_rows, last_columns = self._extents(each.product)
                rows = np.where(each.same_body, last_rows, rows)
                columns = np.where(each.same_body, last_columns, columns)
        several = np.where(np.greater_equal(rows, columns), self.warps, 1.0)
        return np.where(_any(each.same_body for each in others), several, single)

    def _others(self, made: Product) -> tuple[Other, ...]:
        """Return the other products of the program."""
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
        """Return whether the same loops, of several trips, are around both products."""
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
    """
    Return the warps along rows of a product, a power of two.

    `rows` and `columns` are in units of what one warp computes. Each factor of 2 goes
    to the side with more units per warp.
    """
    along, across = np.ones_like(rows + warps), np.ones_like(rows + warps)
    while np.any(more := along * across < warps):
        taller = (rows / along >= columns / across) & (along < rows)
        along = np.where(more & taller, 2 * along, along)
        across = np.where(more & ~taller, 2 * across, across)
    return along
