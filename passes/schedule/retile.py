"""Recomputes the types in a tile tree after its loops have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import Rewriter

from comet.dialects.collective import (
    AllGatherOp,
    AllToAllOp,
    CollectiveOp,
    GatherOp,
    ReduceScatterOp,
    ScatterOp,
)
from comet.dialects.compound import FoldOp, PadOp, RenameOp
from comet.dialects.compound.dims import (
    ceil_div,
    extents_of,
    joined_extents,
    with_extents,
)
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.analysis import assign_combiners
from comet.dialects.schedule.attributes import LoopAttr, power_of_two
from comet.dialects.schedule.node import NodeOp, repeats_programs
from comet.passes.analysis.levels import compute_block


def aligned_tile(extent: int, factor: int, turns: int = 1) -> int:
    """
    Return the tile of a kernel: a power of two if that keeps the factor, or even.

    Programs that compute `turns` tiles one after another have as many powers of two.
    """
    tile = ceil_div(extent, factor)
    aligned = turns * power_of_two(ceil_div(tile, turns))
    return aligned if factor > 1 and ceil_div(extent, aligned) == factor else tile


def set_loops(node: NodeOp, loops: Sequence[LoopAttr]) -> None:
    """Replace the loops of `node`; call `retile` afterwards to update the types."""
    node.properties["loops"] = ArrayAttr(loops)


def retile(func: FuncOp) -> None:
    """
    Recompute all types and combiners of the tile trees in `func` from their loops.

    Tiles are even; in kernels they are powers of two if that keeps the factor. Ops
    outside of the trees are not changed. Raises VerifyException if the body of a node
    cannot be computed tile by tile along a loop.
    """
    for op in compute_block(func).ops:
        if isinstance(op, NodeOp):
            retile_node(op)


def retile_node(op: NodeOp) -> None:
    """Recompute the types and combiners of one tile tree, like `retile`."""
    block = op.parent
    assert block is not None
    # Only the results of a node without operands have its extents.
    pads = (other.result for other in block.ops if isinstance(other, PadOp))
    tensors = (arg for arg in block.args if isinstance(arg.type, TensorType))
    scope = joined_extents((*tensors, *pads) if op.operands else op.results)
    _retile_node(op, scope)
    assign_combiners(op)


def _retile_block(block: Block) -> None:
    """Recompute the types of all results in `block`, top down."""
    scope = joined_extents(block.args)
    for op in block.ops:
        if isinstance(op, NodeOp):
            _retile_node(op, scope)
        elif isinstance(op, CollectiveOp):
            _retype(op.results, scope | _collective_extents(op))
        elif isinstance(op, RenameOp):
            names = op.renaming
            _retype(op.results, {names[d]: e for d, e in extents_of(op.input).items()})
        else:
            _retype(op.results, scope | joined_extents(op.operands))
            if isinstance(op, FoldOp):
                _retile_fold(op)


def _retile_node(op: NodeOp, scope: Mapping[str, int]) -> None:
    extents = dict(scope) | joined_extents(value for value, _ in op.sliced)
    tiles = extents | _tiles(op, extents)
    for value, argument in op.sliced:
        fitting = {dim: tiles[dim] for dim in extents_of(value)}
        _retype((argument,), fitting)
    _retile_block(op.body.block)
    if isinstance(op, SpatialOp) and op.merge is not None:
        for argument in op.merge.block.args:
            _retype((argument,), tiles)
        _retile_block(op.merge.block)
    _retype(op.outs, joined_extents(op.yielded) | extents)


def _tiles(op: NodeOp, extents: Mapping[str, int]) -> dict[str, int]:
    """Return the tile of each dimension of the loops of a node."""
    cuts = [op.last_cut(dim, extents[dim]) for dim in op.factors]
    if op.on_mesh or not op.in_kernel:
        return {last.dim: ceil_div(last.extent, last.factor) for last in cuts}
    turns = _turns(op) if op is op.outermost else {}
    return {
        last.dim: aligned_tile(last.extent, last.factor, turns.get(last.dim, 1))
        for last in cuts
    }


def _turns(grid: NodeOp) -> dict[str, int]:
    """Return how many tiles each program of a group computes, along dimensions."""
    return {
        dim: factor
        for node in grid.walk()
        if isinstance(node, NodeOp) and repeats_programs(node)
        for dim, factor in node.factors.items()
    }


def _retile_fold(op: FoldOp) -> None:
    outer = (*op.ins, *op.init)
    for value, argument in zip(outer, op.step.block.args, strict=True):
        _retype((argument,), extents_of(value))
    for value, argument in zip((*op.init, *op.init), op.merge.block.args, strict=True):
        _retype((argument,), extents_of(value))
    _retile_block(op.step.block)
    _retile_block(op.merge.block)


def _collective_extents(op: CollectiveOp) -> dict[str, int]:
    """Return the extents of the result of a collective."""
    extents, size = extents_of(op.input), op.group_size
    if isinstance(op, AllGatherOp) and (value := unscattered(op)) is not None:
        return extents_of(value)
    if isinstance(op, AllGatherOp | GatherOp):
        extents[op.dim.data] = extents.get(op.dim.data, 1) * size
    elif isinstance(op, ReduceScatterOp | ScatterOp):
        extents[op.dim.data] = ceil_div(extents.get(op.dim.data, 1), size)
    elif isinstance(op, AllToAllOp):
        extents[op.split.data] = ceil_div(extents[op.split.data], size)
        extents[op.concat.data] *= size
    return extents


def unscattered(op: AllGatherOp) -> SSAValue | None:
    """Return the operand of a reduce-scatter that `op` gathers again, else None."""
    before = op.input.owner
    if not isinstance(before, ReduceScatterOp):
        return None
    same = before.dim == op.dim and before.axis_names == op.axis_names
    return before.input if same else None


def _retype(values: Sequence[SSAValue], extents: Mapping[str, int]) -> None:
    for value in values:
        if any(extents.get(dim, n) != n for dim, n in extents_of(value).items()):
            fitting = with_extents(value.type, extents)
            Rewriter.replace_value_with_new_type(value, fitting)
