"""
`expand-vectors`: elementary level -> elementary level, with matrices of one row.

COMET files only have products of two matrices. So a vector operand of a product gets a
dimension of one element, and so do all values that it is computed from, or that are
computed from it, arguments and results included. In memory a matrix of one row is equal
to a vector, so nothing moves.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from comet.dialects.compound import (
    CastOp,
    ConcatOp,
    ContractOp,
    FillOp,
    MapOp,
    PadOp,
    ReduceOp,
    RenameOp,
    SliceOp,
)
from comet.dialects.compound.dims import (
    element_type_of,
    extents_of,
    level_of,
    names_of,
    tensor,
    unused,
)
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass


@dataclass(frozen=True)
class ExpandVectorsPass(FunctionPass):
    """Give the vectors of products a dimension of one element."""

    name = "expand-vectors"

    LEVELS = (IRLevel.ELEMENTARY,)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        values = expandable_values(function)
        dims = {dim for value in _values(function) for dim in names_of(value)}
        row = unused("R", dims)
        for value in values:
            Rewriter.replace_value_with_new_type(value, _with_row(value.type, row))
        if values:
            function.update_function_type()


def needs_rows(module: ModuleOp) -> bool:
    """Return whether `expand-vectors` would change a module."""
    return any(map(expandable_values, compute_functions(module)))


def expandable_values(function: FuncOp) -> tuple[SSAValue, ...]:
    """
    Return the values that get a row: the vectors of products, and what depends on them.

    Empty if an op among them cannot have one more dimension, or if a product has two
    vectors.
    """
    found: dict[SSAValue, None] = {}
    products = (op for op in function.walk() if isinstance(op, ContractOp))
    open_ = [vector for op in products for vector in vectors_of(op)]
    while open_:
        if (value := open_.pop()) in found:
            continue
        found[value] = None
        ops = [use.operation for use in value.uses]
        if isinstance(value.owner, Operation):
            ops.append(value.owner)
        for op in ops:
            if (joined := _joined(op, value, found)) is None:
                return ()
            open_ += joined
    return tuple(found)


def vectors_of(product: ContractOp) -> tuple[SSAValue, ...]:
    """Return the operands of a product that have neither rows nor columns."""
    _, rows, columns, _ = product.roles
    pairs = ((product.lhs, rows), (product.rhs, columns))
    return tuple(operand for operand, own in pairs if not own)


def _joined(
    op: Operation, value: SSAValue, found: Container[SSAValue]
) -> Iterable[SSAValue] | None:
    """
    Return the other values of `op` that get a row if `value` gets one; None if illegal.

    If an operand has the row, the result has it. If the result has the row, one operand
    must have it. `found` are the values that get a row so far.
    """
    match op:
        case ReturnOp() | FillOp():
            return ()
        case ReduceOp() | CastOp() | RenameOp() | SliceOp() | PadOp() | ConcatOp():
            return (*op.operands, *op.results)
        case ContractOp() if _has_no_matrix(op, value):
            return None
        case MapOp() | ContractOp():
            if value is not op.results[0] or any(each in found for each in op.operands):
                return op.results
            return _carriers(op)
        case _:
            return None


def _has_no_matrix(product: ContractOp, value: SSAValue) -> bool:
    """Return whether a product has two vectors, or its matrix `value` gets a row."""
    vectors = vectors_of(product)
    if len(vectors) == 1:
        return value in product.operands and value not in vectors
    return bool(vectors)


def _carriers(op: MapOp | ContractOp) -> Iterable[SSAValue]:
    """Return the operands by which the result of an op gets a row."""
    if isinstance(op, ContractOp):
        return vectors_of(op) or (op.lhs,)
    dims = names_of(op.result)
    return (max(op.operands, key=lambda value: len({*names_of(value)} & {*dims})),)


def _with_row(type_: Attribute, row: str) -> Attribute:
    return tensor(
        {row: 1, **extents_of(type_)}, element_type_of(type_), level_of(type_)
    )


def _values(function: FuncOp) -> Iterable[SSAValue]:
    yield from function.args
    for op in function.walk():
        yield from op.results
