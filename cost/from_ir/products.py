"""
Reads the products of a GPU kernel: the role of each of their dimensions.

Products are known before the tile tree is built, and rule out tiles early.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Self

from xdsl.ir import Operation, SSAValue

from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Operands, Point, Product, RowSplit, Term
from comet.dialects.arch.gpu import rate_name
from comet.dialects.compound import ContractOp, FoldOp
from comet.dialects.compound.dims import (
    bits_of,
    element_type_of,
    iteration_dims,
    joined_extents,
    names_of,
)
from comet.dialects.schedule.accumulators import (
    is_accumulated,
    is_addition,
    is_transposed,
    sum_with,
)


@dataclass(frozen=True)
class ReadProduct:
    """A contraction, read once for all kernels and loops that may have it."""

    dims: tuple[str, ...]
    result: Term
    """The bytes of its result."""
    operands: Operands
    """Its operands, left and right as in the op, and the roles of dimensions."""
    extents: Mapping[str, int]
    """Of its operands."""
    contracted: frozenset[str]
    operations: int
    """Two for each term, as in FLOPs."""
    rate: str
    """The element type that decides its rate."""
    turned: bool
    """Whether `order-operands` makes its right operand the left one."""
    added: bool
    """Whether it is only added to other values."""
    summed: bool
    """Whether it is part of a sum of products."""

    @classmethod
    def of(cls, op: ContractOp) -> Self:
        """Read a contraction."""
        turned = _is_turned(op)
        product = _product_of(op, turned=turned)
        return cls(
            iteration_dims(op),
            tile_bytes(op.result),
            Operands(tile_bytes(op.lhs), tile_bytes(op.rhs), product),
            joined_extents(op.operands),
            frozenset(op.contracted),
            operations_of(op),
            rate_of(op),
            turned,
            any(is_addition(use.operation) for use in op.result.uses),
            sum_with(op.result) is not None,
        )

    def point(self, loops: Collection[str]) -> Point:
        """
        Return the least values in registers during the product.

        Its result is one of them if a loop sums it, or if it is not only added.
        """
        summed = not self.contracted.isdisjoint(loops)
        result = (self.result,) if summed or not self.added else ()
        return Point(result, operands=self.operands)


class Products:
    """Collects the products of a kernel."""

    def __init__(self) -> None:
        self.products: list[Product] = []
        self.dots: list[Term] = []
        self.results: list[tuple[str, ...]] = []
        self.reads: list[Term] = []
        self.sums: list[Term] = []
        self.dims: set[str] = set()
        self.rows: set[str] = set()
        self.depths: set[str] = set()
        self.batch: set[str] = set()
        self.type = "f32"

    def add(self, read: ReadProduct, loops: tuple[str, ...]) -> None:
        """Add a contraction, which is a dot where the blocks of `batch` are 1."""
        sides, batch = read.operands, read.operands.product.batch
        left = sides.right if read.turned else sides.left
        result_dims, summed = set(read.result.dims), set(left.dims)
        self.products.append(sides.product.inside(loops))
        self.dots.append(Term(read.dims, 2, loops, single=tuple(sorted(batch))))
        self.results.append(read.result.dims)
        read_here = [side._replace(loops=loops) for side in (sides.left, sides.right)]
        self.reads += read_here
        self.sums += read_here if read.summed else ()
        self.dims |= set(read.dims) - batch
        self.rows |= (result_dims & summed) - batch
        self.depths |= summed - result_dims
        self.batch |= batch
        self.type = read.rate


def summarize_products(
    ops: Iterable[Operation], grid: tuple[str, ...], loops: tuple[str, ...]
) -> KernelSummary:
    """
    Return a summary with only the products of a kernel, before its tree is built.

    The kernel computes `ops`; programs split the dimensions of `grid`, and have
    `loops`, the outermost first. The other values in registers are missing: blocks that
    do not fit by this summary do not fit by the whole one.
    """
    ops, extents = tuple(ops), dict[str, int]()
    for op in ops:
        extents |= joined_extents((*op.operands, *op.results))
    found = (ReadProduct.of(product) for op in ops for product in products_in(op))
    return summary_of_products(found, extents, grid, loops)


def summary_of_products(
    found: Iterable[ReadProduct],
    extents: Mapping[str, int],
    grid: tuple[str, ...],
    loops: tuple[str, ...],
) -> KernelSummary:
    """Return the summary of products that are read, see `summarize_products`."""
    products, points = Products(), list[Point]()
    for read in found:
        products.add(read, ())
        points.append(read.point(loops))
    return KernelSummary(
        extents=extents,
        grid=grid,
        loops=loops,
        dot_dims=frozenset(products.dims),
        dot_rows=frozenset(products.rows),
        dot_depths=frozenset(products.depths),
        inner_dims=frozenset(loops[1:]),
        batch_dims=frozenset(products.batch),
        dots=tuple(products.dots),
        dot_results=tuple(products.results),
        dot_reads=tuple(products.reads),
        products=tuple(products.products),
        points=tuple(points),
        dot_type=products.type,
        split=_possible_split(products.products, (*grid, *loops)),
    )


def _possible_split(products: Sequence[Product], cut: Sequence[str]) -> RowSplit | None:
    """Return how clusters may divide whole rows of a product, as far as it says."""
    if len(products) != 1:
        return None
    rows, columns = products[0].rows, products[0].columns
    if len(rows) != 1 or len(columns) != 1 or not columns.isdisjoint(cut):
        return None
    return RowSplit(*rows, *columns, reductions=0)


def rate_of(op: ContractOp) -> str:
    """Return the element type that decides the rate of a product."""
    return rate_name(element_type_of(op.lhs))


def operations_of(op: ContractOp) -> int:
    """Return the operations of a product: two for each term, as in FLOPs."""
    extents = joined_extents(op.operands)
    return 2 * prod(extents[dim] for dim in iteration_dims(op))


def products_in(op: Operation) -> Iterator[ContractOp]:
    """Yield `op` if it is a contraction, or those in the step of a fold."""
    ops = op.step.block.ops if isinstance(op, FoldOp) else (op,)
    yield from (each for each in ops if isinstance(each, ContractOp))


def tile_bytes(value: SSAValue, loops: tuple[str, ...] = ()) -> Term:
    """Return the bytes of a tile of `value` as a term inside `loops`."""
    return Term(names_of(value), bits_of(value) / 8, loops)


def sums_of_products(op: ContractOp, loops: tuple[str, ...]) -> Iterator[Term]:
    """Yield the vector operations of a product, for blocks with which it is no dot."""
    if several := tuple(sorted(op.batched)):
        yield Term(iteration_dims(op), 2, loops, several=several)


def _product_of(op: ContractOp, *, turned: bool) -> Product:
    """Return the dimensions of a contraction by their roles, see `ReadProduct`."""
    _, rows, columns, summed = op.roles
    if turned:
        rows, columns = columns, rows
    return Product(
        frozenset(rows), frozenset(columns), frozenset(summed), frozenset(op.batched)
    )


def _is_turned(op: ContractOp) -> bool:
    """Whether `order-operands` makes the right operand of a product the left one."""
    return is_accumulated(op) and is_transposed(op)
