"""
`specialize-warps`: loops of which some warps load what the others multiply.

Triton then gives the loads of a loop to a warp of their own, and each group of four
warps a part of the rows, so that no warp waits for a load that it started itself. It
does so for loops with products whose operands come by tensor descriptor, in programs
of four warps: with eight it ignores the request on sm_90 (Triton 3.6 to 3.9, measured
on what it compiles). Only loops with several products, as in attention, in kernels of
two stages: with more, and of one product, results on an H200 were not finite (Triton
3.6.0). Takes functions at the dataflow level, with descriptors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp

from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.compound import ContractOp, IndexOp
from comet.dialects.compound.dims import level_of
from comet.dialects.schedule import CopyOp, TemporalOp
from comet.dialects.schedule.node import NodeOp, outside
from comet.passes.analysis.grid import grid_nodes
from comet.passes.analysis.hardware_kind import require_gpu
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass
from comet.passes.triton.lower_to_triton.workarounds import breaks_warp_groups
from comet.passes.triton.slices import cut_dims

WARPS = 4
"""The warps of a program whose loops Triton specialises."""
STAGES = 2
"""The most stages of a loop with several products; see benchmarks/figures/h200.md."""


@dataclass(frozen=True)
class SpecializeWarpsPass(FunctionPass):
    """Let separate warps load the operands of products."""

    name = "specialize-warps"

    LEVELS = (IRLevel.DATAFLOW,)
    TAKES_COPIES = True

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        system = attached_system(module)
        require_gpu(self.name, system)
        for loop in tuple(specialized_loops(function, gpu_levels(system).memory)):
            loop.specialize = UnitAttr()


def specialized_loops(func: FuncOp, memory: str) -> Iterator[TemporalOp]:
    """Yield the loops of `func` whose warps can be specialised."""
    for grid in grid_nodes(func):
        if grid.launch is None or grid.launch.warps != WARPS:
            continue
        if breaks_warp_groups(grid):
            continue
        for node in grid.walk():
            if not isinstance(node, TemporalOp) or not _is_specialized(node, memory):
                continue
            products = [op for op in node.body.walk() if isinstance(op, ContractOp)]
            if len(products) > 1 and grid.launch.stages <= STAGES:
                yield node


def _is_specialized(node: TemporalOp, memory: str) -> bool:
    """
    Whether all that a loop loads comes by descriptor, for products in it.

    Positions, which masks compare, are computed and not loaded.
    """
    ops = tuple(node.body.walk())
    loads = [
        op
        for op in ops
        if isinstance(op, CopyOp)
        and level_of(op.source) == memory
        and not isinstance(outside(op.source).owner, IndexOp)
    ]
    inside = [op for op in ops if isinstance(op, NodeOp) and cut_dims(op)]
    return (
        len(cut_dims(node)) == 1
        and node.unmask is None
        and not inside
        and any(isinstance(op, ContractOp) for op in ops)
        and bool(loads)
        and all(load.descriptor is not None for load in loads)
    )
