"""
Reads the products of a GPU kernel: the role of each of their dimensions.

Products are known before the tile tree is built, and rule out tiles early.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from math import prod

from xdsl.ir import Operation, SSAValue

from comet.cost.gpu.summary import KernelSummary, Operands, Point, Product, Term
from comet.dialects.arch.gpu import rate_name
from comet.dialects.compound import ContractOp, FoldOp, MapKind, MapOp
from comet.dialects.compound.dims import (
    bits_of,
    element_type_of,
    iteration_dims,
    joined_extents,
    names_of,
)
from comet.dialects.schedule.accumulators import is_fused, is_transposed


class Products:
    """Collects the products of a kernel."""

    def __init__(self) -> None:
        self.products: list[Product] = []
        self.dots: list[Term] = []
        self.results: list[tuple[str, ...]] = []
        self.reads: list[Term] = []
        self.dims: set[str] = set()
        self.rows: set[str] = set()
        self.depths: set[str] = set()
        self.batch: set[str] = set()
        self.type = "f32"

    def add(self, op: ContractOp, loops: tuple[str, ...]) -> None:
        """Add a contraction, which is a dot where the blocks of `batch` are 1."""
        dims, batch = iteration_dims(op), set(op.batched)
        left = op.rhs if _is_turned(op) else op.lhs
        result_dims, summed = set(names_of(op.result)), set(names_of(left))
        self.products.append(_product_of(op, loops))
        self.dots.append(Term(dims, 2, loops, single=tuple(sorted(batch))))
        self.results.append(tuple(names_of(op.result)))
        self.reads += [tile_bytes(value, loops) for value in op.operands]
        self.dims |= set(dims) - batch
        self.rows |= (result_dims & summed) - batch
        self.depths |= summed - result_dims
        self.batch |= batch
        self.type = rate_of(op)


def summarize_products(
    ops: Iterable[Operation], grid: tuple[str, ...], loops: tuple[str, ...]
) -> KernelSummary:
    """
    Return a summary with only the products of a kernel, before its tree is built.

    The kernel computes `ops`; programs split the dimensions of `grid`, and have
    `loops`. The other values in registers are missing: blocks that do not fit by this
    summary do not fit by the whole one.
    """
    products, points, extents = Products(), list[Point](), dict[str, int]()
    for op in ops:
        extents |= joined_extents((*op.operands, *op.results))
        for product in products_in(op):
            products.add(product, ())
            points.append(_point(product, loops))
    return KernelSummary(
        extents=extents,
        grid=grid,
        loops=loops,
        dot_dims=frozenset(products.dims),
        dot_rows=frozenset(products.rows),
        dot_depths=frozenset(products.depths),
        inner_dims=frozenset(),
        batch_dims=frozenset(products.batch),
        dots=tuple(products.dots),
        dot_results=tuple(products.results),
        dot_reads=tuple(products.reads),
        products=tuple(products.products),
        points=tuple(points),
        dot_type=products.type,
    )


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


def _point(op: ContractOp, loops: Collection[str]) -> Point:
    """
    Return the least values in registers during a product.

    Its result is one of them if a loop sums it, or if it is not only added to others.
    """
    summed = not set(loops).isdisjoint(op.contracted)
    added = any(adds(use.operation) for use in op.result.uses)
    result = (tile_bytes(op.result),) if summed or not added else ()
    return Point(result, operands=operands_of(op, ()))


def adds(op: Operation) -> bool:
    """Whether an op is an addition; a product can accumulate into its other operand."""
    return isinstance(op, MapOp) and op.kind.data is MapKind.ADD


def tile_bytes(value: SSAValue, loops: tuple[str, ...] = ()) -> Term:
    """Return the bytes of a tile of `value` as a term inside `loops`."""
    return Term(names_of(value), bits_of(value) / 8, loops)


def sums_of_products(op: ContractOp, loops: tuple[str, ...]) -> Iterator[Term]:
    """Yield the vector operations of a product, for blocks with which it is no dot."""
    if several := tuple(sorted(op.batched)):
        yield Term(iteration_dims(op), 2, loops, several=several)


def operands_of(op: Operation, loops: tuple[str, ...]) -> Operands | None:
    """Return the operands of a contraction, None for another op."""
    if not isinstance(op, ContractOp):
        return None
    return Operands(tile_bytes(op.lhs), tile_bytes(op.rhs), _product_of(op, loops))


def _product_of(op: ContractOp, loops: tuple[str, ...]) -> Product:
    """Return the dimensions of a contraction by their roles."""
    _, rows, columns, summed = op.roles
    if _is_turned(op):
        rows, columns = columns, rows
    sides = (rows, columns, summed, op.batched)
    return Product(*map(frozenset, sides), loops=loops)


def _is_turned(op: ContractOp) -> bool:
    """Whether `order-operands` makes the right operand of a product the left one."""
    return is_fused(op) and is_transposed(op)
