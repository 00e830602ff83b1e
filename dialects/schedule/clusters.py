"""
Kernels whose programs can be clusters of thread blocks, each with a part of the rows.

A program has whole rows of a product, and each thread block some of their columns. The
reductions of rows read the shared memory of the other blocks. Triton (`num_ctas`)
decides which dimension it distributes: of the product of a few rows the columns. Each
block loads all rows of the left operand. Other matrices Triton lays out by rows, and
then moves them between blocks. Read in kernels that Triton 3.8 and 3.9 compile for
sm_90; 3.6 and 3.7 fail at an assertion in the reductions.
"""

from __future__ import annotations

from typing import TypeVar

from xdsl.dialects.builtin import BFloat16Type, Float16Type
from xdsl.ir import BlockArgument, Operation

from comet.dialects.collective.spmd import rank_count
from comet.dialects.compound import ContractOp, ReduceOp
from comet.dialects.compound.dims import element_type_of, names_of
from comet.dialects.compound.gather import scatterings
from comet.dialects.errors import called
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import loads

OpT = TypeVar("OpT", bound=Operation)


def split_dims(node: SpatialOp) -> tuple[str, str]:
    """Return the rows and the columns of the product of a kernel, which has one."""
    (product,) = _ops(node, ContractOp)
    row, column = names_of(product.result)
    return row, column


def unsplit(node: SpatialOp) -> str | None:
    """Return why the programs of a kernel cannot be clusters, or None."""
    nodes = _ops(node, NodeOp)
    if rank_count(node) > 1 or any(op.on_mesh for op in nodes):
        return "its programs exchange with those of other ranks or of their group"
    if any(map(scatterings, node.outs)):
        return "it adds rows to memory, which the blocks of a cluster cannot divide"
    products = _ops(node, ContractOp)
    if len(products) != 1 or not _is_plain(products[0]):
        return (
            "a cluster divides the rows of one product of two matrices of f16 or bf16 "
            "that are loaded for it"
        )
    return _not_whole(node) or _passed(node)


def _not_whole(node: SpatialOp) -> str | None:
    """Return that programs have no whole rows, None if they have."""
    _, column = split_dims(node)
    if all(column not in op.factors for op in _ops(node, NodeOp)):
        return None
    return (
        f"its programs have no whole rows, but a loop over {column}, unlike those of "
        "strategy=full"
    )


def _passed(node: SpatialOp) -> str | None:
    """Return what is between blocks besides reductions of rows, None if nothing is."""
    row, column = split_dims(node)
    reduced = [(names_of(op.input), op.reduced) for op in row_reductions(node)]
    if not reduced or any(each != ((row, column), (column,)) for each in reduced):
        return f"it reduces other values than rows over {column}, or nothing"
    for load in (load for op in _ops(node, NodeOp) for load in loads(op)):
        if {row, column} <= {*names_of(load.tile)}:
            return (
                f"it loads {called(load.tile)}, which Triton would "
                "lay out by rows and pass between the blocks"
            )
    return None


def row_reductions(node: SpatialOp) -> list[ReduceOp]:
    """Return the reductions of a kernel."""
    return _ops(node, ReduceOp)


def _is_plain(product: ContractOp) -> bool:
    """Whether both operands of a product are loaded, matrices of f16 or bf16."""
    roles, names = product.roles, names_of(product.result)
    return (
        [len(dims) for dims in roles] == [0, 1, 1, 1]
        and names == (*roles[1], *roles[2])
        and all(isinstance(value, BlockArgument) for value in product.operands)
        and isinstance(element_type_of(product.lhs), Float16Type | BFloat16Type)
    )


def _ops(node: SpatialOp, kind: type[OpT]) -> list[OpT]:
    """Return the ops of a kind in a node, itself included."""
    return [op for op in node.walk() if isinstance(op, kind)]
