"""
`lower-to-triton`: dataflow level -> Triton.

Needs functions that are one `dataflow.program` of kernels on one GPU, whose tiles have
been chosen. Every kernel becomes a `tl.kernel`, the program a launch plan. Any sizes
are masked. Rejects element types other than f16, bf16 and f32, tiles larger than
Triton's limit, and schedules that would assemble or split blocks in registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    ModuleOp,
    StringAttr,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import dataflow, tl
from comet.dialects.compound import IndexOp, RenameOp
from comet.dialects.compound_dims import element_type_of, extents_of, names_of, tensor
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule_attributes import LaunchAttr
from comet.passes.levels import IRLevel, functions_at
from comet.passes.lower_to_triton_blocks import (
    BlockPlan,
    memory_level,
    plan_blocks,
)
from comet.passes.lower_to_triton_grid import lower_grid
from comet.passes.lower_to_triton_nodes import BodyLowering, describe
from comet.passes.lower_to_triton_slices import Constexprs, DimSlice, Prologue
from comet.passes.lower_to_triton_values import Buffer, Scope


@dataclass(frozen=True)
class LowerToTritonPass(ModulePass):
    """Write the kernels of every program in Triton."""

    name = "lower-to-triton"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower every function that is no reference."""
        for function in functions_at(op, self.name, IRLevel.DATAFLOW):
            program = find_program(function)
            lowered = [lower_kernel(kernel) for kernel in program.kernels()]
            for made in lowered:
                op.body.block.insert_op_before(made.kernel, function)
            lower_program(program, lowered)


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel in Triton, and how it is launched."""

    kernel: tl.KernelOp
    grid: tuple[int, ...]
    scratch: tuple[Attribute, ...]
    """Types of the buffers that only this kernel uses, its last pointers."""
    launch: LaunchAttr


def find_program(function: func.FuncOp) -> dataflow.ProgramOp:
    """
    Return the program that a function consists of.

    Raises `PassFailedException` if it is anything else.
    """
    first = function.body.block.first_op
    if not isinstance(first, dataflow.ProgramOp) or not isinstance(
        first.next_op, func.ReturnOp
    ):
        raise PassFailedException(
            f"lower-to-triton: @{function.sym_name.data} is not one dataflow.program; "
            "run outline-kernels first"
        )
    return first


def lower_kernel(kernel: dataflow.KernelOp) -> LoweredKernel:
    """Write one kernel in Triton."""
    node = _grid_node(kernel)
    _check_types(kernel)
    plan = plan_blocks(node)
    pointers = [
        tl.PtrType(element_type_of(value)) for value in (*kernel.ins, *kernel.outs)
    ]
    made = tl.KernelOp(kernel.sym_name.data, pointers)
    made.attributes["tl.comment"] = StringAttr(describe(node))
    scope = _kernel_scope(made, plan)
    buffers = _buffers(kernel, made)
    scratch = _Scratch(made, plan)
    body = BodyLowering(memory_level(node), scratch.allocate)
    arguments: dict[SSAValue, Buffer] = dict(
        zip(kernel.body.block.args, buffers, strict=False)
    )
    _add_views(kernel, arguments)
    inputs = [arguments[value] for value in node.ins]
    grid = lower_grid(node, scope, inputs, buffers[len(kernel.ins) :], body)
    _order_parameters(made, plan)
    return LoweredKernel(
        made, tuple(grid), tuple(scratch.types), node.launch or LaunchAttr()
    )


def _add_views(kernel: dataflow.KernelOp, arguments: dict[SSAValue, Buffer]) -> None:
    """Add what the kernel views under other dimension names, and its positions."""
    for view in kernel.body.block.ops:
        if isinstance(view, IndexOp):
            extents = extents_of(view.result)
            dims = tuple(extents)
            arguments[view.result] = Buffer(None, dims, tuple(extents.values()), dims)
        if isinstance(view, RenameOp):
            dims = names_of(view.result)
            viewed = replace(arguments[view.input], dims=dims, stride_dims=dims)
            arguments[view.result] = viewed


def _grid_node(kernel: dataflow.KernelOp) -> SpatialOp:
    views = RenameOp | IndexOp
    ops = [op for op in kernel.body.block.ops if not isinstance(op, views)]
    node = ops[0]
    if len(ops) > 2 or not isinstance(node, SpatialOp) or node.mesh_name is not None:
        raise PassFailedException(
            f"lower-to-triton: kernel @{kernel.sym_name.data} is not one node on the "
            "launch grid"
        )
    return node


def _check_types(kernel: dataflow.KernelOp) -> None:
    for op in kernel.walk():
        for value in op.results:
            element = element_type_of(value)
            if not isinstance(element, Float16Type | BFloat16Type | Float32Type):
                raise PassFailedException(
                    f"lower-to-triton: {op.name} makes {value.type}; Triton kernels "
                    "take elements of f16, bf16 and f32"
                )


def _kernel_scope(kernel: tl.KernelOp, plan: BlockPlan) -> Scope:
    """Return the scope of a kernel's body, in which every slice is whole."""
    block = kernel.body.block
    terminator = block.last_op
    assert terminator is not None
    constexprs, prologue = Constexprs(kernel, plan), Prologue(block)
    slices = {
        dim: DimSlice(
            dim,
            extent,
            plan.block(dim, extent),
            True,
            None,
            constexprs.extent(dim),
            prologue,
            constexprs,
        )
        for dim, extent in plan.extents.items()
    }
    builder = Builder(InsertPoint.before(terminator))
    return Scope(builder, prologue, constexprs, slices)


