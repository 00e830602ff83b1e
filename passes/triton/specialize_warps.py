"""
`specialize-warps`: loops of which some warps load what the others multiply.

Triton then gives the loads of a loop to a producer warp, and each group of four
warps a part of the rows, so that no warp waits for a load that it started itself. It
does so for loops with products whose operands come by tensor descriptor, in programs
of four warps: with eight it ignores the request on sm_90 (Triton 3.6 to 3.9, measured
on what it compiles). Only loops with several products, as in attention, in kernels of
two stages: with more, and of one product, results on an H200 were not finite (Triton
3.6.0). Not those that store, or that read a tile loaded by pointers before them, such
as row statistics: Triton 3.9 fails to compile them. Takes functions at the dataflow
level, with descriptors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp

from comet.cost.from_ir.gpus import device_of
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.compound import ContractOp, IndexOp
from comet.dialects.compound.dims import extents_of, level_of
from comet.dialects.errors import OpError, called
from comet.dialects.schedule import CopyOp, SpatialOp, TemporalOp
from comet.dialects.schedule.launch import LaunchAttr
from comet.dialects.schedule.node import NodeOp, outside
from comet.passes.analysis.grid import grid_nodes
from comet.passes.analysis.hardware_kind import attached_gpu
from comet.passes.analysis.levels import IRLevel
from comet.passes.analysis.op_groups import defining_ops
from comet.passes.function_pass import FunctionPass
from comet.passes.search.record import Choice, Row, session
from comet.passes.triton.lower_to_triton.workarounds import breaks_warp_groups
from comet.passes.triton.slices import cut_dims

SPECIALIZED: Final = "specialized"
"""The option for kernels whose launch numbers say `specialize`."""
Kernels = Literal["all", "specialized"]


@dataclass(frozen=True)
class SpecializeWarpsPass(FunctionPass):
    """Let separate warps load the operands of products."""

    name = "specialize-warps"

    LEVELS = (IRLevel.DATAFLOW,)
    TAKES_COPIES = True

    kernels: Kernels = "all"
    """
    The kernels whose loops are specialized: `all` that can, or those whose launch
    numbers say `specialize`, which is an error where they cannot.
    """

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        system = attached_gpu(self.name, module)
        for loop in tuple(plan_specialized(function, system, self.kernels)):
            loop.specialize = UnitAttr()


def plan_specialized(
    func: FuncOp, system: SystemOp, kernels: Kernels
) -> Iterator[TemporalOp]:
    """
    Yield the loops of a function that are specialized.

    Records why others with products are not. Raises PassFailedException for a kernel
    that asks for it and has no such loop.
    """
    for grid in grid_nodes(func):
        asked = grid.launch is not None and grid.launch.specialize
        if kernels != "all" and not asked:
            continue
        found = tuple(specialized_loops(grid, system))
        yield from found
        if not found and (reason := _refusal(grid, system)):
            if asked:
                raise OpError(grid, f"specialize-warps: {reason}")
            _remark(grid, reason)


def _remark(grid: SpatialOp, reason: str) -> None:
    """Record why a kernel is not specialized, for `--explain`."""
    rows = (Row("warps that load", None, reason),)
    with session() as current:
        within, place = current.within, f"@{grid.node_name}"
        current.choices.append(Choice("specialize", place, within, rows, None))


def specialized_loops(grid: SpatialOp, system: SystemOp) -> Iterator[TemporalOp]:
    """Yield the loops of a kernel whose warps can be specialized."""
    if _kernel_refusal(grid, system):
        return
    memory = gpu_levels(system).memory
    for node in _loops(grid):
        if not _loop_refusal(node, memory):
            yield node


def _refusal(grid: SpatialOp, system: SystemOp) -> str:
    """Return why no loop of a kernel is specialized, empty if it has no product."""
    loops = [node for node in _loops(grid) if any(_products(node))]
    if not loops:
        return ""
    memory = gpu_levels(system).memory
    return _kernel_refusal(grid, system) or _loop_refusal(loops[0], memory)


def _kernel_refusal(grid: SpatialOp, system: SystemOp) -> str:
    """Return why no loop of a kernel can be specialized, empty if one may be."""
    launch = grid.launch or LaunchAttr()
    if (numbers := device_of(system).triton.specialized) is None:
        return (
            f"@{system.system_name} has no numbers of specialized warps; say "
            "`specialized` in its hardware file"
        )
    if launch.warps != numbers.warps:
        return (
            f"programs have {launch.warps} warps, and Triton needs "
            f"warps={numbers.warps}"
        )
    if launch.stages > numbers.stages:
        return (
            f"the loop has {launch.stages} stages, and results are wrong with more "
            f"than stages={numbers.stages}"
        )
    if breaks_warp_groups(grid):
        return "a descriptor has axes that its tile lacks, and Triton fails"
    return ""


def _loops(grid: SpatialOp) -> Iterator[TemporalOp]:
    return (op for op in grid.walk() if isinstance(op, TemporalOp))


def _products(node: TemporalOp) -> Iterator[ContractOp]:
    return (op for op in node.body.walk() if isinstance(op, ContractOp))


def _loop_refusal(node: TemporalOp, memory: str) -> str:
    """
    Return why a loop cannot be specialized, empty if it can.

    All that it loads comes by descriptor, for several products in it. Positions, which
    masks compare, are computed and not loaded.
    """
    ops, name = tuple(node.body.walk()), f"the loop @{node.node_name}"
    if sum(1 for _ in _products(node)) < 2:
        return f"{name} has one product, and results are wrong with fewer than two"
    inside = [op for op in ops if isinstance(op, NodeOp) and cut_dims(op)]
    if len(cut_dims(node)) != 1 or inside:
        return f"{name} is not the only one around its products"
    if node.unmask is not None:
        return f"{name} is written as two loops; use unmask=none"
    loads = [
        op
        for op in ops
        if isinstance(op, CopyOp)
        and level_of(op.source) == memory
        and not isinstance(outside(op.source).owner, IndexOp)
    ]
    copies = (op for op in ops if isinstance(op, CopyOp))
    if any(level_of(copy.result) == memory for copy in copies):
        return f"{name} stores in its iterations, and Triton fails"
    for load in loads:
        if load.descriptor is None:
            return (
                f"{name} loads {called(outside(load.source))} by pointers; see "
                "use-descriptors"
            )
    if (load := _loaded_before(node, memory)) is not None:
        hint = outside(load.source).name_hint
        return f"{name} reads %{hint}, which pointers load before it, and Triton fails"
    return "" if loads else f"{name} loads nothing"


def _loaded_before(node: TemporalOp, memory: str) -> CopyOp | None:
    """Return a load of a tile, by pointers before a loop, that the loop reads."""
    block = node.parent_block()
    assert block is not None
    read = defining_ops(node.operands, set(block.ops))
    for op in block.ops:
        if (
            isinstance(op, CopyOp)
            and op in read
            and level_of(op.source) == memory
            and op.descriptor is None
            and max(extents_of(op.result).values(), default=1) > 1
            and not isinstance(outside(op.source).owner, IndexOp)
        ):
            return op
    return None
