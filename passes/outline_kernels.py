"""
`outline-kernels`: schedule level -> dataflow level.

Needs functions whose operations are nodes on the launch grid. Each becomes a kernel;
values between kernels become buffers, and a kernel that reads what an earlier one wrote
stands behind a barrier. A view under other dimension names goes into the kernels that
read it, and so do positions along a dimension. Rejects other operations outside grid
nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import dataflow
from comet.dialects.compound import IndexOp, RenameOp
from comet.dialects.schedule import SpatialOp
from comet.passes.levels import IRLevel, functions_at

View = RenameOp | IndexOp
"""What a kernel makes of what it has, without reading or writing memory."""


@dataclass(frozen=True)
class OutlineKernelsPass(ModulePass):
    """Make every node on the launch grid a kernel of a launch plan."""

    name = "outline-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Outline the kernels of every function that is no reference."""
        for function in functions_at(op, self.name, IRLevel.SCHEDULE):
            outline(function, plan_launches(function))


@dataclass(frozen=True)
class Launch:
    """One grid node and how it is launched."""

    node: SpatialOp
    name: str
    """The symbol of the kernel."""
    ins: tuple[SSAValue, ...]
    """What the kernel reads, each value once, behind all views."""
    views: tuple[View, ...]
    """Its views under other dimension names and its positions, in order."""
    waits: bool
    """Whether it reads what a kernel wrote since the last barrier."""


def plan_launches(function: func.FuncOp) -> tuple[Launch, ...]:
    """
    Name the kernels of a function and place the barriers.

    Raises `PassFailedException` for an operation that is no node on the grid.
    """
    name = function.sym_name.data
    nodes: list[SpatialOp] = []
    for op in function.body.block.ops:
        if isinstance(op, SpatialOp) and op.mesh_name is None:
            nodes.append(op)
        elif not isinstance(op, func.ReturnOp) and not _is_inner_view(op):
            raise PassFailedException(
                f"outline-kernels: {op.name} in @{name} is outside the nodes on the "
                "launch grid; run fuse for a GPU first"
            )
    if not nodes:
        raise PassFailedException(
            f"outline-kernels: @{name} has no node on the launch grid; run fuse for a "
            "GPU first"
        )
    return _launches(name, nodes)


def _is_inner_view(op: Operation) -> bool:
    """Whether `op` is a view that only nodes and other views read."""
    readers = [use.operation for result in op.results for use in result.uses]
    return isinstance(op, View) and all(
        isinstance(reader, SpatialOp | RenameOp) for reader in readers
    )


def _views(node: SpatialOp) -> tuple[View, ...]:
    """Return the views that `node` reads, each after the views it is made from."""
    found: dict[View, None] = {}
    for value in node.ins:
        chain: list[View] = []
        while isinstance(value.owner, RenameOp):
            chain.append(value.owner)
            value = value.owner.input
        if isinstance(value.owner, IndexOp):
            chain.append(value.owner)
        found |= dict.fromkeys(reversed(chain))
    return tuple(found)


def _viewed(value: SSAValue) -> SSAValue:
    """Return the value behind all views."""
    while isinstance(value.owner, RenameOp):
        value = value.owner.input
    return value


def _launches(name: str, nodes: list[SpatialOp]) -> tuple[Launch, ...]:
    launches: list[Launch] = []
    taken: set[str] = set()
    unfinished: set[SSAValue] = set()
    for index, node in enumerate(nodes):
        kernel = f"{name}_kernel"
        if len(nodes) > 1:
            kernel = f"{name}_{node.outs[0].name_hint or index}_kernel"
        if kernel in taken:
            kernel = f"{name}_{index}_kernel"
        taken.add(kernel)
        behind = dict.fromkeys(_viewed(value) for value in node.ins)
        ins = tuple(v for v in behind if not isinstance(v.owner, IndexOp))
        waits = any(value in unfinished for value in ins)
        if waits:
            unfinished.clear()
        unfinished.update(node.outs)
        launches.append(Launch(node, kernel, ins, _views(node), waits))
    return tuple(launches)


def outline(function: func.FuncOp, launches: tuple[Launch, ...]) -> None:
    """Move the nodes of `function` into kernels of one launch plan."""
    body = function.body.block
    terminator = body.last_op
    assert isinstance(terminator, func.ReturnOp)
    plan = Block(arg_types=[argument.type for argument in body.args])
    values: dict[SSAValue, SSAValue] = {}
    for argument, inner in zip(body.args, plan.args, strict=True):
        inner.name_hint = argument.name_hint
        values[argument] = inner
    builder = Builder(InsertPoint.at_end(plan))
    for launch in launches:
        _outline_kernel(launch, values, builder)
    returned = tuple(terminator.arguments)
    builder.insert(dataflow.YieldOp(*(values[value] for value in returned)))
    types = [value.type for value in returned]
    program = dataflow.ProgramOp(list(body.args), types, Region(plan))
    body.insert_op_before(program, terminator)
    for index, value in enumerate(returned):
        program.results_[index].name_hint = value.name_hint
        terminator.operands[index] = program.results_[index]
    for op in reversed(list(body.ops)):
        if isinstance(op, SpatialOp | View):
            op.detach()
            op.erase()


def _outline_kernel(
    launch: Launch, values: dict[SSAValue, SSAValue], builder: Builder
) -> None:
    """Add one kernel with its buffers, and the barrier before it, to the plan."""
    if launch.waits:
        builder.insert(dataflow.BarrierOp())
    buffers: list[SSAValue] = []
    for result in launch.node.outs:
        buffer = builder.insert(dataflow.BufferOp(result.type))
        buffer.result.name_hint = result.name_hint
        buffers.append(buffer.result)
    body = Block(arg_types=[value.type for value in launch.ins])
    inner: dict[SSAValue, SSAValue] = {}
    for value, argument in zip(launch.ins, body.args, strict=True):
        argument.name_hint = value.name_hint
        inner[value] = argument
    for view in launch.views:
        made = view.clone(value_mapper=inner)
        body.add_op(made)
        inner[view.result] = made.result
    node = launch.node.clone(value_mapper=inner)
    body.add_ops([node, dataflow.YieldOp(*node.outs)])
    ins = [values[value] for value in launch.ins]
    kernel = dataflow.KernelOp(launch.name, ins, buffers, Region(body))
    builder.insert(kernel)
    for result, filled in zip(launch.node.outs, kernel.results_, strict=True):
        filled.name_hint = result.name_hint
        values[result] = filled
