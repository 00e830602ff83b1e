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

from comet.cost.gpu.contractions import Contraction, Contractions
from comet.cost.gpu.kernel_facts import LiveTiles, Nest
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
    added: bool
    """Whether it is only added to other values."""
    summed: bool
    """Whether it is part of a sum of products."""

    @classmethod
    def of(cls, op: ContractOp) -> Self:
        """Read a contraction."""
        return cls(
            iteration_dims(op),
            tile_bytes(op.result),
            Operands(tile_bytes(op.lhs), tile_bytes(op.rhs), _product_of(op)),
            joined_extents(op.operands),
            frozenset(op.contracted),
            operations_of(op),
            rate_of(op),
            any(is_addition(use.operation) for use in op.result.uses),
            sum_with(op.result) is not None,
        )

    def inside(self, loops: tuple[str, ...], coalesced: int = 0) -> Contraction:
        """
        Return it inside `loops`: a dot where the blocks of `batch` are 1.

        So many of the innermost loops are `coalesced` to one.
        """
        sides = self.operands
        return Contraction(
            sides.product.inside(loops, coalesced),
            Term(self.dims, 2, loops, single=tuple(sorted(sides.product.batch))),
            self.result.dims,
            (sides.left._replace(loops=loops), sides.right._replace(loops=loops)),
            self.summed,
            self.rate,
        )

    def point(self, loops: Collection[str]) -> Point:
        """
        Return the least values in registers during the product.

        Its result is one of them if a loop sums it, or if it is not only added.
        """
        summed = not self.contracted.isdisjoint(loops)
        result = (self.result,) if summed or not self.added else ()
        return Point(result, operands=self.operands)


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
    reads = tuple(found)
    contractions = tuple(read.inside(()) for read in reads)
    return KernelSummary(
        Contractions(contractions),
        Nest(
            extents=extents,
            grid=grid,
            loops=loops,
            inner_dims=frozenset(loops[1:]),
            split=_possible_split(contractions, (*grid, *loops)),
        ),
        LiveTiles(tuple(read.point(loops) for read in reads)),
    )


def _possible_split(
    contractions: Sequence[Contraction], cut: Sequence[str]
) -> RowSplit | None:
    """Return how clusters may divide whole rows of a product, as far as it says."""
    if len(contractions) != 1:
        return None
    product = contractions[0].product
    rows, columns = product.rows, product.columns
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


def _product_of(op: ContractOp) -> Product:
    """
    Return the dimensions of a contraction by their roles.

    `order-operands` makes some right operands the left ones.
    """
    _, rows, columns, summed = op.roles
    if is_accumulated(op) and is_transposed(op):
        rows, columns = columns, rows
    return Product(
        frozenset(rows), frozenset(columns), frozenset(summed), frozenset(op.batched)
    )
