"""
`place-waits`: waits at the borders of kernels -> waits where programs wait.

Needs lowered channels, and nodes with copies. A wait of a kernel moves into each node
on the launch grid that loads the awaited value: before the loop over sources, or into
that loop if a source has several tiles, or to the start of the programs. There it takes
views and returns them for the loads. A node first waits for the stores of other
programs of the same rank. A wait does not move past a push, a stage or a signal;
`verify-sync` rejects loads that have no wait then. `place_sends` moves pushes, stages
and signals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from comet.cost.gpu.waiting import waits_in_loop
from comet.dialects.blocks import copy_names
from comet.dialects.compound.dims import names_of
from comet.dialects.compound.rename import viewed
from comet.dialects.dataflow import (
    KernelOp,
    PullOp,
    PushOp,
    ReadOp,
    SignalOp,
    StageOp,
    WaitOp,
)
from comet.dialects.dataflow.channel import input_of
from comet.dialects.dataflow.program import programs_in
from comet.dialects.dataflow.rank_loops import (
    destination_dims,
    source_dims,
    source_loops,
)
from comet.dialects.errors import OpError
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.levels import IRLevel
from comet.passes.dataflow.kernel_locals import local_waits
from comet.passes.dataflow.kernels import inside
from comet.passes.dataflow.place_sends import place_sends, plan_sends
from comet.passes.function_pass import FunctionPass
from comet.passes.schedule.hoist_copies import hoist
from comet.passes.schedule.materialize_copies import has_transfers, materialize
from comet.passes.schedule.split_loops import split_loops


@dataclass(frozen=True)
class PlaceWaitsPass(FunctionPass):
    """Move waits, pushes, stages and signals from kernels' borders into programs."""

    name = "place-waits"

    LEVELS = (IRLevel.DATAFLOW,)
    TAKES_COPIES = True

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        if has_borders(function) and has_transfers(function):
            raise OpError(
                function,
                f"place-waits: @{function.sym_name.data} moves tiles at the "
                "borders of nodes, which a wait inside would come after; run "
                "materialize-copies first",
            )
        place_waits(function)


@dataclass(frozen=True)
class PlacedWait:
    """A wait in a node, after the first `depth` of its loops."""

    waits: tuple[WaitOp, ...]
    """The waits at the border of the kernel: all are for the same flags."""
    node: NodeOp
    depth: int
    operands: tuple[int, ...]
    """The operands of the node that it takes."""
    own: bool = False


def place_waits(function: FuncOp) -> None:
    """Move the waits of all kernels of `function` to where programs wait."""
    for program in programs_in(function):
        for kernel in program.kernels():
            plan = [placed for node in kernel.nodes for placed in plan_waits(node)]
            # Splitting a node leaves its outer loops where they are.
            for placed in sorted(plan, key=lambda placed: -placed.depth):
                _place(placed)
            for wait in dict.fromkeys(wait for placed in plan for wait in placed.waits):
                Rewriter.erase_op(wait)
            for node in kernel.nodes:
                place_sends(plan_sends(node))


def place_in_nodes(function: FuncOp) -> None:
    """Move copies, waits, stores and signals from borders into nodes."""
    if has_transfers(function):
        materialize(function)
        hoist(function)
    place_waits(function)


def has_borders(function: FuncOp) -> bool:
    """Whether anything that acts in nodes is still at the border of a kernel."""
    return any(map(is_at_border, function.walk()))


def is_at_border(op: Operation) -> bool:
    """
    Whether an op is a wait, a store to a channel or a signal at the border of a kernel.

    The signal of an input in symmetric memory does not count: it stays there.
    """
    return (
        isinstance(op, WaitOp | PushOp | StageOp | SignalOp)
        and isinstance(op.parent_op(), KernelOp)
        and not (isinstance(op, SignalOp) and input_of(op.channel) is not None)
    )


def plan_waits(node: SpatialOp) -> tuple[PlacedWait, ...]:
    """
    Return the waits of a node on the launch grid, in their order.

    Waits for the same flags, at one position, are one.
    """
    found: dict[tuple[object, ...], PlacedWait] = {}
    for placed in (*_waits_for_nodes(node), *_source_waits(node)):
        (wait,) = placed.waits
        orders = (wait.semantics, wait.scope, wait.arrivals, placed.own)
        key = (placed.node, placed.depth, wait.flags, wait.epoch, *orders)
        before = found.get(key, replace(placed, waits=(), operands=()))
        operands = dict.fromkeys((*before.operands, *placed.operands))
        waits = (*before.waits, wait)
        found[key] = replace(before, waits=waits, operands=tuple(operands))
    return tuple(found.values())


