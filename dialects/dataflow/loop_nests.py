"""
Perfect nests of loops that a GPU kernel can run as one loop.

Triton's software pipeline loads ahead in the innermost loop only, so that a nest fills
it again for each iteration of its outer loops. One loop over all of them fills it once.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TypeAlias

from comet.dialects.compound import ContractOp
from comet.dialects.compound.dims import names_of
from comet.dialects.dataflow import KernelOp
from comet.dialects.dataflow.rank_loops import destination_dims, source_dims
from comet.dialects.parents import enclosing
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.transfers import loads, transfers

Nest: TypeAlias = tuple[TemporalOp, ...]
"""Temporal nodes, each the only op in the body of the one before it."""


def coalescible_nests(grid: SpatialOp) -> Iterator[Nest]:
    """
    Yield the largest nests of a kernel that can be one loop, of two nodes or more.

    They sum products of tiles that are loaded anew in each iteration. Loops over the
    ranks that send or receive shards stay: programs wait between them. So do all loops
    of kernels whose programs are groups, which may be loops over tiles of a program.
    """
    nodes = [op for op in grid.walk() if op is not grid]
    if any(isinstance(op, SpatialOp) for op in nodes):
        return
    over_ranks = _rank_dims(grid)
    for node in nodes:
        if isinstance(node, TemporalOp) and _sums_products(node):
            nest = _nest_around(node, over_ranks)
            if len(nest) > 1:
                yield nest


def _rank_dims(grid: SpatialOp) -> AbstractSet[str]:
    """Return the dimensions whose loop runs over ranks that send or receive shards."""
    kernel = enclosing(grid, KernelOp)
    if kernel is None:
        return frozenset()
    return {*source_dims(kernel, grid), *destination_dims(kernel, grid)}


def _sums_products(node: TemporalOp) -> bool:
    """Whether a loop sums products of the body, with no loop inside."""
    ops = node.body.block.ops
    return (
        _only_sums(node)
        and any(isinstance(op, ContractOp) for op in ops)
        and not any(isinstance(op, TemporalOp) for op in ops)
    )


def _only_sums(node: TemporalOp) -> bool:
    """Whether a loop runs all its iterations, and does nothing but add up results."""
    given = node.properties.keys() - {"operandSegmentSizes"}
    operands = (*node.iter_args, *node.with_args)
    only_loops = given <= {"loops", "combine", "node_name"} and not operands
    return only_loops and {*node.combiners} == {Combiner.ADD}


def _nest_around(node: TemporalOp, over_ranks: AbstractSet[str]) -> Nest:
    """Return the largest nest with `node` as its innermost loop, outermost first."""
    nest: Nest = (node,)
    changing = _changing(node)
    looped = node.factors.keys()
    while isinstance(outer := nest[0].parent_op(), TemporalOp):
        dims = outer.factors.keys()
        # A tile that a loop does not change is loaded before that loop.
        if not changing >= looped | dims or dims & looped:
            break
        if (looped | dims) & over_ranks:
            break
        if not _is_perfect(outer, nest[0]):
            break
        nest, looped = (outer, *nest), looped | dims
    return nest


def _changing(node: TemporalOp) -> AbstractSet[str]:
    """Return the dimensions that all tiles have that a node loads."""
    dims = [frozenset(names_of(border.tile)) for border in loads(node)]
    return frozenset[str]().union(*dims).intersection(*dims)


def _is_perfect(outer: TemporalOp, inner: TemporalOp) -> bool:
    """Whether a loop does nothing but run another loop with views of its operands."""
    tiles = {*outer.tiles}
    return (
        _only_sums(outer)
        and len(outer.body.block.ops) == 2
        and tuple(outer.yielded) == tuple(inner.outs)
        and all(value in tiles for value in inner.ins)
        and not any(transfers(outer))
    )
