"""
Candidates for sharding over clusters and cores, from the dimensions of a program's ops.

If the columns of a product are sharded, instances exchange reductions over them, such
as the statistics of rows; if rows are sharded they exchange nothing, but each needs the
whole right operand. Folds run along their dimension on each instance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, product
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.blocks import yielded_by
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.compound import ContractOp, FoldOp, ReduceOp
from comet.dialects.compound.dims import names_of
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.memory_chain import memory_chain
from comet.passes.sharding.dim_axes import (
    DimAxes,
    Dims,
    LikeAxes,
    assign_axes,
    axes_of,
    like_axes,
)
from comet.passes.sharding.shardings import shardable_dims

Names: TypeAlias = tuple[str, ...]
"""Dimensions in the order in which they take the mesh axes."""

SHARDED_DIMS = "comet.dim"
"""The attribute of a mapping with the chosen dimensions."""


def candidates(module: ModuleOp) -> tuple[Names, ...]:
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


def shardings(name: str, module: ModuleOp) -> tuple[Dims, ...]:
    """
    Return the different ways to shard the candidates of a module, none among them.

    One candidate takes all axes of its machine, or each level shards one of them or
    none, or each direction of the meshes one; a dimension takes the axes that divide
    it. Raises PassFailedException in the name of a pass if the machine is none of
    clusters and cores.
    """
    names, system = candidates(module), attached_system(module)
    levels = memory_chain(system)
    found: dict[LikeAxes, Dims] = {}
    for dims in names:
        taken = _taken(name, module, system, dims, system.axes)
        found[like_axes(system, taken)] = tuple(map(DimAxes, dims)) if taken else ()
    found[like_axes(system, ())] = ()
    groupings = ((levels.by_level, (*names, ())), (levels.by_direction, names))
    for groups, sides in groupings:
        for chosen in product(sides, repeat=len(groups)):
            axes = axes_of(system, zip(chosen, groups, strict=True))
            taken = [
                _taken(name, module, system, dims, its)
                for dims, its in axes.items()
                if dims
            ]
            if all(taken):
                shards = tuple(chain.from_iterable(taken))
                found.setdefault(like_axes(system, shards), shards)
    return tuple(found.values())


def _taken(
    name: str, module: ModuleOp, system: SystemOp, dims: Names, axes: Iterable[str]
) -> Dims:
    """Return those of `dims` that some of `axes` divide, with these axes."""
    mesh = MeshOp(system.system_name, {axis: system.axes[axis] for axis in axes})
    shards = assign_axes(name, module, mesh, [*map(DimAxes, dims)])
    return tuple(DimAxes(*shard) for shard in shards)


def fold_dims(module: ModuleOp) -> Names:
    """Return the dimensions that the results of all folds have, in order."""
    folds = [op for op in _ops(module) if isinstance(op, FoldOp)]
    results = [names_of(out) for fold in folds for out in fold.outs]
    return tuple(
        dim
        for dim in dict.fromkeys(dim for names in results for dim in names)
        if all(dim in names for names in results)
    )


def column_dims(module: ModuleOp) -> Names:
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


def result_dims(module: ModuleOp) -> Names:
    """Return the dimensions of the results of the functions of `module`, in order."""
    results = [
        value
        for func in compute_functions(module)
        for value in yielded_by(func.body.block)
    ]
    return tuple(dict.fromkeys(name for value in results for name in names_of(value)))


def _ops(module: ModuleOp) -> Iterator[Operation]:
    return (op for func in compute_functions(module) for op in func.body.block.ops)
