"""
The `tile` pass: factors and loop orders for the nodes of a tile tree.

GPUs have the folder `gpu`. On accelerators a search works on a `template`; the
`candidates` are arrays of its factors, which `formulas` price. `accelerator` is
steepest descent, by `moves`, from the `finest` tiles; `exact` is branch and bound over
a `factor_space`, or `enumerate_plans` where there are no bounds. `misfit` says why no
tiles are legal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import VerifyException

from comet.cost.from_ir.capacity import Sizes, describe_overflow, overflow
from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.compound.dims import ceil_div, extents_of
from comet.dialects.errors import OpError, op_of
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import LoopAttr
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.levels import IRLevel, compute_block
from comet.passes.function_pass import FunctionPass
from comet.passes.pipeline import ChoosingPass
from comet.passes.schedule.node_names import name_nodes
from comet.passes.schedule.plan_string import (
    PLAN,
    Numbers,
    PlanEntry,
    cuttable,
    format_plan,
    parse_plan,
    plan_nodes,
    tile_plan_of,
    unknown_node,
    with_factors,
)
from comet.passes.schedule.retile import retile, set_loops
from comet.passes.search.goal import (
    ChoosesByGoal,
    Goal,
    ModelOption,
    ObjectiveOption,
)


@dataclass(frozen=True)
class TilePass(ChoosingPass, FunctionPass, ChoosesByGoal):
    """
    Give every temporal node and launch grid its loops, and recompute all types.

    Before: a tile tree of any factors. After: the tree with the plan's factors, and the
    plan on the function. Nodes without a name get one. Needs attached hardware.
    """

    name = "tile"

    LEVELS = (IRLevel.SCHEDULE,)

    NOTES: ClassVar[Mapping[str, str]] = {"factors": PLAN}

    factors: str = "auto"
    """
    A plan string, or `auto`: the function's `comet.plan` if it has one, else the plan
    that the cost model ranks first. In a plan M=4 cuts M into four tiles; in kernels of
    GPUs BLOCK_M=64 does so into tiles of at most 64.
    """

    model: ModelOption = "paper"

    objective: ObjectiveOption = "latency"

    def __post_init__(self) -> None:
        if self.factors != "auto":
            parse_plan(self.factors)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        system = attached_system(module)
        self.goal.check(self.name, on_gpu=system.gpu is not None)
        name_nodes(function)
        plan = self.plan(function, system)
        tile_function(function, plan, system)
        function.attributes[PLAN] = StringAttr(format_plan(tile_plan_of(function)))

    def plan(self, func: FuncOp, system: SystemOp) -> Sequence[PlanEntry]:
        """Return the given plan, or else the chosen one."""
        if self.factors != "auto":
            return parse_plan(self.factors)
        return chosen_plan(func, system, self.goal)


def tile_function(func: FuncOp, plan: Sequence[PlanEntry], system: SystemOp) -> None:
    """Apply a plan, and finish the kernels of a GPU."""
    plan = with_factors(plan, plan_nodes(func))
    apply_plan(func, plan, system)
    if system.gpu is not None:
        from comet.passes.schedule.tile.gpu.finish import finish_kernels

        finish_kernels(func, system, plan)


def chosen_plan(func: FuncOp, system: SystemOp, goal: Goal) -> Sequence[PlanEntry]:
    """Return the plan that `func` has as attribute, or the best that a search finds."""
    plan_attr = func.attributes.get(PLAN)
    if isinstance(plan_attr, StringAttr):
        return parse_plan(plan_attr.data)
    if system.gpu is not None:
        from comet.passes.schedule.tile.gpu import choose

        return choose(func, system)
    from comet.passes.schedule.tile.accelerator import search
    from comet.passes.schedule.tile.template import make_template

    return search(make_template(func, system), goal).entries()


def apply_plan(func: FuncOp, plan: Sequence[PlanEntry], system: SystemOp) -> None:
    """
    Give the nodes of `func` the loops of `plan`; a node without an entry gets none.

    Raises PassFailedException if a node already has programs of the launch grid, if an
    entry is for no node, if a body cannot be computed tile by tile along a loop, and,
    on accelerators, if a factor does not divide or a tile does not fit. Kernels of a
    GPU are checked by `finish_kernels`.
    """
    nodes = plan_nodes(func)
    _check_unmapped(nodes.values())
    for entry in plan:
        _check_entry(entry, nodes)
    entries = {entry.name: entry for entry in plan}
    for name, node in nodes.items():
        entry = entries.get(name, PlanEntry(name, ()))
        set_loops(node, _loops(node, entry.loops))
    try:
        retile(func)
    except VerifyException as error:
        raise OpError(op_of(error) or func, f"tile: {error}") from error
    for node in nodes.values():
        _check_factors(node)
    if system.gpu is None:  # kernels are checked with their launch numbers
        _check_capacity(func, system)


def _check_capacity(func: FuncOp, system: SystemOp) -> None:
    """
    Check that every level below the outermost one holds its live values.

    Raises PassFailedException with the level, the largest tensor, and the bytes.
    """
    if (found := overflow(compute_block(func), system, Sizes())) is not None:
        raise OpError(
            func,
            f"tile: {describe_overflow(found, system)}: raise the factors above "
            f"{found.level}, or fuse less",
        )


def _check_unmapped(nodes: Iterable[NodeOp]) -> None:
    for node in nodes:
        if isinstance(node, SpatialOp) and node.programs is not None:
            raise OpError(
                node,
                f"tile: @{node.node_name} has programs of the launch grid, which hold "
                "for its present loops; run tile before map-grid",
            )


def _check_entry(entry: PlanEntry, nodes: Mapping[str, NodeOp]) -> None:
    if (node := nodes.get(entry.name)) is None:
        raise unknown_node(entry, nodes)
    dims = cuttable(node)
    for dim, _ in entry.loops:
        if dim not in dims:
            raise OpError(
                node,
                f"tile: plan entry '{entry}' names the unknown dimension {dim}; "
                f"@{entry.name} has {', '.join(dims)}",
            )
    if entry.launch and not isinstance(node, SpatialOp):
        raise OpError(
            node,
            f"tile: plan entry '{entry}' has launch numbers, and @{entry.name} is not "
            "launched; they are for the kernels of a GPU",
        )


def _loops(node: NodeOp, planned: Numbers) -> list[LoopAttr]:
    """
    Return the loops of `node` for those of a plan.

    A node in a kernel, or of a fold, keeps all its loops in their order; loops that are
    not `planned` get factor 1.
    """
    loops = list(planned)
    if node.in_kernel or node.init_args():
        factors = dict(planned)
        loops = [(dim, factors.get(dim, 1)) for dim in cuttable(node)]
    if isinstance(node, SpatialOp):
        return [LoopAttr(d, f, f"g{i}") for i, (d, f) in enumerate(loops)]
    return [LoopAttr(dim, factor) for dim, factor in loops]


def _check_factors(node: NodeOp) -> None:
    extents = node.extents
    for dim, factor in node.factors.items():
        extent = extents[dim]
        if node.in_kernel and any(
            not node.tile_fits(dim, outer, tile) for outer, tile in _tiles(node, dim)
        ):
            raise OpError(
                node,
                f"tile: {dim} = {extent} cannot be cut into {factor} tiles of one "
                f"size; {ceil_div(extent, ceil_div(extent, factor))} is possible",
            )
        if not node.in_kernel and extent % factor:
            raise OpError(
                node,
                f"tile: factor {factor} of {dim} does not divide its extent {extent} "
                f"in @{node.node_name}; take a divisor of {extent}",
            )


def _tiles(node: NodeOp, dim: str) -> list[tuple[int, int]]:
    """Return (extent, tile) along `dim` of every operand of `node` that has it."""
    return [
        (extents_of(outer)[dim], extents_of(inner)[dim])
        for outer, inner in node.sliced
        if dim in extents_of(outer)
    ]
