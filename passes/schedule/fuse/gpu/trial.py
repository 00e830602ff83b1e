"""
The price of each kernel with its best tiles, and whether it can be lowered to Triton.

A kernel is built in a function that has nothing else, and tried once, also if several
choices have it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriteWalker
from xdsl.transforms.canonicalize import CanonicalizationRewritePattern
from xdsl.transforms.common_subexpression_elimination import cse
from xdsl.transforms.dead_code_elimination import region_dce
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import launch_numbers, summarize
from comet.cost.from_ir.products import summarize_products
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.collective.base import CollectiveOp
from comet.dialects.compound import FillOp, IndexOp, View
from comet.dialects.compound.dims import joined_extents, with_level
from comet.dialects.compound.gather import scatterings
from comet.dialects.dataflow import KernelOp
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.grid import grid_nodes
from comet.passes.dataflow.launches import (
    LaunchPrices,
    Programs,
    extents_around,
    waits,
)
from comet.passes.dataflow.outline_kernels import outline, plan_launches
from comet.passes.schedule.fuse.gpu.groups import values_read
from comet.passes.schedule.fuse.gpu.kernel_tree import KernelLevels
from comet.passes.schedule.fuse.gpu.scatters import left_in_memory
from comet.passes.schedule.node_names import name_nodes
from comet.passes.schedule.retile import retile
from comet.passes.schedule.tile import apply_plan
from comet.passes.schedule.tile.gpu import (
    KernelTiling,
    best_tiling,
    misfit,
    plan_with,
)
from comet.passes.schedule.tile.gpu.space import may_have_tiling
from comet.passes.schedule.tile_tree import (
    InsertionScope,
    Spatial,
    build,
    chunks_of,
    loops_below,
)
from comet.passes.triton.lower_to_triton import prepare
from comet.passes.triton.lower_to_triton.kernel import lower_kernel, unwritable


@dataclass(frozen=True, eq=False)
class Trial:
    """A kernel of which some tiles fit: its node, and the best tiles."""

    node: SpatialOp
    tiling: KernelTiling
    programs: tuple[Programs, ...]
    """The work of its programs, empty if it may not share a launch."""


class Trials:
    """
    The kernels that were tried on one GPU.

    `launches_merged`: kernels that do not depend on each other may share a launch.
    """

    def __init__(self, system: SystemOp, *, launches_merged: bool = False):
        self._system, self._levels = system, gpu_levels(system)
        self._launches_merged = launches_merged
        self.gpu = device_of(system)
        self.launches = LaunchPrices[Trial](self.gpu, lambda trial: trial.programs)
        """The prices of launches that several kernels share."""
        self._trials: dict[Spatial, Trial | None] = {}
        """None for a kernel of which no tiles fit."""
        self._refusals: dict[Spatial, str] = {}

    def _tried(self, kernel: Spatial) -> Trial | None:
        if kernel not in self._trials:
            self._trials[kernel] = self._try(kernel)
        return self._trials[kernel]

    def _try(self, kernel: Spatial) -> Trial | None:
        """Build a kernel and find its best tiles; None if no tiles fit."""
        grid = tuple(row.dim for row in kernel.rows)
        products = summarize_products(kernel.ops, grid, tuple(loops_below(kernel)))
        if not may_have_tiling(products, self.gpu):
            return None
        node = self._built(kernel)
        summary = summarize(node, self._levels, self.gpu)
        tiling = best_tiling(node, summary, self.gpu)
        if tiling is None:
            return None
        numbers = launch_numbers(tiling.launch)
        tree = Programs(summary, tiling.blocks, numbers, extents_around(node))
        alone = waits(node) or any(map(scatterings, kernel.outs))
        merged = self._launches_merged and not alone
        return Trial(node, tiling, (tree,) if merged else ())

    def _built(self, kernel: Spatial) -> SpatialOp:
        (node,) = grid_nodes(standalone_function(kernel, self._levels))
        return node

    def fitting(self, kernel: Spatial) -> Trial:
        """Return the trial of a kernel that is known to fit."""
        trial = self._tried(kernel)
        assert trial is not None
        return trial

    def tiling(self, kernel: Spatial) -> KernelTiling:
        """Return the best tiles of a kernel that is known to fit."""
        return self.fitting(kernel).tiling

    def seconds(self, kernel: Spatial) -> float:
        """Return the seconds of a launch with the best tiles, infinite if none fit."""
        trial = self._tried(kernel)
        return inf if trial is None else trial.tiling.seconds

    def fits(self, kernel: Spatial) -> bool:
        """Return whether any tiles of a kernel fit the GPU."""
        return self._tried(kernel) is not None

    def limit(self, kernel: Spatial) -> str:
        """Return the resource that limits a kernel with its best tiles."""
        trial = self._tried(kernel)
        return "" if trial is None else trial.tiling.limit

    def misfit(self, kernel: Spatial) -> str:
        """Return why no tiles of a kernel fit the GPU, empty if some do."""
        if self.fits(kernel):
            return ""
        reason = misfit(self._built(kernel), self._levels, self.gpu)
        return f"fuse: {reason}; make a dimension smaller, or split it"

    def refusal(self, kernel: Spatial) -> str:
        """Return why a kernel with its best tiles is not lowered, empty if it is."""
        if kernel not in self._refusals:
            trial = self.fitting(kernel)
            self._refusals[kernel] = refusal(trial.node, trial.tiling, self._system)
        return self._refusals[kernel]


def standalone_function(kernel: Spatial, levels: GpuLevels) -> FuncOp:
    """
    Return a function with one kernel, and the kernel's inputs as arguments.

    Raises PassFailedException if a loop is over a dimension that no input has.
    """
    scope = InsertionScope(Block(), None, KernelLevels(levels), chunks_of(kernel.ops))
    for value in values_read(kernel.ops):
        _add_input(value, scope)
    build(kernel, scope)
    for value in kernel.outs:
        for op in scatterings(value):
            _add_input(op.ids, scope)
            scope.insert(op)
    results = [scope.at(value, levels.memory) for value in left_in_memory(kernel)]
    scope.block.add_op(ReturnOp(*results))
    types = scope.block.arg_types, [value.type for value in results]
    func = FuncOp("alone", types, Region(scope.block))
    _check_loops(func)
    retile(func)
    simplify(func)
    name_nodes(func)
    return func


def _check_loops(func: FuncOp) -> None:
    """Check that every node has an input along each dimension that it loops over."""
    for node in func.walk():
        if not isinstance(node, NodeOp):
            continue
        known = joined_extents((*node.ins, *node.init_args()))
        for dim in node.factors:
            if dim not in known:
                raise PassFailedException(
                    f"fuse: the node of %{node.outs[0].name_hint} loops over {dim}, "
                    "which only constants have; make the constant an argument of the "
                    "function"
                )


def _add_input(value: SSAValue, scope: InsertionScope) -> None:
    """Add an argument for `value`, or for the value that it is a view of."""
    owner = value.owner
    if value in scope.values or isinstance(owner, FillOp):
        return
    if isinstance(owner, View | IndexOp | CollectiveOp):
        for operand in owner.operands:
            _add_input(operand, scope)
        scope.insert(owner)
        return
    type_ = with_level(value.type, scope.levels.at(value, None))
    scope.add(value, scope.block.insert_arg(type_, len(scope.block.args)))


def refusal(node: SpatialOp, tiling: KernelTiling, system: SystemOp) -> str:
    """
    Return why `lower-to-triton` rejects a kernel with its tiles, empty if it accepts.

    The kernel is the only one of its function, and is lowered in place.
    """
    func = node.parent_op()
    assert isinstance(func, FuncOp)
    try:
        apply_plan(func, plan_with({node: tiling}), system)
        outline(func, plan_launches(func))
        prepare(func)
        for op in list(func.walk()):
            # No other kernels would change the element types.
            if isinstance(op, KernelOp) and op.nodes and unwritable(op) is None:
                lower_kernel(op)
    except PassFailedException as error:
        return f"fuse: {error}"
    return ""


def simplify(func: FuncOp) -> None:
    """Canonicalize, and remove dead code and common subexpressions."""
    PatternRewriteWalker(
        CanonicalizationRewritePattern(), post_walk_func=region_dce
    ).rewrite_region(func.body)
    cse(func)
