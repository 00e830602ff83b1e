"""
`outline-kernels`: schedule level -> dataflow level.

Needs functions whose operations are nodes on the launch grid and, inside an SPMD
region, collectives between them. Each becomes a kernel; values between kernels become
buffers. A kernel that reads what an earlier one of the same rank wrote comes after a
barrier, and a collective between two barriers of all ranks. A view of values in memory
is copied into the kernels that read it, and so are positions along a dimension. A
function that only returns arguments launches nothing. Rejects other operations outside
grid nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from xdsl.builder import Builder
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects import dataflow
from comet.dialects.blocks import block_taking, terminator_of
from comet.dialects.collective import AllGatherOp, AllToAllOp
from comet.dialects.collective.ops import MovingCollective
from comet.dialects.compound import FillOp, IndexOp, RenameOp, ScatterAddOp, View
from comet.dialects.compound.gather import scatterings, stored_values
from comet.dialects.compound.views import sources
from comet.dialects.dataflow.program import shards_attr
from comet.dialects.errors import OpError
from comet.dialects.schedule import SpatialOp
from comet.passes.analysis.levels import (
    IRLevel,
    compute_block,
    spmd_region,
)
from comet.passes.dataflow.kernels import place_barriers
from comet.passes.dataflow.outline_kernels.uneven_shards import (
    UnevenExtents,
    uneven_extents,
)
from comet.passes.function_pass import FunctionPass

InKernel: TypeAlias = View | IndexOp | FillOp
"""Values that a kernel computes without reading or writing memory."""

VERBS: Mapping[type[Operation], str] = {AllGatherOp: "gather", AllToAllOp: "exchange"}
"""The verb in the name of a collective's kernel."""


@dataclass(frozen=True)
class OutlineKernelsPass(FunctionPass):
    """Make every node on the launch grid a kernel of a launch plan."""

    name = "outline-kernels"

    LEVELS = (IRLevel.SCHEDULE,)
    TAKES_COPIES = True

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        outline(function, plan_launches(function))


@dataclass(frozen=True)
class PlannedKernel:
    """One grid node or collective, and how it is launched."""

    op: SpatialOp | MovingCollective
    name: str
    """The symbol of the kernel."""
    ins: tuple[SSAValue, ...]
    """The operands of the kernel, each once, below all views."""
    views: tuple[InKernel, ...]
    """Its views of values in memory, its positions and constants, in order."""
    scatters: tuple[ScatterAddOp, ...] = ()
    """Ops that add results of the node to rows of their own result."""

    @property
    def results(self) -> tuple[SSAValue, ...]:
        """The values that the kernel stores."""
        return tuple(chain.from_iterable(map(stored_values, self.op.results)))


def plan_launches(function: func.FuncOp) -> tuple[PlannedKernel, ...]:
    """
    Name the kernels of a function.

    Raises `PassFailedException` for an operation that is no node on the grid and no
    collective.
    """
    name = function.sym_name.data
    found: list[SpatialOp | MovingCollective] = []
    for op in list(compute_block(function).ops)[:-1]:
        if isinstance(op, MovingCollective) or (
            isinstance(op, SpatialOp) and not op.mesh_name
        ):
            found.append(op)
        elif not _is_inner_view(op) and not _stores(op):
            raise OpError(
                op,
                f"outline-kernels: {op.name} in @{name} is outside the nodes on the "
                "launch grid; run fuse for a GPU first",
            )
    return tuple(_launches(name, found))


def _is_inner_view(op: Operation) -> bool:
    """Whether `op` is a view that only nodes and other views read, or a renaming."""
    users = [use.operation for result in op.results for use in result.uses]
    inside = (SpatialOp, ScatterAddOp, View)
    if isinstance(op, RenameOp):
        inside = (*inside, func.ReturnOp)
    return isinstance(op, InKernel) and all(isinstance(r, inside) for r in users)


def _stores(op: Operation) -> bool:
    """Whether `op` is how a node stores one of its results."""
    scatters = isinstance(op, ScatterAddOp)
    return scatters and isinstance(op.values.owner, SpatialOp)


def _views(values: Iterable[SSAValue]) -> tuple[InKernel, ...]:
    """Return the views, positions and constants that `values` are, operands first."""
    found: dict[InKernel, None] = {}
    for value in values:
        if isinstance(view := value.owner, InKernel):
            found |= dict.fromkeys((*_views(view.operands), view))
    return tuple(found)


