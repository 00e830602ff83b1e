"""
Which kernels get warps of their own that load: by estimated time, where they can.

That takes loops with several products, tiles of its own, and copies by descriptor; see
`specialize-warps` for the conditions, which the chosen tiles are tried against.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import launch_numbers, summarize, tile_blocks
from comet.cost.gpu.device import Device
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.tiling import price
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.schedule import SpatialOp
from comet.passes.analysis.grid import grid_nodes
from comet.passes.dataflow.outline_kernels import outline, plan_launches
from comet.passes.schedule.hoist_copies import hoist
from comet.passes.schedule.materialize_copies import materialize
from comet.passes.schedule.plan_string import PlanEntry, tile_plan_of
from comet.passes.schedule.tile.gpu import plan_with
from comet.passes.schedule.tile.gpu.space import (
    DOT_DEPTHS,
    KernelTiling,
    PricedTilings,
    Sizes,
    block_sizes,
)
from comet.passes.search import Candidate, Cost, Found, cheapest
from comet.passes.triton.mask_copies import mask_copies
from comet.passes.triton.specialize_warps import specialized_loops
from comet.passes.triton.use_descriptors import descriptor_copies

Tile: TypeAlias = Callable[[FuncOp, Sequence[PlanEntry], SystemOp], None]

DEPTHS = (*DOT_DEPTHS, 128)
"""
Blocks of summed dimensions: with long ones, groups wait for each other less often.
"""


def specialized_plan(
    func: FuncOp, system: SystemOp, tile: Tile, *, always: bool, keep_tiles: bool
) -> tuple[PlanEntry, ...] | None:
    """
    Return the plan of a tiled function, with kernels in which warps of their own load.

    None if there are none. Those that can are specialised `always`, or where that is
    faster; with `keep_tiles` in the tiles that they have. `tile` applies a plan.
    """
    gpu = device_of(system)
    chosen: dict[SpatialOp, KernelTiling] = {}
    for node in grid_nodes(func):
        summary = summarize(node, gpu_levels(system), gpu)
        if may_specialize(summary, gpu) and node.launch is not None:
            tiling = _best_tiling(node, summary, gpu, keep_tiles=keep_tiles)
            if tiling and (always or _is_faster(node, summary, tiling, gpu)):
                chosen[node] = tiling
    if not chosen:
        return None
    loading = _loading(func, _with(func, chosen), system, tile)
    chosen = {node: t for node, t in chosen.items() if node.node_name in loading}
    return _with(func, chosen) if chosen else None


def may_specialize(summary: KernelSummary, gpu: Device) -> bool:
    """Return whether a loop of a kernel may have warps of its own that load."""
    loops = {dot.loops[:1] for dot in summary.products}
    return (
        gpu.compiled.specialized is not None
        and gpu.compiled.descriptor_bytes > 0
        and len(summary.products) > 1
        and len(loops) == 1
        and () not in loops
        and not (summary.group or summary.ids or summary.added or summary.seen)
        and summary.dot_type != "f32"
    )


def _best_tiling(
    node: SpatialOp, summary: KernelSummary, gpu: Device, *, keep_tiles: bool
) -> KernelTiling | None:
    """Return the fastest tiling of a kernel that is specialised, None if none fits."""
    sizes: Sizes = {
        dim: block_sizes(summary, dim, None if dim in summary.inner_dims else DEPTHS)
        for dim in summary.extents
    }
    if (specialized := gpu.compiled.specialized) is None:
        return None
    warps, stages = specialized.warps, specialized.stages
    numbers = {"warps": warps, "stages": stages}
    if keep_tiles and node.launch is not None:
        sizes = {dim: (size,) for dim, size in tile_blocks(node).items()}
        numbers |= {"stages": node.launch.stages}
        if node.launch.warps != warps or node.launch.stages > stages:
            return None
    launch = {name: (number,) for name, number in numbers.items()}
    priced = PricedTilings(summary, {**sizes, **launch}, gpu, specialize=True)
    return next(iter(priced.best(1)), None)


def _is_faster(
    node: SpatialOp, summary: KernelSummary, tiling: KernelTiling, gpu: Device
) -> bool:
    """Return whether a kernel is faster with other tiles, in which some warps load."""

    def present() -> Found[bool]:
        assert node.launch is not None
        time = price(summary, tile_blocks(node), launch_numbers(node.launch), gpu)
        return Found(False, Cost(float(time.seconds)))

    def specialized() -> Found[bool]:
        return Found(True, Cost(tiling.seconds), tiling.limit)

    sizes = (f"{dim}={tiling.blocks[dim]}" for dim in (*summary.grid, *summary.loops))
    candidates = [
        Candidate("all load", present),
        Candidate(f"some load, {' '.join(sizes)}", specialized),
    ]
    return cheapest("warps", f"@{node.node_name}", candidates).result


def _with(
    func: FuncOp, tilings: Mapping[SpatialOp, KernelTiling]
) -> tuple[PlanEntry, ...]:
    """Return the plan of a function with other tiles of some kernels."""
    entries = {entry.name: entry for entry in tile_plan_of(func)}
    entries |= {entry.name: entry for entry in plan_with(tilings)}
    return tuple(entries.values())


def _loading(
    func: FuncOp, plan: Sequence[PlanEntry], system: SystemOp, tile: Tile
) -> frozenset[str]:
    """Return the names of the nodes whose loops `specialize-warps` takes, by trying."""
    levels, copy = gpu_levels(system), func.clone()
    tile(copy, plan, system)
    outline(copy, plan_launches(copy))
    materialize(copy)
    hoist(copy)
    mask_copies(copy)
    alignment = device_of(system).compiled.descriptor_bytes
    for each in tuple(descriptor_copies(grid_nodes(copy), levels, alignment)):
        each.descriptor = UnitAttr()
    return frozenset(
        grid.node_name or ""
        for grid in grid_nodes(copy)
        if any(True for _ in specialized_loops(grid, system))
    )