def _waits_for_nodes(node: SpatialOp) -> Iterator[PlacedWait]:
    """Yield the waits for results of other nodes of the kernel."""
    waits = local_waits(node)
    for index, value in enumerate(node.ins):
        if value in waits and _can_move(waits[value], node):
            yield PlacedWait((waits[value],), node, len(node.loops), (index,), own=True)


def _source_waits(node: SpatialOp) -> Iterator[PlacedWait]:
    """Yield the waits for messages, for each operand of a node."""
    kernel = node.parent
    assert kernel is not None
    waits = [op for op in kernel.ops if isinstance(op, WaitOp)]
    for index, value in enumerate(node.ins):
        read = viewed(value).owner
        if not isinstance(read, ReadOp | PullOp):
            continue
        for wait in waits:
            if (
                wait.channel is read.channel
                and wait.is_before_in_block(read)
                and _can_move(wait, node)
            ):
                yield from _places(wait, read, node, index)


def _can_move(wait: WaitOp, node: SpatialOp) -> bool:
    """Whether a wait with flags is before a node, with no send between."""
    op = wait.next_op if wait.flags is not None else None
    while op is not None and op is not node:
        if isinstance(op, PushOp | StageOp | SignalOp):
            return False
        op = op.next_op
    return op is node


def _places(
    wait: WaitOp, read: ReadOp | PullOp, node: SpatialOp, index: int
) -> Iterator[PlacedWait]:
    """Yield where programs of a node wait for what an operand of it reads."""
    kernel, names = node.parent_op(), names_of(node.ins[index])
    assert isinstance(kernel, KernelOp)
    assert wait.flags is not None
    if len(names) != len(names_of(read.result)):  # no memory to wait for, but parts
        return
    dim = names[names_of(read.result).index(read.channel_type.gather)]
    sources = source_dims(kernel, node)
    at_start = PlacedWait((wait,), node, len(node.loops), (index,))
    on_grid = dim in (*sources, *destination_dims(kernel, node))
    if (on_grid and node.factors.get(dim, 1) > 1) or dim not in sources:
        yield at_start
        return
    loops = list(source_loops(node.tiles[index], dim, wait.flags_type.sources))
    for loop in loops:
        depth = loop.depth + bool(waits_in_loop(loop.trips_inside))
        yield PlacedWait((wait,), loop.node, depth, (loop.operand,))
    if not loops:
        yield at_start


def _place(placed: PlacedWait) -> None:
    """Insert a wait in its node, or before it if no loop around it repeats."""
    node, depth = placed.node, placed.depth
    around = [loop.factor > 1 for loop in node.loops.data[:depth]]
    inner = [loop.factor > 1 for loop in node.loops.data[depth:]]
    if isinstance(node, TemporalOp) and not any(around):
        wait = _insert_before(placed)
        for index, value in zip(placed.operands, wait.awaited, strict=True):
            node.operands[index] = value
        return
    if isinstance(node, TemporalOp) and any(inner):
        split_loops(node, depth)
    _insert_at_start(placed)


def _insert_before(placed: PlacedWait) -> WaitOp:
    """Insert a wait before its node, for the node's operands."""
    block = placed.node.parent
    assert block is not None
    views = [placed.node.operands[index] for index in placed.operands]
    wait = _wait_in(block, placed, views)
    Rewriter.insert_op(wait, InsertPoint.before(placed.node))
    return wait


def _insert_at_start(placed: PlacedWait) -> None:
    """Insert a wait at the start of its node's body, after other waits there."""
    block = placed.node.body.block
    views = [_awaited(placed.node.tiles[index], block) for index in placed.operands]
    wait = _wait_in(block, placed, views)
    first = next(op for op in block.ops if not isinstance(op, WaitOp))
    Rewriter.insert_op(wait, InsertPoint.before(first))
    for view, value in zip(views, wait.awaited, strict=True):
        view.replace_uses_with_if(value, lambda use: use.operation is not wait)


def _awaited(view: SSAValue, block: Block) -> SSAValue:
    """Return a view after the waits of a block that already take it."""
    for use in view.uses:
        op = use.operation
        if isinstance(op, WaitOp) and op.parent is block:
            return _awaited(op.awaited[use.index], block)
    return view


def _wait_in(block: Block, placed: PlacedWait, views: Sequence[SSAValue]) -> WaitOp:
    """Return the wait, still to be inserted, that takes views in a block of a node."""
    wait = placed.waits[0]
    assert wait.flags is not None
    assert wait.epoch is not None
    channel, flags, epoch = (
        inside(value, block) for value in (wait.channel, wait.flags, wait.epoch)
    )
    new_wait = WaitOp(channel, flags, epoch, views=views, own=placed.own)
    properties: Mapping[str, Attribute] = {
        name: wait.properties[name] for name in ("semantics", "scope", "arrivals")
    }
    new_wait.properties |= properties
    new_wait.location = wait.location
    copy_names(views, new_wait.awaited)
    return new_wait
