"""
How Triton distributes the tiles of products over the warps of a program.

A warp computes a tile of a product with one matrix instruction, 16 x 8 elements on
NVIDIA GPUs. Warps are distributed along the rows and columns of a product; if it has
fewer instructions than there are warps, several warps hold the same elements.

If the body of a loop has several products, as in attention, there are two rules, of
which the hardware file chooses one (`warps_along_rows`). Without it, the shape of the
last product decides for all of the body, and warps are along rows or along columns
only. With it, products that read each other have warps along rows, so that a row of
scores stays in one warp. These are the rules of Triton's passes AccelerateMatmul and
AccelerateAMDMatmul, which look at one loop body at a time.

Block sizes and launch numbers may be arrays, one element per choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from comet.cost.gpu.device import Device
from comet.cost.gpu.summary import Evaluated, KernelSummary
from comet.cost.gpu.terms import Blocks, Product
from comet.cost.gpu.triton_rules import ProductRules
from comet.cost.reals import Real, Truth, any_of, product


@dataclass(frozen=True)
class Fragment:
    """The part of the result of a matrix instruction that one warp holds."""

    rows: Real
    columns: Real
    lanes: Real
    """The lanes that hold one row."""


@dataclass(frozen=True)
class Layout:
    """How the warps of a program are distributed over the result of a product."""

    rows: Real
    """Warps along rows."""
    columns: Real
    """Warps along columns."""


@dataclass(frozen=True)
class RelatedProduct:
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
    _products: dict[tuple[str, ...], Product] = field(
        default_factory=dict[tuple[str, ...], Product]
    )
    _elements: dict[tuple[str, ...], Real] = field(
        default_factory=dict[tuple[str, ...], Real]
    )

    @classmethod
    def once(
        cls, summary: KernelSummary, blocks: Blocks, warps: Real, gpu: Device
    ) -> Self:
        """Return the layouts, the same ones for the same blocks if they remember."""
        found = cls(summary, blocks, warps, gpu)
        if not isinstance(blocks, Evaluated) or blocks.summary is not summary:
            return found
        # What is found holds `warps` and `gpu`: no other object gets their ids.
        return blocks.once((cls, id(warps), id(gpu)), lambda: found)

    @property
    def _rules(self) -> ProductRules:
        return self.gpu.triton.products

    @cached_property
    def reads_shared(self) -> Real:
        """1 if matrix instructions read rows from shared memory, else 0."""
        return reads_shared(self.summary, self.blocks, self._rules)

    def product_of(self, dims: tuple[str, ...]) -> Product:
        """
        Return the product whose layout a tile with these dimensions has.

        The last product with rows and columns among the dimensions; if there is none,
        the last one with rows or columns; else the last product.
        """
        if dims not in self._products:
            self._products[dims] = max(
                reversed(self.summary.products.roles),
                key=lambda dot: sum(
                    not side.isdisjoint(dims) for side in (dot.rows, dot.columns)
                ),
            )
        return self._products[dims]

    def thread_elements(self, dims: tuple[str, ...]) -> Real:
        """
        Return how many elements of a tile with rows of its product a thread holds.
        """
        if dims not in self._elements:
            self._elements[dims] = self._thread_elements(dims)
        return self._elements[dims]

    def _thread_elements(self, dims: tuple[str, ...]) -> Real:
        dot = self.product_of(dims)
        layout, fragment = self.of[dot], self.fragments[dot]
        rows = product(self.blocks[dim] for dim in dims if dim in dot.rows)
        columns = product(self.blocks[dim] for dim in dims if dim not in dot.rows)
        lanes = self.gpu.limits.warp_threads / fragment.lanes
        thread_rows = np.maximum(rows / layout.rows, fragment.rows) / lanes
        thread_columns = (
            np.maximum(columns / layout.columns, fragment.columns) / fragment.lanes
        )
        return thread_rows * np.where(np.greater(columns, 1), thread_columns, 1.0)

    def trips_of(self, dot: Product) -> Real:
        """Return the iterations of the loops that sum into a product."""
        dims = (dim for dim in dot.loops if dim in dot.summed)
        return product(self.summary.trips(dim, self.blocks) for dim in dims)

    @cached_property
    def fragments(self) -> Mapping[Product, Fragment]:
        """The matrix instruction of each product: the first one that it fills."""
        return {dot: self._fragment(dot) for dot in self._extents}

    def _fragment(self, dot: Product) -> Fragment:
        rows, columns = self._extents[dot]
        *larger, smallest = self._rules.matrix_instructions
        found = Fragment(*smallest)
        for instruction in reversed(larger):
            filled = np.greater_equal(rows, instruction.rows)
            filled = filled & np.greater_equal(columns, instruction.columns)
            smaller = found.rows, found.columns, found.lanes
            pairs = zip(instruction, smaller, strict=True)
            found = Fragment(*(np.where(filled, new, old) for new, old in pairs))
        return found

    @cached_property
    def of(self) -> Mapping[Product, Layout]:
        """The layout of the result of each product."""
        return {dot: self._layout(dot) for dot in self._extents}

    def _layout(self, dot: Product) -> Layout:
        """Return the layout of the result of a product."""
        others = self._others(dot)
        shared = self._rows_of_chain(dot, others)
        registers = self._rows_from_registers(dot, others)
        along = np.where(np.greater(self.reads_shared, 0), shared, registers)
        return Layout(along, self.warps / along)

    def _rows_of_chain(self, dot: Product, others: Sequence[RelatedProduct]) -> Real:
        """
        Return the warps along rows of a product in a chain of products.

        If matrix instructions read shared memory, of any product.
        """
        rows, _ = self._extents[dot]
        some = np.clip(rows / self.fragments[dot].rows, 1, self.warps)
        return np.where(any_of(_reading(dot, others)), self.warps, some)

    def _rows_from_registers(
        self, dot: Product, others: Sequence[RelatedProduct]
    ) -> Real:
        """Return the warps along rows if instructions read registers."""
        single = self._balanced(dot)
        if self._rules.warps_along_rows:
            chained = any_of((*_reading(dot, others), *_read(dot, others)))
            return np.where(chained, self._rows_of_chain(dot, others), single)
        rows, columns = self._extents[dot]
        for other in others:
            if other.later:
                last_rows, last_columns = self._extents[other.product]
                rows = np.where(other.same_body, last_rows, rows)
                columns = np.where(other.same_body, last_columns, columns)
        several = np.where(np.greater_equal(rows, columns), self.warps, 1.0)
        return np.where(any_of(other.same_body for other in others), several, single)

    def _balanced(self, dot: Product) -> Real:
        """
        Return the warps along rows of a product alone, a power of two.

        Each factor of 2 goes to the side with more instructions per warp, counted in
        `warp_instructions`. With `warps_along_rows`, the two sides are swapped if the
        columns have too few instructions for their warps.
        """
        fragment, units = self.fragments[dot], self._rules.warp_instructions
        rows, columns = self._extents[dot]
        rows, columns = rows / fragment.rows, columns / fragment.columns
        along, across = np.ones_like(rows + self.warps), np.ones_like(rows + self.warps)
        while np.any(more := along * across < self.warps):
            taller = rows / along / units.rows >= columns / across / units.columns
            taller = taller & (along < rows)
            along = np.where(more & taller, 2 * along, along)
            across = np.where(more & ~taller, 2 * across, across)
        if self._rules.warps_along_rows:
            return np.where(across > columns, across, along)
        return along

    def _others(self, dot: Product) -> tuple[RelatedProduct, ...]:
        """Return the other products of the program."""
        products = self.summary.products.roles
        place = products.index(dot)
        return tuple(
            RelatedProduct(
                other, self.in_one_body(dot.loops, other.loops), position > place
            )
            for position, other in enumerate(products)
            if position != place
        )

    @cached_property
    def _extents(self) -> Mapping[Product, tuple[Real, Real]]:
        """The rows and columns of the tile of each product."""
        return {
            dot: (
                product(self.blocks[dim] for dim in dot.rows - dot.batch),
                product(self.blocks[dim] for dim in dot.columns - dot.batch),
            )
            for dot in dict.fromkeys(self.summary.products.roles)
        }

    def in_one_body(self, loops: Iterable[str], others: Iterable[str]) -> Truth:
        """Return whether the same loops of several trips are among both."""
        only = {*loops} ^ {*others}
        trips = (self.summary.trips(dim, self.blocks) for dim in only)
        return np.less_equal(product(trips), 1)


def reads_shared(summary: KernelSummary, blocks: Blocks, rules: ProductRules) -> Real:
    """Return 1 if matrix instructions read rows from shared memory, else 0."""
    if summary.products.element == "f32":
        return 0.0
    rows = rules.shared_operand_rows
    if rows == 0:
        return 0.0
    return product(
        np.greater_equal(blocks[dim], rows) * 1.0 for dim in summary.products.rows
    )


def _reading(dot: Product, others: Sequence[RelatedProduct]) -> Iterator[Truth]:
    """Yield for each later product that may read one whether their body is the same."""
    for other in others:
        if other.later and other.product.summed & (dot.rows | dot.columns):
            yield other.same_body


def _read(dot: Product, others: Sequence[RelatedProduct]) -> Iterator[Truth]:
    """Yield the same for each earlier product that one may read."""
    for other in others:
        sides = other.product.rows | other.product.columns
        if not other.later and dot.summed & sides:
            yield other.same_body
