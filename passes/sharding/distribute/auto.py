"""
Candidates for sharding over clusters and cores, from the dimensions of a program's ops.

If the columns of a product are sharded, instances exchange reductions over them, such
as the statistics of rows; if rows are sharded they exchange nothing, but each needs the
whole right operand. Folds run along their dimension on each instance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from comet.dialects.blocks import yielded_by
from comet.dialects.compound import ContractOp, FoldOp, ReduceOp
from comet.dialects.compound.dims import names_of
from comet.passes.analysis.functions import compute_functions
from comet.passes.sharding.shardings import shardable_dims

Dims: TypeAlias = tuple[str, ...]
"""Dimensions in the order in which they take the mesh axes."""

SHARDED_DIMS = "comet.dim"
"""The attribute of a mapping with the chosen dimensions."""


def candidates(module: ModuleOp) -> tuple[Dims, ...]:
    """
    Return the dimensions that may be sharded.

    If there are folds, these are the dimensions that all their results have; otherwise
    the columns of the first product, or the other dimensions of the function's results
    that ops compute along: no op does along rows that ids name.
    """
    if folded := fold_dims(module):
        return (folded,)
    columns = column_dims(module)
    along = {dim for op in _ops(module) for dim in shardable_dims(op)}
    others = (dim for dim in result_dims(module) if dim not in columns)
    rows = tuple(dim for dim in others if dim in along)
    return tuple(dims for dims in (columns, rows) if dims)


def fold_dims(module: ModuleOp) -> Dims:
    """Return the dimensions that the results of all folds have, in order."""
    folds = [op for op in _ops(module) if isinstance(op, FoldOp)]
    results = [names_of(out) for fold in folds for out in fold.outs]
    return tuple(
        dim
        for dim in dict.fromkeys(dim for names in results for dim in names)
        if all(dim in names for names in results)
    )


def column_dims(module: ModuleOp) -> Dims:
    """
    Return the dimensions of the first product that its left operand does not have.

    Without a product, these are the dimensions of the first reduction.
    """
    for op in _ops(module):
        if isinstance(op, ContractOp):
            left = names_of(op.lhs)
            return tuple(dim for dim in names_of(op.result) if dim not in left)
    reductions = (op for op in _ops(module) if isinstance(op, ReduceOp))
    return next((tuple(op.reduced) for op in reductions), ())


def result_dims(module: ModuleOp) -> Dims:
    """Return the dimensions of the results of the functions of `module`, in order."""
    results = [
        value
        for func in compute_functions(module)
        for value in yielded_by(func.body.block)
    ]
    return tuple(dict.fromkeys(name for value in results for name in names_of(value)))


def _ops(module: ModuleOp) -> Iterator[Operation]:
    return (op for func in compute_functions(module) for op in func.body.block.ops)
