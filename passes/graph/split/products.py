"""The products that `split` is asked for, and what is split along with them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

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
    slice_ = {op for op in func.body.block.ops if op in products}
    for product in products:
        for value in product.operands:
            slice_ |= _computing(value, dim) or set()
    return [op for op in func.body.block.ops if op in slice_]


def _computing(value: SSAValue, dim: str) -> set[Operation] | None:
    """
    Return the ops with `dim` that compute a value of arguments, elementwise.

    None if it depends on `dim` in another way, such as by a product.
    """
    op = value.owner
    if dim not in names_of(value) or not isinstance(op, Operation):
        return set()
    if not isinstance(op, ELEMENTWISE) and not (
        isinstance(op, RenameOp) and op.keeps(dim)
    ):
        return None
    found: set[Operation] = {op}
    for operand in op.operands:
        before = _computing(operand, dim)
        if before is None:
            return None
        found |= before
    return found
