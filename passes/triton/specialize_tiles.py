"""
`specialize-tiles`: chooses the kernels that get producer warps, and their tiles.

A kernel with producer warps has other best tiles than one whose warps all load. For
each kernel with a loop of several products, the pass compares the best tiles of both
forms, and writes `specialize` among the launch numbers if producer warps are faster.
`use-descriptors` and `specialize-warps` then act on these kernels; a lowered copy shows
beforehand whether they can.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import ClassVar, Literal

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import launch_numbers, summarize, tile_blocks
from comet.cost.gpu.device import Device
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.tiling import price
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.schedule import SpatialOp
from comet.passes.analysis.functions import in_copy
from comet.passes.analysis.grid import grid_nodes
from comet.passes.analysis.hardware_kind import attached_gpu
from comet.passes.analysis.levels import IRLevel
from comet.passes.dataflow.outline_kernels import outline, plan_launches
from comet.passes.function_pass import FunctionPass
from comet.passes.schedule.hoist_copies import hoist
from comet.passes.schedule.materialize_copies import materialize
from comet.passes.schedule.plan_string import PLAN, PlanEntry, format_plan, tile_plan_of
from comet.passes.schedule.tile import tile_function
from comet.passes.schedule.tile.gpu import plan_with
from comet.passes.schedule.tile.gpu.space import (
    DOT_DEPTHS,
    LONG_DEPTH,
    KernelTiling,
    PricedTilings,
    Sizes,
    block_sizes,
)
from comet.passes.search import Candidate, Cost, Found, cheapest
from comet.passes.triton.mask_copies import mask_copies
from comet.passes.triton.specialize_warps import specialized_loops
from comet.passes.triton.use_descriptors import descriptor_copies

DEPTHS = (*DOT_DEPTHS, LONG_DEPTH)
"""
Block sizes of summed dimensions; with long blocks, groups wait less for each other.
"""


@dataclass(frozen=True)
class SpecializeTilesPass(FunctionPass):
    """
    Choose the kernels whose warps are specialized, and their tiles.

    Before: a tiled function. After: the same, with `specialize` among the launch
    numbers of some kernels. Needs attached hardware of a GPU.
    """

    name = "specialize-tiles"

    LEVELS = (IRLevel.SCHEDULE,)

    NOTES: ClassVar[Mapping[str, str]] = {"kernels": PLAN}

    kernels: Literal["auto", "all"] = "auto"
    """The kernels that get producer warps: `auto`, where faster; or `all` that can."""

    tiles: Literal["auto", "kept"] = "auto"
    """
    The tiles of these kernels: the fastest (`auto`), or those of the plan (`kept`).
    """

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        system = attached_gpu(self.name, module)
        plan = specialized_plan(
            function, system, always=self.kernels == "all", keep=self.tiles == "kept"
        )
        if plan is not None:
            tile_function(function, plan, system)
            function.attributes[PLAN] = StringAttr(format_plan(tile_plan_of(function)))


def specialized_plan(
    func: FuncOp, system: SystemOp, *, always: bool, keep: bool
) -> tuple[PlanEntry, ...] | None:
    """
    Return the plan of a tiled function in which some kernels have producer warps.

    None if no kernel gets them. Kernels that can have producer warps get them `always`,
    or only where that is faster; with `keep` their tiles stay.
    """
    gpu, levels = device_of(system), gpu_levels(system)
    found: dict[SpatialOp, KernelTiling] = {}
    for node in grid_nodes(func):
        kept: Sizes | None = _kept_sizes(node, gpu) if keep else {}
        if node.launch is not None and kept is not None:
            summary = summarize(node, levels, gpu)
            if tiling := _best_tiling(summary, gpu, kept):
                found[node] = tiling
    if not found:
        return None
    loading = cache(partial(loading_nodes, func, _plan_with(func, found), system))

    def is_chosen(node: SpatialOp, tiling: KernelTiling) -> bool:
        if always:
            return node.node_name in loading()
        return _is_faster(node, tiling, system, loading)

    chosen = {node: tiling for node, tiling in found.items() if is_chosen(node, tiling)}
    return _plan_with(func, chosen) if chosen else None


def specialized_tiling(
    func: FuncOp, node: SpatialOp, system: SystemOp, below: float
) -> KernelTiling | None:
    """
    Return the fastest tiling with producer warps of `node`, the only kernel of `func`.

    The kernel need not have tiles yet. None if it cannot have producer warps, or takes
    no less than the seconds `below` with them.
    """
    gpu = device_of(system)
    tiling = _best_tiling(summarize(node, gpu_levels(system), gpu), gpu, {})
    if tiling is None or tiling.seconds >= below:
        return None
    loading = loading_nodes(func, plan_with({node: tiling}), system)
    return tiling if node.node_name in loading else None


def may_specialize(summary: KernelSummary, gpu: Device) -> bool:
    """Return whether a loop of a kernel may have producer warps."""
    loops = {dot.loops[:1] for dot in summary.products.roles}
    return (
        gpu.triton.specialized is not None
        and gpu.triton.copies.descriptor_bytes > 0
        and len(summary.products.roles) > 1
        and len(loops) == 1
        and () not in loops
        and not (
            summary.nest.group
            or summary.moves.ids
            or summary.live.added
            or summary.nest.seen
        )
        and summary.products.element != "f32"
    )


def _kept_sizes(node: SpatialOp, gpu: Device) -> Sizes | None:
    """Return the present tiles of a kernel, None if producer warps cannot use them."""
    specialized, launch = gpu.triton.specialized, node.launch
    if specialized is None or launch is None:
        return None
    if launch.warps != specialized.warps or launch.stages > specialized.stages:
        return None
    blocks: Sizes = {dim: (size,) for dim, size in tile_blocks(node).items()}
    return {**blocks, "stages": (launch.stages,)}


def _best_tiling(
    summary: KernelSummary, gpu: Device, kept: Sizes
) -> KernelTiling | None:
    """
    Return the fastest tiling with producer warps, with the `kept` sizes.

    None if none fits, or no loop may have such warps.
    """
    specialized = gpu.triton.specialized
    if specialized is None or not may_specialize(summary, gpu):
        return None
    sizes: Sizes = {
        dim: block_sizes(
            summary, dim, None if dim in summary.nest.inner_dims else DEPTHS
        )
        for dim in summary.nest.extents
    }
    numbers: Sizes = {"warps": (specialized.warps,), "stages": (specialized.stages,)}
    sizes = {**sizes, **numbers, **kept}
    priced = PricedTilings(summary, sizes, gpu, specialize=True)
    return next(iter(priced.best(1)), None)


def _is_faster(
    node: SpatialOp,
    tiling: KernelTiling,
    system: SystemOp,
    loading: Callable[[], Collection[str]],
) -> bool:
    """
    Return whether a kernel is faster with other tiles, in which some warps load.

    It is not if it is none of the nodes that `loading` returns, which is called only
    for a kernel that is faster.
    """
    gpu = device_of(system)
    summary = summarize(node, gpu_levels(system), gpu)

    def present() -> Found[bool]:
        assert node.launch is not None
        time = price(summary, tile_blocks(node), launch_numbers(node.launch), gpu)
        return Found(False, Cost(float(time.seconds)), time.spent.bound)

    def specialized() -> Found[bool]:
        return Found(True, Cost(tiling.seconds), tiling.bound)

    sizes = (
        f"{dim}={tiling.blocks[dim]}"
        for dim in (*summary.nest.grid, *summary.nest.loops)
    )
    candidates = [
        Candidate("all load", present),
        Candidate(f"some load, {' '.join(sizes)}", specialized),
    ]

    def confirm(specialized: bool) -> None:
        if specialized and node.node_name not in loading():
            raise PassFailedException("specialize-warps takes none of its loops")

    return cheapest("warps", f"@{node.node_name}", candidates, confirm=confirm).result


def _plan_with(
    func: FuncOp, tilings: Mapping[SpatialOp, KernelTiling]
) -> tuple[PlanEntry, ...]:
    """Return the plan of a function with other tiles of some kernels."""
    entries = {entry.name: entry for entry in tile_plan_of(func)}
    entries |= {entry.name: entry for entry in plan_with(tilings)}
    return tuple(entries.values())


def _copied(func: FuncOp) -> FuncOp:
    """Return a copy of a function, in a copy of its module if it is in one."""
    return func.clone() if func.parent_op() is None else in_copy(func)


def loading_nodes(
    func: FuncOp, plan: Sequence[PlanEntry], system: SystemOp
) -> frozenset[str]:
    """Return the names of the nodes whose loops `specialize-warps` takes, in a copy."""
    levels, copy = gpu_levels(system), _copied(func)
    tile_function(copy, plan, system)
    outline(copy, plan_launches(copy))
    materialize(copy)
    hoist(copy)
    mask_copies(copy)
    alignment = device_of(system).triton.copies.descriptor_bytes
    for each in tuple(descriptor_copies(grid_nodes(copy), levels, alignment)):
        each.descriptor = UnitAttr()
    return frozenset(
        grid.node_name or ""
        for grid in grid_nodes(copy)
        if any(True for _ in specialized_loops(grid, system))
    )