def _buffers(kernel: dataflow.KernelOp, made: tl.KernelOp) -> list[Buffer]:
    """Name the pointers of a kernel; return the buffers behind them."""
    values = (*kernel.body.block.args, *kernel.results_)
    buffers: list[Buffer] = []
    for value, pointer in zip(values, made.body.block.args, strict=False):
        pointer.name_hint = f"{value.name_hint or 'x'}_ptr"
        dims = names_of(value)
        extents = tuple(extents_of(value).values())
        buffers.append(Buffer(pointer, dims, extents, dims))
    return buffers


class _Scratch:
    """Buffers that one kernel spills to."""

    def __init__(self, kernel: tl.KernelOp, plan: BlockPlan):
        self._block = kernel.body.block
        self._extents = plan.extents
        self.types: list[Attribute] = []

    def allocate(self, value: SSAValue) -> Buffer:
        """Add a pointer to a buffer for all programs' tiles of `value`."""
        element, dims = element_type_of(value), names_of(value)
        pointer = self._block.insert_arg(tl.PtrType(element), len(self._block.args))
        pointer.name_hint = f"{value.name_hint or 'scratch'}_ptr"
        shape = {dim: self._extents[dim] for dim in dims}
        self.types.append(tensor(shape, element))
        return Buffer(pointer, dims, tuple(shape.values()), dims)


def _order_parameters(kernel: tl.KernelOp, plan: BlockPlan) -> None:
    """Put pointers first, then extents, then block sizes; drop what is not used."""
    old = kernel.body.block
    dims = list(plan.extents)

    def rank(argument: SSAValue) -> tuple[int, int, str]:
        name = argument.name_hint or ""
        if isinstance(argument.type, tl.PtrType):
            return (0, 0, "")
        return (1, dims.index(name), "") if name in dims else (2, 0, name)

    arguments = sorted(old.args, key=rank)
    arguments = [
        arg for arg in arguments if arg.uses or isinstance(arg.type, tl.PtrType)
    ]
    block = Block(arg_types=[argument.type for argument in arguments])
    for argument, new in zip(arguments, block.args, strict=True):
        new.name_hint = argument.name_hint
        argument.replace_all_uses_with(new)
    for op in list(old.ops):
        op.detach()
        block.add_op(op)
    kernel.body.detach_block(old)
    kernel.body.add_block(block)


def lower_program(
    program: dataflow.ProgramOp, lowered: Sequence[LoweredKernel]
) -> None:
    """Replace a program by buffers and launches, in order."""
    builder = Builder(InsertPoint.before(program))
    values: dict[SSAValue, SSAValue] = dict(
        zip(program.body.block.args, program.ins, strict=True)
    )
    kernels = iter(lowered)
    for op in program.body.block.ops:
        _lower_step(op, kernels, values, builder)
    terminator = program.body.block.last_op
    assert isinstance(terminator, dataflow.YieldOp)
    for result, value in zip(program.results_, terminator.values, strict=True):
        result.replace_all_uses_with(values[value])
    program.detach()
    program.erase()


def _lower_step(
    op: Operation,
    kernels: Iterator[LoweredKernel],
    values: dict[SSAValue, SSAValue],
    builder: Builder,
) -> None:
    """
    Write one step of a launch plan.

    A barrier needs nothing: the launches of one GPU follow each other on a stream.
    """
    if isinstance(op, dataflow.BufferOp):
        values[op.result] = _allocate(op.result.type, op.result.name_hint, builder)
    elif isinstance(op, dataflow.KernelOp):
        made = next(kernels)
        outs = [values[value] for value in op.outs]
        scratch = [_allocate(type, "scratch", builder) for type in made.scratch]
        ins = [values[value] for value in op.ins]
        builder.insert(
            tl.LaunchOp(
                op.sym_name.data,
                made.grid,
                [*ins, *outs, *scratch],
                made.launch.warps,
                made.launch.stages,
            )
        )
        values |= dict(zip(op.results_, outs, strict=True))


def _allocate(type: Attribute, hint: str | None, builder: Builder) -> SSAValue:
    buffer = builder.insert(tl.EmptyOp(type)).result
    buffer.name_hint = hint
    return buffer
