"""
`mask-copies`: the dimensions along which a copy of a kernel is masked.

The last tile of a dimension may be short, and a block may be larger than its tile: the
loads or stores of a copy are then masked along that dimension. Takes functions at the
schedule or the dataflow level, with copies, blocks and programs. A copy without short
tiles gets an empty mask. Existing masks stay; one without a required dimension is an
error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from comet.dialects.compound.dims import names_of
from comet.dialects.errors import OpError
from comet.dialects.schedule import CopyOp
from comet.passes.analysis.grid import grid_nodes
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass
from comet.passes.triton.map_grid import map_grids
from comet.passes.triton.pad_blocks import pad_blocks
from comet.passes.triton.slices import kernel_slices


@dataclass(frozen=True)
class MaskCopiesPass(FunctionPass):
    """Say along which dimensions copies are masked."""

    name = "mask-copies"

    LEVELS = (IRLevel.SCHEDULE, IRLevel.DATAFLOW)
    TAKES_COPIES = True

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        pad_blocks(function)
        map_grids(function)
        mask_copies(function)


def mask_copies(function: FuncOp) -> None:
    """Write the masks of all copies in `function` that have none."""
    for grid in grid_nodes(function):
        slices = kernel_slices(grid)
        for op in grid.walk():
            if isinstance(op, CopyOp):
                node_slices = slices[op.parent_op()]
                short = [
                    dim for dim in names_of(op.result) if not node_slices[dim].exact
                ]
                _mask(op, short)


def _mask(op: CopyOp, short: Sequence[str]) -> None:
    """Write the mask of a copy; raise PassFailedException if one is too small."""
    if op.mask is None:
        op.mask = ArrayAttr(map(StringAttr, short))
    for dim in short:
        if dim not in op.masked:
            raise OpError(
                op,
                f"mask-copies: the tile {op.result.type} may end before its block does "
                f"along {dim}, which the mask of its schedule.copy lacks; add it, or "
                "leave the mask out",
            )
