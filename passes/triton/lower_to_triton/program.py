"""How `lower-to-triton` writes launch plans, on one GPU and on several ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType, i32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import dataflow, tl
from comet.dialects.blocks import block_taking
from comet.dialects.collective.spmd import SpmdOp, YieldOp, rank_count
from comet.dialects.compound import RenameOp
from comet.dialects.compound.dims import element_type_of, extents_of
from comet.dialects.dataflow.arrival import CountersOp
from comet.dialects.dataflow.channel import ChannelMode, ReceiveBufferOp
from comet.dialects.dataflow.flags import FlagsOp
from comet.dialects.tl.plan import (
    BarrierOp,
    HeapBasesOp,
    HeapZerosOp,
    PlanOp,
    PlanYieldOp,
    RankOp,
    ZerosOp,
)
from comet.op_table import OpTable
from comet.passes.triton.lower_to_triton.kernel import LoweredKernel

COUNTERS = TensorType(i32, [2])
"""The number of launches that have ended, and of programs that have."""


def find_program(function: func.FuncOp) -> dataflow.ProgramOp:
    """
    Return the program that a function consists of, on one GPU or on every rank.

    Raises `PassFailedException` if it is anything else.
    """
    outer = function.body.block.first_op
    program = outer.body.block.first_op if isinstance(outer, SpmdOp) else outer
    ends = [op and op.next_op for op in (outer, program)]
    is_single = all(isinstance(end, YieldOp | func.ReturnOp) for end in ends)
    if not is_single or not isinstance(program, dataflow.ProgramOp):
        raise PassFailedException(
            f"lower-to-triton: @{function.sym_name.data} is not one dataflow.program; "
            "run outline-kernels first"
        )
    return program


def lower_program(
    program: dataflow.ProgramOp, lowered: Sequence[LoweredKernel]
) -> None:
    """Replace a program by buffers and launches, in order."""
    spmd = program.parent_op()
    if isinstance(spmd, SpmdOp):
        _lower_on_ranks(program, spmd, lowered)
        return
    counts = any(isinstance(op, CountersOp) for op in program.body.block.ops)
    if counts or any(kernel.has_epoch for kernel in lowered):
        _lower_counting(program, lowered)
        return
    builder = Builder(InsertPoint.before(program))
    results = _lower_steps(program, builder, program.ins, lowered)
    Rewriter.replace_op(program, [], results)


def _lower_counting(
    program: dataflow.ProgramOp, lowered: Sequence[LoweredKernel]
) -> None:
    """
    Replace a program whose kernels count launches, or programs, by a plan of one rank.

    What they count in is allocated once, and kept from one launch to the next.
    """
    body = block_taking(program.ins)
    builder = Builder(InsertPoint.at_end(body))
    results = _lower_steps(program, builder, body.args, lowered)
    builder.insert(PlanYieldOp(*results))
    types = [value.type for value in program.results_]
    unsplit = [""] * len(program.ins), [""] * len(types)
    plan = PlanOp(1, program.ins, *unsplit, types, Region(body))
    Rewriter.replace_op(program, plan)


def _lower_on_ranks(
    program: dataflow.ProgramOp, spmd: SpmdOp, lowered: Sequence[LoweredKernel]
) -> None:
    """Replace the region that ranks run by a launch plan."""
    inputs, body = _plan_inputs(spmd), Block()
    positions: dict[SSAValue, SSAValue] = {}
    for index, (outer, inner) in enumerate(inputs):
        argument = body.insert_arg((inner or outer).type, index)
        argument.name_hint = (inner or outer).name_hint
        positions[inner or outer] = argument
    builder = Builder(InsertPoint.at_end(body))
    ins = [positions[value] for value in program.ins]
    results = _lower_steps(program, builder, ins, lowered)
    values: dict[SSAValue, SSAValue] = dict(zip(program.results_, results, strict=True))
    builder.insert(PlanYieldOp(*(values[value] for value in spmd.yielded)))
    splits = {inner: next(iter(sharding), "") for _, inner, sharding in spmd.boundary()}
    plan = PlanOp(
        rank_count(program),
        [outer for outer, _ in inputs],
        ["" if inner is None else splits[inner] for _, inner in inputs],
        [splits[value] for value in spmd.yielded],
        [out.type for out in spmd.outs],
        Region(body),
    )
    Rewriter.replace_op(spmd, plan)


def _plan_inputs(spmd: SpmdOp) -> list[tuple[SSAValue, SSAValue | None]]:
    """
    Return the parameters of a plan, each with its argument in the region.

    These are the arguments of the function, in order. One that the region takes in two
    shardings is passed twice, one that it does not take, which has no place there, too.
    """
    inner_values = dict[SSAValue, list[SSAValue | None]]()
    for outer, inner in zip(spmd.ins, spmd.body.block.args, strict=True):
        inner_values.setdefault(outer, []).append(inner)
    function = spmd.parent
    assert function is not None
    return [
        (arg, inner) for arg in function.args for inner in inner_values.get(arg, [None])
    ]


@dataclass
class Steps:
    """The insertion point of a launch plan, and the values that exist there."""

    builder: Builder
    ranks: int
    kernels: Iterator[LoweredKernel]
    """The kernels that are still to be launched, in order."""
    values: dict[SSAValue, SSAValue]
    """The value in the launch plan of each value of the program."""

    def insert(self, op: Operation, hint: str | None = None) -> SSAValue:
        """Insert a step with one result; return the result."""
        self.builder.insert(op)
        op.results[0].name_hint = hint
        return op.results[0]


STEPS = OpTable[Steps, Operation | None]()
steps = STEPS.enter


def _lower_steps(
    program: dataflow.ProgramOp,
    builder: Builder,
    ins: Sequence[SSAValue],
    lowered: Sequence[LoweredKernel],
) -> list[SSAValue]:
    """Write all steps of a program; return its results."""
    values: dict[SSAValue, SSAValue] = dict(
        zip(program.body.block.args, ins, strict=True)
    )
    scope = Steps(builder, rank_count(program), iter(lowered), values)
    for op in program.body.block.ops:
        if (write := STEPS.find(op)) is None:
            continue
        if (new_op := write(op, scope)) is not None:
            scope.values[op.results[0]] = scope.insert(new_op, op.results[0].name_hint)
    return [scope.values[value] for value in program.yielded]


@steps(dataflow.BufferOp)
def lower_buffer(op: dataflow.BufferOp, scope: Steps) -> None:
    """Allocate memory of one rank, and make it 0 if a kernel adds to it."""
    tensor = scope.insert(tl.EmptyOp(op.result.type), op.result.name_hint)
    scope.values[op.result] = tensor
    if op.zeroed is not None:
        scope.builder.insert(tl.ClearOp(tensor))


@steps(RenameOp)
def lower_rename(op: RenameOp, scope: Steps) -> Operation:
    """See the memory of a result with its shape in the function."""
    return tl.ViewOp(scope.values[op.input], op.result.type)


@steps(ReceiveBufferOp)
def lower_receive_buffer(op: ReceiveBufferOp, scope: Steps) -> Operation:
    """
    Allocate the memory of a channel on every rank, or make an input this memory.

    Its shape is [slot][source][message] for a push channel, else [slot] and the value.
    The programs of one GPU share one allocation.
    """
    channel, slots = op.type, op.slots.value.data
    if op.in_one_memory:
        shape = (slots, op.ranks, *extents_of(channel.message).values())
        return ZerosOp(TensorType(element_type_of(channel.sent), shape))
    if channel.mode is ChannelMode.PUSH:
        shape = (slots, scope.ranks, *extents_of(channel.message).values())
    else:
        shape = (slots, *extents_of(channel.sent).values())
    of = None if op.input is None else scope.values[op.input]
    return HeapZerosOp(TensorType(element_type_of(channel.sent), shape), of)


@steps(FlagsOp)
def lower_flags(op: FlagsOp, scope: Steps) -> Operation:
    """Allocate flags on every rank, or those of this GPU's programs."""
    buffer, type_ = op.buffer.owner, TensorType(i32, op.type.shape)
    assert isinstance(buffer, ReceiveBufferOp)
    return ZerosOp(type_) if buffer.in_one_memory else HeapZerosOp(type_)


