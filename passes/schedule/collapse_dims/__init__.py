"""
`collapse-dims`: schedule level -> same level, with fewer dimensions in kernels.

Dimensions that are adjacent, in the same order, in all tensors of a kernel can become
one dimension, as in MLIR's `collapse_shape`. So 8 sequences of 197 tokens are 1,576
rows, which need fewer and fuller blocks; 12 heads of 64 columns are 768 columns, and a
program may take those of more than one head. `runs` finds such dimensions, `choice`
says which to collapse, and `rewrite` collapses them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.dialects.arch import SystemOp
from comet.dialects.errors import OpError
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.grid import grid_nodes
from comet.passes.analysis.hardware_kind import attached_gpu
from comet.passes.analysis.levels import IRLevel, spmd_region
from comet.passes.function_pass import FunctionPass
from comet.passes.pipeline import ChoosingPass
from comet.passes.schedule.collapse_dims.choice import (
    all_runs,
    chosen_runs,
    fastest_tiling,
    planned_runs,
)
from comet.passes.schedule.collapse_dims.rewrite import collapse
from comet.passes.schedule.collapse_dims.runs import (
    Run,
    collapsible_runs,
    subruns,
)
from comet.passes.schedule.node_names import name_nodes
from comet.passes.schedule.plan_string import PLAN, PlanEntry, format_plan, parse_plan
from comet.passes.schedule.tile.gpu import plan_with, set_estimate

COLLAPSED = "comet.collapsed"
"""The attribute of a function with the dimensions that are one, by kernel."""

AUTO, ALL, NONE = "auto", "all", "none"


@dataclass(frozen=True)
class Collapsed:
    """A kernel, and its runs of dimensions that become one dimension each."""

    node: str
    """The name of its grid node."""
    runs: tuple[Run, ...]

    def __str__(self) -> str:
        return f"{self.node}: {', '.join(map(' '.join, self.runs))}"


@dataclass(frozen=True)
class CollapseDimsPass(ChoosingPass, FunctionPass):
    """
    Collapse dimensions of kernels that are adjacent in memory.

    Before: kernels that are not tiled. After: some have fewer dimensions; they read
    views of their operands, and their readers read views of their results. Kernels of
    several ranks stay. Needs attached hardware of a GPU.
    """

    name = "collapse-dims"

    LEVELS = (IRLevel.SCHEDULE,)

    NOTES: ClassVar[Mapping[str, str]] = {"dims": COLLAPSED}

    dims: str = AUTO
    """
    The dimensions that are one, by kernel, as in "y: B S, H D; z: B S"; `all` that can;
    `none`; or `auto`, where larger or fuller blocks are faster.
    """

    factors: str | None = None
    """
    The plan that `tile` will have, if it is given. Then the dimensions that are `auto`
    are those that it calls by their names together, such as BS in "y: BS=13 H=8".
    """

    def __post_init__(self) -> None:
        _ = parse_collapsed(self.dims), self._planned

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        system = attached_gpu(self.name, module)
        name_nodes(function)
        kernels = parse_collapsed(self.dims)
        if self.dims in (AUTO, ALL) and spmd_region(function) is None:
            kernels = tuple(starmap(Collapsed, self._runs(function, system).items()))
        rewrite(function, kernels, system)
        text = "; ".join(map(str, kernels)) or NONE
        function.attributes[COLLAPSED] = StringAttr(text)

    @property
    def _planned(self) -> tuple[PlanEntry, ...] | None:
        """The entries of the plan that is given, None if it is to be chosen."""
        return None if self.factors is None else parse_plan(self.factors)

    def _runs(self, func: FuncOp, system: SystemOp) -> Mapping[str, tuple[Run, ...]]:
        """Return the runs that become one, by the name of the kernel."""
        if self.dims == ALL:
            return all_runs(func)
        if (plan := self._planned) is not None:
            return planned_runs(func, plan)
        return chosen_runs(func, system)


def parse_collapsed(text: str) -> tuple[Collapsed, ...]:
    """
    Return the kernels that a text names, with their runs of dimensions.

    Raises PassFailedException for text of another form, for a kernel or a dimension of
    it that is named twice, and for a run of one dimension.
    """
    if text in (AUTO, ALL, NONE):
        return ()
    found = tuple(map(_parse_kernel, filter(str.strip, text.split(";"))))
    names = [each.node for each in found]
    for name in names:
        if names.count(name) > 1:
            raise PassFailedException(
                f"collapse-dims: dims names @{name} twice; write its dimensions once, "
                "with commas between those that become different ones"
            )
    return found


def _parse_kernel(text: str) -> Collapsed:
    name, _, dims = text.partition(":")
    runs = tuple(tuple(run.split()) for run in dims.split(","))
    all_dims = [dim for run in runs for dim in run]
    if len(set(all_dims)) < len(all_dims):
        raise PassFailedException(
            f"collapse-dims: '{text.strip()}' names a dimension twice; write it in one "
            "of those that become one"
        )
    if not name.strip() or any(len(run) < 2 for run in runs):
        raise PassFailedException(
            f"collapse-dims: '{text.strip()}' is not of the form KERNEL: DIM DIM .., "
            "with two dimensions or more that become one, and commas between several"
        )
    return Collapsed(name.strip(), runs)


def rewrite(func: FuncOp, kernels: Sequence[Collapsed], system: SystemOp) -> None:
    """
    Collapse dimensions of kernels, and choose their tiles anew if `func` has a plan.

    Raises PassFailedException for kernels of several ranks, for a name that no kernel
    has, for dimensions that cannot be one, and for a kernel of which no tiles fit then.
    """
    nodes = {node.node_name: node for node in grid_nodes(func)}
    plan = func.attributes.get(PLAN)
    entries = parse_plan(plan.data) if isinstance(plan, StringAttr) else None
    for each in kernels:
        node = _named(func, each, nodes)
        old = {op.node_name for op in node.walk() if isinstance(op, NodeOp)}
        for run in each.runs:
            collapse(node, run)
        name_nodes(func)
        if entries is not None:
            kept = [entry for entry in entries if entry.name not in old]
            entries = (*kept, *_planned(node, system))
    if entries is not None:
        func.attributes[PLAN] = StringAttr(format_plan(entries))


def _planned(node: SpatialOp, system: SystemOp) -> tuple[PlanEntry, ...]:
    """Return the plan of the best tiles of a kernel, and note its time."""
    if (tiling := fastest_tiling(node, system)) is None:
        raise OpError(
            node,
            f"collapse-dims: no tiles of @{node.node_name} fit; name other dimensions",
        )
    set_estimate(node, tiling.seconds - device_of(system).times.launch)
    return plan_with({node: tiling})


def _named(
    func: FuncOp, kernel: Collapsed, nodes: Mapping[str | None, SpatialOp]
) -> SpatialOp:
    """Return the kernel with a name, after a check of its runs."""
    if spmd_region(func) is not None:
        raise OpError(
            func,
            "collapse-dims: kernels of several ranks keep their dimensions, which name "
            "what is exchanged; leave dims out",
        )
    if (node := nodes.get(kernel.node)) is None:
        raise OpError(
            func,
            f"collapse-dims: dims names the kernel @{kernel.node}; "
            f"there are {', '.join(f'@{name}' for name in nodes)}",
        )
    legal = collapsible_runs(node)
    for run in kernel.runs:
        if all(run not in subruns(whole) for whole in legal):
            others = "none are next to each other in all of its tensors; leave it out"
            if legal:
                others = f"{' or '.join(map(' '.join, legal))} can be"
            raise OpError(
                node,
                f"collapse-dims: {' '.join(run)} of @{kernel.node} cannot be one "
                f"dimension; {others}",
            )
    return node
