"""The products that `split` is asked for, and what is split along with them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from comet.dialects.compound import (
    CastOp,
    ContractOp,
    FillOp,
    IndexOp,
    MapOp,
    RenameOp,
)
from comet.dialects.compound.dims import names_of
from comet.passes.analysis.stored_values import value_names

ELEMENTWISE = (CastOp, FillOp, IndexOp, MapOp)
"""Ops that compute each element of their result by itself."""


def products_of(func: FuncOp) -> dict[str, ContractOp]:
    """Return the products of a function, by name."""
    named = value_names(list(func.body.block.ops))
    return {
        name: value.owner
        for value, name in named.items()
        if isinstance(value.owner, ContractOp)
    }


def products_over(func: FuncOp, dim: str) -> dict[str, ContractOp]:
    """Return the products of a function that sum over `dim`, by name."""
    found = products_of(func).items()
    return {name: op for name, op in found if dim in op.contracted}


def with_operands(
    func: FuncOp, products: Sequence[ContractOp], dim: str
) -> list[Operation]:
    """
    Return products and the elementwise ops before them that have `dim`, in order.

    These ops compute what the products read from arguments of the function alone, so
    each kernel can compute it while it loads them. Other values are read as they are.
    """
    elementwise = _of_arguments(func, dim)
    found: set[Operation] = set(products)
    for op in reversed(func.body.block.ops):
        users = (use.operation for result in op.results for use in result.uses)
        if op in elementwise and not found.isdisjoint(users):
            found.add(op)
    return [op for op in func.body.block.ops if op in found]


def _of_arguments(func: FuncOp, dim: str) -> set[Operation]:
    """Return the elementwise ops with `dim` that compute it from arguments alone."""
    found: set[Operation] = set()
    for op in func.body.block.ops:
        keeps = isinstance(op, ELEMENTWISE) or (
            isinstance(op, RenameOp) and op.keeps(dim)
        )
        read = (value.owner for value in op.operands)
        if keeps and all(isinstance(each, Block) or each in found for each in read):
            found.add(op)
    return {op for op in found if dim in names_of(op.results[0])}