@steps(CountersOp)
def lower_counters(op: CountersOp, scope: Steps) -> Operation:
    """Allocate counters of this GPU's programs."""
    return ZerosOp(TensorType(i32, [op.type.count]))


@steps(dataflow.BarrierOp)
def lower_barrier(op: dataflow.BarrierOp, scope: Steps) -> None:
    """Wait for all ranks; the launches of one rank follow each other on a stream."""
    if scope.ranks > 1 and op.local is None:
        scope.builder.insert(BarrierOp())


@steps(dataflow.KernelOp)
def lower_launch(op: dataflow.KernelOp, scope: Steps) -> None:
    """Write one launch, after what only this kernel needs."""
    lowered, name = next(scope.kernels), op.sym_name.data
    outs = [scope.values[value] for value in op.outs]
    arguments = [*(scope.values[value] for value in op.ins), *outs]
    arguments += [scope.insert(tl.EmptyOp(type), "scratch") for type in lowered.scratch]
    if lowered.has_epoch:
        arguments.append(scope.insert(ZerosOp(COUNTERS), f"{name}_counters"))
    if lowered.takes_rank:
        arguments.append(scope.insert(RankOp()))
    if lowered.takes_heaps:
        arguments.append(scope.insert(HeapBasesOp(scope.ranks)))
    launch = lowered.launch
    scope.builder.insert(
        tl.LaunchOp(
            name,
            lowered.grid,
            arguments,
            launch.warps,
            launch.stages,
            launch.registers,
            launch.cluster,
            cooperative=lowered.coresident > 0,
        )
    )
    scope.values |= dict(zip(op.results_, outs, strict=True))
