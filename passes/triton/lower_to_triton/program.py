"""How `lower-to-triton` writes launch plans, on one GPU and on several ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.builder import Builder
from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import dataflow, tl
from comet.dialects.collective.mesh import lookup_mesh
from comet.dialects.collective.spmd import SpmdOp, YieldOp
from comet.dialects.compound.dims import element_type_of, extents_of
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
from comet.passes.triton.lower_to_triton.kernel import LoweredKernel

COUNTERS = TensorType(i32, [2])
"""The number of launches that have ended, and of programs that have."""


@dataclass(frozen=True)
class FoundProgram:
    """The program that a function consists of, and who runs it."""

    program: dataflow.ProgramOp
    spmd: SpmdOp | None
    ranks: int


def find_program(function: func.FuncOp) -> FoundProgram:
    """
    Return the program that a function consists of, on one GPU or on every rank.

    Raises `PassFailedException` if it is anything else.
    """
    first = function.body.block.first_op
    if isinstance(first, SpmdOp) and isinstance(first.next_op, func.ReturnOp):
        program = first.body.block.first_op
        if isinstance(program, dataflow.ProgramOp) and isinstance(
            program.next_op, YieldOp
        ):
            mesh = lookup_mesh(first, first.mesh.string_value())
            return FoundProgram(program, first, prod(mesh.axis_extents.values()))
    if not isinstance(first, dataflow.ProgramOp) or not isinstance(
        first.next_op, func.ReturnOp
    ):
        raise PassFailedException(
            f"lower-to-triton: @{function.sym_name.data} is not one dataflow.program; "
            "run outline-kernels first"
        )
    return FoundProgram(first, None, 1)


def lower_program(found: FoundProgram, lowered: Sequence[LoweredKernel]) -> None:
    """Replace a program by buffers and launches, in order."""
    program, spmd = found.program, found.spmd
    if spmd is None:
        builder = Builder(InsertPoint.before(program))
        results = _PlanLowering(builder, program.ins, 1).lower(program, lowered)
        for result, value in zip(program.results_, results, strict=True):
            result.replace_all_uses_with(value)
        program.detach()
        program.erase()
        return
    inputs, body = _plan_inputs(spmd), Block()
    positions: dict[SSAValue, SSAValue] = {}
    for index, (outer, inner) in enumerate(inputs):
        argument = body.insert_arg((inner or outer).type, index)
        argument.name_hint = (inner or outer).name_hint
        positions[inner or outer] = argument
    builder = Builder(InsertPoint.at_end(body))
    ins = [positions[value] for value in program.ins]
    results = _PlanLowering(builder, ins, found.ranks).lower(program, lowered)
    values: dict[SSAValue, SSAValue] = dict(zip(program.results_, results, strict=True))
    builder.insert(PlanYieldOp(*(values[value] for value in spmd.yielded)))
    splits = {inner: next(iter(sharding), "") for _, inner, sharding in spmd.boundary()}
    plan = PlanOp(
        found.ranks,
        [outer for outer, _ in inputs],
        ["" if inner is None else splits[inner] for _, inner in inputs],
        [splits[value] for value in spmd.yielded],
        [out.type for out in spmd.outs],
        Region(body),
    )
    Builder(InsertPoint.before(spmd)).insert(plan)
    for old, new in zip(spmd.outs, plan.outs, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    spmd.detach()
    spmd.erase()


def _plan_inputs(spmd: SpmdOp) -> list[tuple[SSAValue, SSAValue | None]]:
    """
    Return what callers pass to a plan, and what that is in the region.

    These are the arguments of the function, in order. One that the region takes in two
    shardings is passed twice, one that it does not take, which has no place there, too.
    """
    taken = dict[SSAValue, list[SSAValue | None]]()
    for outer, inner in zip(spmd.ins, spmd.body.block.args, strict=True):
        taken.setdefault(outer, []).append(inner)
    function = spmd.parent
    assert function is not None
    return [(arg, inner) for arg in function.args for inner in taken.get(arg, [None])]


class _PlanLowering:
    """Writes the steps of a launch plan."""

    def __init__(self, builder: Builder, ins: Sequence[SSAValue], ranks: int):
        self._builder = builder
        self._ins = ins
        self._ranks = ranks
        self._values: dict[SSAValue, SSAValue] = {}

    def lower(
        self, program: dataflow.ProgramOp, lowered: Sequence[LoweredKernel]
    ) -> list[SSAValue]:
        """Write all steps; return the results of the program."""
        self._values |= zip(program.body.block.args, self._ins, strict=True)
        kernels = iter(lowered)
        for op in program.body.block.ops:
            self._step(op, kernels)
        terminator = program.body.block.last_op
        assert isinstance(terminator, dataflow.YieldOp)
        return [self._values[value] for value in terminator.values]

    def _step(self, op: Operation, kernels: Iterator[LoweredKernel]) -> None:
        match op:
            case dataflow.BufferOp():
                self._allocate(op.result, tl.EmptyOp(op.result.type))
            case ReceiveBufferOp():
                of = None if op.input is None else self._values[op.input]
                made = HeapZerosOp(_receive_buffer_type(op, self._ranks), of)
                self._allocate(op.result, made)
            case FlagsOp():
                flags = HeapZerosOp(TensorType(i32, op.type.shape))
                self._allocate(op.result, flags)
            case dataflow.KernelOp():
                self._launch(op, next(kernels))
            case dataflow.BarrierOp():
                # The launches of one rank follow each other on a stream.
                if self._ranks > 1 and op.local is None:
                    self._builder.insert(BarrierOp())
            case _:
                pass

    def _allocate(self, value: SSAValue, op: Operation) -> None:
        self._builder.insert(op)
        op.results[0].name_hint = value.name_hint
        self._values[value] = op.results[0]

    def _launch(self, op: dataflow.KernelOp, made: LoweredKernel) -> None:
        """Write one launch, after what only this kernel needs."""
        insert, name = self._builder.insert, op.sym_name.data
        outs = [self._values[value] for value in op.outs]
        ins = [self._values[value] for value in op.ins]
        arguments = [*ins, *outs]
        for type in made.scratch:
            arguments.append(insert(tl.EmptyOp(type)).result)
            arguments[-1].name_hint = "scratch"
        if made.has_epoch:
            arguments.append(insert(ZerosOp(COUNTERS)).result)
            arguments[-1].name_hint = f"{name}_counters"
        if self._ranks > 1:
            arguments.append(insert(RankOp()).result)
            arguments.append(insert(HeapBasesOp(self._ranks)).result)
        launch, warps = made.launch, made.launch.warps
        insert(tl.LaunchOp(name, made.grid, arguments, warps, launch.stages))
        self._values |= dict(zip(op.results_, outs, strict=True))


def _receive_buffer_type(op: ReceiveBufferOp, ranks: int) -> Attribute:
    """Return the type of a receive buffer's memory: slots, sources if any, elements."""
    channel, slots = op.type, op.slots.value.data
    if channel.mode is ChannelMode.PUSH:
        shape = (slots, ranks, *extents_of(channel.message).values())
    else:
        shape = (slots, *extents_of(channel.sent).values())
    return TensorType(element_type_of(channel.sent), shape)
