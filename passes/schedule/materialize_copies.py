"""
`materialize-copies`: the transfers of tile trees -> copies inside their nodes.

Takes functions at the schedule or the dataflow level whose factors are final. A load of
a node becomes a copy at the start of its body; a late load, which an inner loop does
not need, comes before the first op that reads it. A store becomes a copy at the end of
the body, or after the node if its loops combine the result. Afterwards no value changes
its level at a border. Rejects trees for accelerators, and partial results that are
merged at another memory level than that of their computation.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.blocks import terminator_of
from comet.dialects.compound import ReduceKind, ReduceOp
from comet.dialects.compound.dims import names_of, with_level
from comet.dialects.errors import OpError
from comet.dialects.schedule import CopyOp, SpatialOp, TemporalOp
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.late_loads import late_loads
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import borders, loads, stores
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass
from comet.passes.schedule.split_loops import split_loops


@dataclass(frozen=True)
class MaterializeCopiesPass(FunctionPass):
    """Make copies of the transfers at the borders of nodes."""

    name = "materialize-copies"

    LEVELS = (IRLevel.SCHEDULE, IRLevel.DATAFLOW)
    TAKES_COPIES = True

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        check_roots(function)
        materialize(function)


def check_roots(function: FuncOp) -> None:
    """Raise PassFailedException unless all trees are on launch grids, for GPUs."""
    for op in _nodes(function):
        if not isinstance(op.parent_op(), NodeOp) and not (
            isinstance(op, SpatialOp) and not op.on_mesh
        ):
            raise OpError(
                op,
                f"materialize-copies: {op.name} is no node on a launch grid; copies "
                "are for GPUs, accelerators transfer at the borders of nodes",
            )


def materialize(function: FuncOp) -> None:
    """Make copies of all transfers in the tile trees of `function`."""
    for node in _nodes(function):
        if isinstance(node, TemporalOp):
            for depth in sorted(_depths_between_loops(node), reverse=True):
                split_loops(node, depth)
    for node in _nodes(function):
        _copy_in(node)
        _copy_out(node)


def has_transfers(function: FuncOp) -> bool:
    """Whether a border of a node still transfers a value, without a copy."""
    moved = (
        border.is_transfer for node in _nodes(function) for border in borders(node)
    )
    return any(moved)


def _nodes(function: FuncOp) -> list[NodeOp]:
    return [op for op in function.walk() if isinstance(op, NodeOp)]


def _depths_between_loops(node: TemporalOp) -> set[int]:
    """Return the depths of `store_depth` that are inside some loops of `node` only."""
    depths = {store_depth(node, store.outer) for store in stores(node)}
    return depths - {0, len(node.loops)}


def _combiner(node: NodeOp, result: SSAValue) -> Combiner:
    assert isinstance(result, OpResult)
    return node.combiners[result.index]


def store_depth(node: TemporalOp, result: SSAValue) -> int:
    """
    Return the number of loops of a node that are around the copy of a result.

    The copy is inside the loops that concatenate tiles of the result, and after those
    that combine them.
    """
    if _combiner(node, result) is Combiner.FOLD:
        return 0
    loops = [(i, loop.dim) for i, loop in enumerate(node.loops) if loop.factor > 1]
    concatenating = [i for i, dim in loops if dim in names_of(result)]
    combining = [i for i, dim in loops if dim not in names_of(result)]
    depth = concatenating[-1] + 1 if concatenating else 0
    return depth if combining and combining[0] >= depth else len(node.loops)


def padding_for(tile: SSAValue) -> ReduceKind | None:
    """Return the reduction whose neutral element pads a tile, None for zeros."""
    users = [use.operation for use in tile.uses]
    if users and all(
        isinstance(op, ReduceOp) and op.kind.data is ReduceKind.MAX for op in users
    ):
        return ReduceKind.MAX
    return None


def _copied(value: SSAValue, level: str, pad: ReduceKind | None = None) -> CopyOp:
    """Return a copy of `value` that all its uses read; the caller inserts it."""
    copy = CopyOp(value, level, pad)
    value.replace_uses_with_if(copy.result, lambda use: use.operation is not copy)
    return copy


def _copy_in(node: NodeOp) -> None:
    """
    Copy the loads of `node` at the start of its body, late ones before their first use,
    and its init args before it.
    """
    early, late = list[CopyOp](), late_loads(node)
    for load in list(loads(node)):
        pad = padding_for(load.tile)
        view = with_level(load.tile.type, load.outer_level)
        view = Rewriter.replace_value_with_new_type(load.tile, view)
        copy = _copied(view, load.tile_level, pad)
        if (first := late.get(load.tile)) is None:
            early.append(copy)
        else:
            Rewriter.insert_op(copy, InsertPoint.before(first))
    Rewriter.insert_op(early, InsertPoint.at_start(node.body.block))
    starts = [border for border in borders(node) if border.crossing == "iter_arg"]
    for index, start in enumerate(starts, len(node.ins)):
        if start.is_transfer:
            copy = CopyOp(start.outer, start.tile_level)
            Rewriter.insert_op(copy, InsertPoint.before(node))
            node.operands[index] = copy.result


def _copy_out(node: NodeOp) -> None:
    """Copy the stores of `node` at the end of its body, or after its loops."""
    after: list[CopyOp] = []
    for store in list(stores(node)):
        if isinstance(node, TemporalOp) and not store_depth(node, store.outer):
            result = with_level(store.outer.type, store.tile_level)
            result = Rewriter.replace_value_with_new_type(store.outer, result)
            after.append(_copied(result, store.outer_level))
            continue
        if _combiner(node, store.outer) is Combiner.FOLD:
            raise OpError(
                node,
                f"materialize-copies: {node.name} merges {store.outer.type} at another "
                f"level than it is made, {store.tile_level}; split the dimension in a "
                "temporal loop instead",
            )
        assert isinstance(store.outer, OpResult)
        _copy_before_yield(node, store.outer.index, store.outer_level)
    Rewriter.insert_op(after, InsertPoint.after(node))


def _copy_before_yield(node: NodeOp, index: int, level: str) -> None:
    terminator = terminator_of(node.body.block)
    copy = CopyOp(terminator.operands[index], level)
    Rewriter.insert_op(copy, InsertPoint.before(terminator))
    terminator.operands[index] = copy.result
