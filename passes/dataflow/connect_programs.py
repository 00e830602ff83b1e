"""
`connect-programs`: collectives in the kernels of one GPU -> channels between programs.

Takes kernels with a node over a mesh axis inside the GPU. An all-gather in it becomes,
at the same place, a push of the program's tile, a signal, and a wait for the tiles of
the whole group; meanwhile the program keeps its other tiles in registers. Successive
all-gathers have one signal and one wait. In an all-gather among ranks all programs of a
group have the same tile, which their root pushes and signals. The kernel gets the
number of programs that have to run at the same time. Rejects all-gathers of values of
which programs have shards, and other collectives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.collective import AllGatherOp
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.compound.dims import (
    ceil_div,
    extents_of,
    level_of,
    names_of,
    with_extents,
    with_level,
)
from comet.dialects.dataflow import (
    ChannelOp,
    ChannelType,
    KernelOp,
    PushOp,
    ReadTileOp,
    SignalOp,
    WaitOp,
)
from comet.dialects.dataflow.channel import ChannelMode
from comet.dialects.dataflow.launch_axes import group_size
from comet.dialects.dataflow.program import programs_in
from comet.dialects.errors import OpError, called
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.levels import IRLevel
from comet.passes.dataflow.kernels import inside, rebuild_kernel
from comet.passes.function_pass import FunctionPass


@dataclass(frozen=True)
class ConnectProgramsPass(FunctionPass):
    """Let programs of a kernel exchange through channels."""

    name = "connect-programs"

    LEVELS = (IRLevel.DATAFLOW,)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        for program in programs_in(function):
            for kernel in list(program.kernels()):
                if plans := plan_exchanges(kernel):
                    connect(kernel, plans)


@dataclass(frozen=True)
class PlannedChannel:
    """The channel that replaces one all-gather."""

    op: AllGatherOp
    type: ChannelType
    blocks: Mapping[str, int]


@dataclass(frozen=True)
class PlannedExchange:
    """All-gathers that follow each other: one signal, one wait."""

    channels: tuple[PlannedChannel, ...]
    root: bool
    """Whether ranks exchange, so that the root of a group sends what all have."""


def plan_exchanges(kernel: KernelOp) -> tuple[PlannedExchange, ...]:
    """
    Return the exchanges in the nodes of a kernel, in order.

    Raises PassFailedException for a collective that programs do not carry out.
    """
    found: list[list[PlannedChannel]] = []
    for op in kernel.walk():
        if not isinstance(op, CollectiveOp) or not isinstance(op.parent_op(), NodeOp):
            continue
        if not isinstance(op, AllGatherOp) or op.dim.data in names_of(op.input):
            raise OpError(
                op,
                f"connect-programs: @{kernel.sym_name.data} has {op.name} of "
                f"{called(op.input)}, and programs of one GPU exchange "
                "the parts of reductions only; run lower-reductions before fuse, or "
                "compile without ctas",
            )
        if not op.joins_exchange:
            found.append([])
        found[-1].append(_planned(op))
    return tuple(
        PlannedExchange(tuple(channels), channels[0].op.among_ranks)
        for channels in found
    )


def _planned(op: AllGatherOp) -> PlannedChannel:
    """
    Return the channel of an all-gather.

    A message has a block for each tile of rows, the last one as long as the others.
    """
    grid, tile = _grid(op), extents_of(op.input)
    extents, split = extents_of(grid.outs[0]), list(grid.factors)
    if missing := [dim for dim in split if dim not in tile]:
        raise OpError(
            op,
            f"connect-programs: programs exchange {called(op.input)}, "
            f"which has no {missing[0]}: groups with other rows would store to one "
            "place; let reductions have a value for each row, as with stream=false",
        )
    blocks = {dim: ceil_div(extents[dim], tile[dim]) for dim in split}
    rows = {dim: count * tile[dim] for dim, count in blocks.items()}
    received = with_extents(op.result.type, rows)
    sent = with_level(with_extents(op.input.type, rows), level_of(op.result))
    type_ = ChannelType(ChannelMode.PUSH, op.dim.data, None, sent, received)
    return PlannedChannel(op, type_, blocks)


def _grid(op: Operation) -> NodeOp:
    """Return the grid node around an op in a node."""
    above = op.parent_op()
    assert isinstance(above, NodeOp)
    return above.outermost


def connect(kernel: KernelOp, plans: Sequence[PlannedExchange]) -> None:
    """Replace the collectives in a kernel by channels of its program."""
    body, ins = kernel.body.block, list(kernel.ins)
    for plan in plans:
        arguments: list[SSAValue] = []
        for channel in plan.channels:
            op = _new_channel(channel)
            Rewriter.insert_op(op, InsertPoint.before(kernel))
            ins.append(op.result)
            arguments.append(body.insert_arg(op.result.type, len(body.args)))
            arguments[-1].name_hint = "channel"
        _exchange(plan, arguments)
    rebuilt = rebuild_kernel(kernel, ins, range(len(kernel.results_)))
    rebuilt.coresident = IntegerAttr(max(map(group_size, rebuilt.nodes)), i64)


def _new_channel(plan: PlannedChannel) -> ChannelOp:
    """Return the channel that programs exchange through, still to be inserted."""
    op = plan.op
    channel = ChannelOp(op.mesh.string_value(), op.axis_names, plan.blocks, plan.type)
    name = op.input.name_hint or "value"
    name = f"{name}_of_ranks" if op.among_ranks else name
    channel.result.name_hint = f"{name}_channel"
    return channel


def _exchange(plan: PlannedExchange, channels: Sequence[SSAValue]) -> None:
    """Push, signal, read and wait in the place of all-gathers in a row."""
    gathers = [planned.op for planned in plan.channels]
    root = UnitAttr() if plan.root else None
    block = gathers[0].parent
    assert block is not None
    inner = [inside(channel, block) for channel in channels]
    pushes = [
        PushOp(
            op.input,
            channel,
            stored=with_level(op.input.type, level_of(op.result)),
        )
        for op, channel in zip(gathers, inner, strict=True)
    ]
    stored: list[SSAValue] = []
    for push, op in zip(pushes, gathers, strict=True):
        assert push.stored is not None
        push.root = root
        push.stored.name_hint = op.input.name_hint
        stored.append(push.stored)
    signal = SignalOp(inner[0], covered=(*inner[1:], *stored), root=root)
    pairs = list(zip(inner, stored, strict=True))
    reads = [ReadTileOp(channel, value) for channel, value in pairs]
    wait = WaitOp(inner[0], views=[read.result for read in reads])
    Rewriter.insert_op([*pushes, signal, *reads, wait], InsertPoint.before(gathers[0]))
    for op, awaited in zip(gathers, wait.awaited, strict=True):
        Rewriter.replace_op(op, (), (awaited,))
