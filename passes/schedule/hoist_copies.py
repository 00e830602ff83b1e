"""
`hoist-copies`: loop-invariant copies of tile trees come before their loops.

Loop-invariant code motion, for copies. Takes functions at the schedule or the dataflow
level with copies in their nodes. A loop-invariant copy moves before the loop; a node is
split if the copy must be between its loops. Equal copies at one position become one.
Stores are not hoisted, and neither are loads after an inner loop: hoisted before the
outer loop, such a tile would fill registers while the inner loop runs.

The loop over the tiles of a persistent program has no op. So the copy of a stationary
operand, which all tiles read (`persist-programs`), is marked `resident` instead;
`lower-to-triton` places it before that loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from comet.cost.gpu.hoisting import loops_around, same_in_all_tiles
from comet.dialects.compound import ContractOp
from comet.dialects.compound.dims import names_of
from comet.dialects.schedule import CopyOp, SpatialOp, TemporalOp, YieldOp
from comet.dialects.schedule.late_loads import is_late
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass
from comet.passes.schedule.split_loops import split_loops


@dataclass(frozen=True)
class HoistCopiesPass(FunctionPass):
    """Hoist loop-invariant copies out of their loops."""

    name = "hoist-copies"

    LEVELS = (IRLevel.SCHEDULE, IRLevel.DATAFLOW)
    TAKES_COPIES = True

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        hoist(function)
        for copy in plan_stationary(function):
            copy.resident = UnitAttr()


@dataclass(frozen=True)
class Hoist:
    """A copy, and the position before a loop to which it can move."""

    copy: CopyOp
    node: TemporalOp
    depth: int
    """The number of loops of the node around that position."""


def hoist(function: FuncOp) -> None:
    """Move all loop-invariant copies of `function` before their loops."""
    hoists = plan_hoists(function)
    heads: dict[tuple[TemporalOp, int], TemporalOp] = {}
    for node, depth in sorted(
        {(planned.node, planned.depth) for planned in hoists}, key=lambda key: -key[1]
    ):
        heads[node, depth] = split_loops(node, depth) if depth else node
    moved: dict[tuple[TemporalOp, SSAValue, Attribute, Attribute | None], CopyOp] = {}
    for planned in hoists:
        head = heads[planned.node, planned.depth]
        chain = _chain_to(head, planned.copy)
        source = head.ins[chain[-1].index]
        key = head, source, planned.copy.result.type, planned.copy.pad
        if key not in moved:
            moved[key] = planned.copy.clone({planned.copy.source: source})
            Rewriter.insert_op(moved[key], InsertPoint.before(head))
        _replace(planned.copy, moved[key].result, chain)


def plan_hoists(function: FuncOp) -> tuple[Hoist, ...]:
    """Return the copies of `function` that are loop-invariant, in order."""
    copies = [op for op in function.walk() if isinstance(op, CopyOp)]
    found = (plan_hoist(copy) for copy in copies)
    return tuple(planned for planned in found if planned is not None)


def plan_hoist(copy: CopyOp) -> Hoist | None:
    """Return the outermost position that a copy can move to, None if it stays."""
    if any(isinstance(use.operation, YieldOp) for use in copy.result.uses):
        return None
    nodes = [_node_of(tile) for tile in source_arguments(copy)]
    loops = [
        (node, *each) for node in reversed(nodes) for each in enumerate(node.loops)
    ]
    trips = [(loop.dim, loop.factor) for _, _, loop in loops]
    around = loops_around(names_of(copy.result), trips, late=is_late(copy))
    for (node, index, loop), changes in zip(loops, around, strict=True):
        if loop.factor > 1 and not changes:
            before = node.loops.data[:index]
            repeats = any(outer.factor > 1 for outer in before)
            return Hoist(copy, node, index if repeats else 0)
    return Hoist(copy, nodes[-1], 0) if nodes and is_stationary(copy) else None


def source_arguments(copy: CopyOp) -> Iterator[BlockArgument]:
    """
    Yield the block arguments through which a copy's source enters, innermost first.
    """
    value = copy.source
    while isinstance(value, BlockArgument):
        node = value.block.parent_op()
        if not isinstance(node, TemporalOp) or value.index >= len(node.ins):
            return
        yield value
        value = node.ins[value.index]


def _node_of(tile: BlockArgument) -> TemporalOp:
    node = tile.block.parent_op()
    assert isinstance(node, TemporalOp)
    return node


def _chain_to(head: TemporalOp, copy: CopyOp) -> list[BlockArgument]:
    """Return the source arguments of a copy from its own node out to `head`."""
    chain: list[BlockArgument] = []
    for tile in source_arguments(copy):
        chain.append(tile)
        if _node_of(tile) is head:
            break
    return chain


def _replace(copy: CopyOp, value: SSAValue, chain: Sequence[BlockArgument]) -> None:
    """Replace a copy by a hoisted one, `value`, which enters through the same nodes."""
    for tile in reversed(chain):
        value = _operand(_node_of(tile), value)
    copy.result.replace_all_uses_with(value)
    Rewriter.erase_op(copy)
    for tile in chain:
        if not tile.uses:
            _node_of(tile).drop_operand(tile.index)


def _operand(node: TemporalOp, value: SSAValue) -> BlockArgument:
    """Make `value` an unsliced operand of a node; return its block argument."""
    for operand, tile in zip(node.ins, node.tiles, strict=True):
        if operand is value and tile.type == value.type:
            assert isinstance(tile, BlockArgument)
            return tile
    tile = node.body.block.insert_arg(value.type, len(node.ins))
    tile.name_hint = value.name_hint
    node.set_operands((*node.ins, value), node.with_args)
    return tile


def plan_stationary(function: FuncOp) -> tuple[CopyOp, ...]:
    """Return the copies in nodes on the grid of operands that programs keep."""
    copies = (op for op in function.walk() if isinstance(op, CopyOp))
    return tuple(
        op
        for op in copies
        if is_stationary(op) and isinstance(op.parent_op(), SpatialOp)
    )


def is_stationary(copy: CopyOp) -> bool:
    """
    Return whether a copy can come before the loop over the tiles of a program.

    It can if it copies an argument of the kernel that only products read, if the copy
    is equal for all tiles and all iterations, and if the launch has `resident`.
    """
    tile, dims = copy.source, names_of(copy.source)
    for argument in source_arguments(copy):
        node = _node_of(argument)
        if any(loop.factor > 1 and loop.dim in dims for loop in node.loops):
            return False
        tile = node.ins[argument.index]
    grid = tile.owner.parent_op() if isinstance(tile, BlockArgument) else None
    if not isinstance(grid, SpatialOp) or grid.launch is None:
        return False
    return grid.launch.resident and tile in stationary_tiles(grid)


def stationary_tiles(grid: SpatialOp) -> tuple[SSAValue, ...]:
    """
    Return the tiles of a node on the launch grid that its programs can load once.

    These are tiles of arguments of the kernel that are equal for all tiles of the grid,
    and that only products read. The node may have copies already, or not.
    """
    tiles = [(loop.dim, loop.factor) for loop in grid.loops]
    return tuple(
        tile
        for tile, operand in zip(grid.tiles, grid.ins, strict=True)
        if isinstance(operand, BlockArgument)
        and bool(same_in_all_tiles(names_of(tile), tiles))
        and _feeds_products(tile)
    )


def _feeds_products(value: SSAValue) -> bool:
    """Whether only products read a value, directly or through copies and nodes."""
    return all(_passes_to_products(use) for use in value.uses)


def _passes_to_products(use: Use) -> bool:
    """Whether an op is a product, or passes an operand to products only."""
    match use.operation:
        case NodeOp() as node:
            is_tile = use.index < len(node.tiles)  # else it is an iter_arg
            return is_tile and _feeds_products(node.tiles[use.index])
        case CopyOp() as copy:
            return _feeds_products(copy.result)
        case op:
            return isinstance(op, ContractOp)