def _launches(
    name: str, ops: Sequence[SpatialOp | MovingCollective]
) -> Iterator[PlannedKernel]:
    taken: set[str] = set()
    for index, op in enumerate(ops):
        kernel = f"{name}_kernel"
        if len(ops) > 1:
            kernel = f"{name}_{_described(op) or index}_kernel"
        if kernel in taken:
            kernel = f"{name}_{index}_kernel"
        taken.add(kernel)
        scatters = tuple(chain.from_iterable(map(scatterings, op.results)))
        operands = (*op.operands, *(scatter.ids for scatter in scatters))
        read = dict.fromkeys(source for v in operands for source in sources(v))
        ins = tuple(v for v in read if not isinstance(v.owner, InKernel))
        yield PlannedKernel(op, kernel, ins, _views(operands), scatters)


def _described(op: SpatialOp | MovingCollective) -> str | None:
    """Return a kernel's name: its first result, or the value it moves."""
    if isinstance(op, SpatialOp):
        return stored_values(op.outs[0])[0].name_hint
    return f"{VERBS[type(op)]}_{op.input.name_hint or 'value'}"


def outline(function: func.FuncOp, launches: Sequence[PlannedKernel]) -> None:
    """Move the nodes and collectives of `function` into kernels of one launch plan."""
    body = compute_block(function)
    terminator = terminator_of(body)
    plan = _PlanBuilder(body, function)
    for launch in launches:
        plan.launch(launch)
    returned = tuple(terminator.operands)
    program = plan.finish(returned)
    body.insert_op_before(program, terminator)
    place_barriers(program)
    for index, value in enumerate(returned):
        program.results_[index].name_hint = value.name_hint
        terminator.operands[index] = program.results_[index]
    for op in reversed(list(body.ops)):
        if op is not program and op is not terminator:
            Rewriter.erase_op(op)


class _PlanBuilder:
    """A launch plan under construction."""

    def __init__(self, body: Block, function: func.FuncOp):
        self._block = block_taking(body.args)
        self._builder = Builder(InsertPoint.at_end(self._block))
        self._inputs = tuple(body.args)
        self._values: dict[SSAValue, SSAValue] = dict(
            zip(body.args, self._block.args, strict=True)
        )
        region = spmd_region(function)
        self._uneven: UnevenExtents = {} if region is None else uneven_extents(region)

    def launch(self, launch: PlannedKernel) -> None:
        """Add one kernel with its buffers."""
        buffers: list[SSAValue] = []
        for result in launch.results:
            zeroed = isinstance(result.owner, ScatterAddOp)
            op = dataflow.BufferOp(result.type, zeroed=zeroed)
            buffer = self._builder.insert(op)
            buffer.result.name_hint = result.name_hint
            buffers.append(buffer.result)
        ins = [self._values[value] for value in launch.ins]
        kernel = dataflow.KernelOp(launch.name, ins, buffers, _kernel_body(launch))
        # Values that only a view reads do not count: the node has other names.
        values = (*launch.op.operands, *launch.op.results)
        kernel.shards = shards_attr(_shards(values, self._uneven))
        self._builder.insert(kernel)
        for result, filled in zip(launch.results, kernel.results_, strict=True):
            filled.name_hint = result.name_hint
            self._values[result] = filled

    def finish(self, returned: Sequence[SSAValue]) -> dataflow.ProgramOp:
        """Return the plan with the results `returned`."""
        yielded = [self._renamed(value) for value in returned]
        self._builder.insert(dataflow.YieldOp(*yielded))
        types = [value.type for value in returned]
        return dataflow.ProgramOp(self._inputs, types, Region(self._block))

    def _renamed(self, value: SSAValue) -> SSAValue:
        """
        Return a result in the plan, with the renames that follow the stored value.
        """
        if value not in self._values:
            assert isinstance(value.owner, RenameOp)
            self._renamed(value.owner.input)
            self._builder.insert(value.owner.clone(value_mapper=self._values))
        return self._values[value]


def _kernel_body(launch: PlannedKernel) -> Region:
    """Return the body of a kernel: its views, and its node or collective."""
    body = block_taking(launch.ins)
    inner: dict[SSAValue, SSAValue] = dict(zip(launch.ins, body.args, strict=True))
    ops = (*launch.views, launch.op, *launch.scatters)
    body.add_ops([op.clone(value_mapper=inner) for op in ops])
    body.add_op(dataflow.YieldOp(*(inner[value] for value in launch.results)))
    return Region(body)


def _shards(values: Sequence[SSAValue], uneven: UnevenExtents) -> dict[str, int]:
    """Return the extents over all ranks of unevenly sharded dimensions."""
    extents: dict[str, int] = {}
    for value in values:
        extents |= uneven.get(value, {})
    return extents
