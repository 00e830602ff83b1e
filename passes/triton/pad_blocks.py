"""
`pad-blocks`: the power-of-two block that each tile of a kernel is padded to.

Triton's blocks have power-of-two extents, and `tl.dot` takes none below 16. A tile
becomes the smallest block with room for it. Takes functions at the schedule or the
dataflow level; the grid node of a kernel gets the blocks of all tiles on the chip.
Existing blocks stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import ContractOp
from comet.dialects.compound.dims import (
    element_type_of,
    extents_of,
    joined_extents,
    level_of,
    names_of,
)
from comet.dialects.dataflow import ReadTileOp
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import BlocksAttr, power_of_two
from comet.dialects.schedule.node import NodeOp
from comet.dialects.tl.math import MIN_DOT_EXTENT
from comet.passes.analysis.grid import grid_nodes
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass


@dataclass(frozen=True)
class PadBlocksPass(FunctionPass):
    """Pad the tiles of kernels to powers of two."""

    name = "pad-blocks"

    LEVELS = (IRLevel.SCHEDULE, IRLevel.DATAFLOW)
    TAKES_COPIES = True

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        pad_blocks(function)


def pad_blocks(function: FuncOp) -> None:
    """Write the blocks of every kernel in `function` that has none."""
    for node in grid_nodes(function):
        if node.blocks is None:
            node.blocks = BlocksAttr(block_sizes(node))


def block_sizes(node: SpatialOp) -> dict[tuple[str, int], int]:
    """Return the block of each dimension and tile extent in a grid node."""
    memory, extents = memory_level(node), kernel_extents(node)
    products = [op for op in node.walk() if isinstance(op, ContractOp)]
    # A dimension that one product batches has blocks of one element in all products.
    for dim in (dim for op in products for dim in op.batched):
        extents.pop(dim, None)
    tiles: dict[tuple[str, int], int] = {}
    minimum: dict[tuple[str, int], int] = {}
    for op in node.walk():
        for value in _tiles_of(op):
            if level_of(value) != memory:
                tiles |= {
                    key: power_of_two(key[1]) for key in extents_of(value).items()
                }
        if isinstance(op, ContractOp):
            minimum |= dict.fromkeys(_dot_tiles(op, extents), MIN_DOT_EXTENT)
    return {key: max(size, minimum.get(key, 1)) for key, size in tiles.items()}


def memory_level(node: SpatialOp) -> str | None:
    """Return the level of device memory: that of the results of a grid node."""
    return level_of(node.outs[0])


def kernel_extents(node: SpatialOp) -> dict[str, int]:
    """
    Return the extent of each dimension of the operands and results of a grid node.

    If programs exchange, the dimension along which they gather is included.
    """
    gathered: dict[str, int] = {}
    for op in node.walk() if node.with_args else ():
        if isinstance(op, ReadTileOp):
            dim = op.channel_type.gather
            gathered[dim] = extents_of(op.result)[dim]
    return gathered | joined_extents((*node.ins, *node.outs))


def _tiles_of(op: Operation) -> tuple[SSAValue, ...]:
    """The values that an operation defines, or takes in at its border."""
    return op.tiles if isinstance(op, NodeOp) else tuple(op.results)


def _dot_tiles(op: ContractOp, extents: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """
    Yield the dimensions and extents of the matrices that a contraction multiplies.

    Dimensions of one element are left out, except one: the row or the column of a
    vector whose whole extent (in `extents`) is one element, too. Yields nothing unless
    the contraction is a product of two matrices.
    """
    lhs, rhs, out = (
        {dim for dim, extent in extents_of(value).items() if extent > 1}
        for value in (op.lhs, op.rhs, op.result)
    )
    rows = lhs - rhs or _single(op.lhs, op.rhs, extents)
    columns = rhs - lhs or _single(op.rhs, op.lhs, extents)
    summed = (lhs & rhs) - out
    if (len(rows), len(columns), len(summed)) == (1, 1, 1) and not lhs & rhs & out:
        sizes = extents_of(op.lhs) | extents_of(op.rhs)
        yield from ((dim, sizes[dim]) for dim in rows | columns | summed)


def _single(value: SSAValue, other: SSAValue, extents: Mapping[str, int]) -> set[str]:
    """
    Return the dimension of one element along which padding makes a vector a matrix.

    With a padded vector the contraction is a dot, whose loads Triton pipelines. Not for
    f32: its products are computed one by one, so that padded rows cost as much as
    others.
    """
    if isinstance(element_type_of(value), Float32Type):
        return set()
    dims = [dim for dim in names_of(value) if dim not in names_of(other)]
    return set([dim for dim in dims if extents.get(dim) == 1][-1:])
