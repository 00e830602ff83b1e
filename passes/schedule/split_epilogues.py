"""
`split-epilogues`: an epilogue becomes a loop over the subtiles of its tile.

The launch number `subtiles` of a kernel says into how many ranges of columns a tile is
divided after the loops of a program. The epilogue is computed for one range after
another: its loads, its functions and its stores. The loop is unrolled, because a
program cannot index accumulators, which are in registers, by a loop variable. Takes
functions at the dataflow level with launch numbers, before `materialize-copies`, as
prices and plans read the undivided tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Region, SSAValue
from xdsl.rewriter import Rewriter

from comet.dialects.blocks import copy_names
from comet.dialects.compound.dims import (
    extents_of,
    level_of,
    with_extents,
    with_level,
)
from comet.dialects.errors import OpError
from comet.dialects.schedule import SpatialOp, TemporalOp, YieldOp
from comet.dialects.schedule.attributes import Combiner, LoopAttr
from comet.dialects.schedule.epilogue import Epilogue, epilogue_of, undivided
from comet.passes.analysis.grid import grid_nodes
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass

SUFFIX = "_epilogue"
"""The end of the name of the loop, after the name of its kernel."""


@dataclass(frozen=True)
class SplitEpiloguesPass(FunctionPass):
    """Write the epilogues of kernels with several subtiles as unrolled loops."""

    name = "split-epilogues"

    LEVELS = (IRLevel.SCHEDULE, IRLevel.DATAFLOW)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        for node in grid_nodes(function):
            if node.launch is None or node.launch.subtiles <= 1:
                continue
            split_epilogue(node, node.launch.subtiles)


def split_epilogue(node: SpatialOp, subtiles: int) -> None:
    """
    Move the epilogue of a kernel to an unrolled loop.

    Raises PassFailedException if this number of subtiles cannot divide it.
    """
    if (reason := undivided(node, subtiles)) is not None:
        raise OpError(node, f"split-epilogues: @{node.node_name}: {reason}")
    epilogue = epilogue_of(node)
    assert epilogue is not None
    levels = dict(zip(node.yielded, map(level_of, node.outs), strict=True))
    types = [with_level(value.type, levels[value]) for value in epilogue.stored]
    read = (*epilogue.accumulators, *epilogue.loaded, *epilogue.whole)
    body, tiles = _body(epilogue, read, subtiles)
    loop = TemporalOp(
        [LoopAttr(epilogue.dim, subtiles)],
        [_in_memory(node, v) if v in epilogue.loaded else v for v in read],
        [],
        types,
        [Combiner.NONE] * len(types),
        Region(body),
    )
    loop.name_attr, loop.unroll = StringAttr(f"{node.node_name}{SUFFIX}"), UnitAttr()
    node.body.block.insert_op_before(loop, epilogue.end)
    copy_names(tiles, loop.outs)
    stored = dict(zip(tiles, loop.outs, strict=True))
    epilogue.end.operands = [stored.get(v, v) for v in epilogue.end.operands]


def _body(
    epilogue: Epilogue, read: Sequence[SSAValue], subtiles: int
) -> tuple[Block, tuple[SSAValue, ...]]:
    """Move the ops of an epilogue to a block for a subtile; return what it yields."""
    size = extents_of(epilogue.accumulators[0])[epilogue.dim] // subtiles
    extents = {epilogue.dim: size}
    block = Block(arg_types=[with_extents(value.type, extents) for value in read])
    copy_names(read, block.args)
    inside: dict[SSAValue, SSAValue] = dict(zip(read, block.args, strict=True))
    for op in epilogue.ops:
        op.detach()
        block.add_op(op)
        op.operands = [inside.get(value, value) for value in op.operands]
        (result,) = op.results
        type_ = with_extents(result.type, extents)
        inside[result] = Rewriter.replace_value_with_new_type(result, type_)
    tiles = tuple(inside[value] for value in epilogue.stored)
    block.add_op(YieldOp(*tiles))
    return block, tiles


def _in_memory(node: SpatialOp, tile: SSAValue) -> SSAValue:
    """Let a node leave a tile that it loads in memory; return the tile there."""
    assert isinstance(tile, BlockArgument)
    type_ = with_level(tile.type, level_of(node.ins[tile.index]))
    return Rewriter.replace_value_with_new_type(tile, type_)
