"""The values that persistent programs keep in registers from tile to tile."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from comet.cost.from_ir.products import tile_bytes
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks
from comet.cost.reals import Real, total
from comet.dialects.compound import IndexOp
from comet.dialects.compound.dims import element_type_of
from comet.dialects.compound.rename import viewed
from comet.dialects.schedule import SpatialOp


def kept_bytes(node: SpatialOp, summary: KernelSummary, blocks: Blocks) -> Real:
    """
    Return the bytes of registers of a program for what no tile changes.

    These are positions of 64 bits, with which labels are compared: LLVM computes them
    before the loop over tiles. Others differ by immediates. The probabilities of labels
    in rows of 32,768, two rows a tile, take 218 registers and in a loop 256, with 264
    bytes spilled (Triton 3.9 for gfx942, 8 wavefronts; the estimates are 220 and 364).
    """
    tiles = map(tile_bytes, _long_positions(node))
    return total(
        tile.per_tile(blocks) * (1 - summary.is_looped(tile.dims, blocks))
        for tile in tiles
    )


def _long_positions(node: SpatialOp) -> Iterator[SSAValue]:
    """Yield the operands of a kernel that are positions of 64 bits."""
    for value in dict.fromkeys(map(viewed, node.ins)):
        if isinstance(value.owner, IndexOp) and element_type_of(value) == i64:
            yield value
