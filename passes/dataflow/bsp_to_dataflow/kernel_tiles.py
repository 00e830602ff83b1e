"""
Other tiles for the kernels of a launch plan.

`tile` chooses those with which one kernel is fastest. With channels, others may be
better: wider tiles load less from peers, smaller ones send earlier.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize, tile_blocks
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.compound.dims import ceil_div
from comet.dialects.dataflow import KernelOp, ProgramOp
from comet.dialects.errors import OpError
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import LoopAttr
from comet.dialects.schedule.node import NodeOp
from comet.passes.schedule.plan_string import BLOCK, PLAN, PlanEntry, parse_plan
from comet.passes.schedule.retile import retile_node, set_loops
from comet.passes.schedule.tile.gpu.finish import finish_kernel
from comet.passes.schedule.tile.gpu.space import tilings_that_fit
from comet.passes.search import ranked

WORTH_TRYING = 2.0
"""Tiles are tried with which the kernel takes at most this many times its best."""


@dataclass(frozen=True)
class KernelTiles:
    """The tiles and launch numbers of one kernel."""

    node: SpatialOp
    tiles: Mapping[str, int]
    """The extent of a tile along each dimension that the kernel's nodes loop over."""
    launch: Mapping[str, int]
    """The given launch numbers; others are the best for these tiles."""


def plan_tiles(program: ProgramOp, text: str) -> tuple[KernelTiles, ...]:
    """
    Return the tiles that `KERNEL: M=64 N=128; ..` gives to kernels of a program.

    `BLOCK_M=64`, as in plans, says the same. Launch numbers may follow, as in a plan.
    Raises `PassFailedException` for an unknown kernel or dimension.
    """
    kernels = {kernel.sym_name.data: kernel for kernel in program.kernels()}
    nodes = {name: computing_node(kernel) for name, kernel in kernels.items()}
    plans: list[KernelTiles] = []
    for entry in parse_plan(text):
        node = nodes.get(entry.name)
        if node is None:
            names = ", ".join(f"@{name}" for name, node in nodes.items() if node)
            raise OpError(
                program,
                f"bsp-to-dataflow: tiles are for @{entry.name}, which is no kernel "
                f"that computes; there are {names}",
            )
        looped = dict.fromkeys(dim for op in _nodes(node) for dim in op.factors)
        tiles = {_tiled(dim, looped): size for dim, size in entry.loops}
        for dim in tiles:
            if dim not in looped:
                raise OpError(
                    node,
                    f"bsp-to-dataflow: tiles cut {dim}, over which @{entry.name} does "
                    f"not loop; it does over {', '.join(looped)}",
                )
        plans.append(KernelTiles(node, tiles, entry.launch))
    return tuple(plans)


def _tiled(key: str, looped: Collection[str]) -> str:
    """Return the dimension of a size, which may be called as in plans, BLOCK_M."""
    dim = key.removeprefix(BLOCK)
    return dim if key not in looped and dim in looped else key


def computing_node(kernel: KernelOp) -> SpatialOp | None:
    """Return the node of a kernel that is one node on the grid, None of any other."""
    return kernel.nodes[0] if len(kernel.nodes) == 1 else None


def _nodes(node: SpatialOp) -> Iterator[NodeOp]:
    return (op for op in node.walk() if isinstance(op, NodeOp))


def apply_tiles(
    function: FuncOp, plans: Sequence[KernelTiles], system: SystemOp
) -> None:
    """Give kernels other tiles, and launch numbers."""
    levels, gpu = gpu_levels(system), device_of(system)
    for plan in plans:
        for op in _nodes(plan.node):
            set_loops(op, _loops_with(op, plan.tiles))
        retile_node(plan.node)
        plan.node.launch = None
        finish_kernel(plan.node, levels, gpu, plan.launch)
    if plans:
        # The function's plan is no longer valid.
        function.attributes.pop(PLAN, None)


def _loops_with(node: NodeOp, tiles: Mapping[str, int]) -> list[LoopAttr]:
    """Return the loops of a node, those over dimensions of `tiles` with new factors."""
    extents = node.extents
    return [
        LoopAttr(loop.dim, ceil_div(extents[loop.dim], tiles[loop.dim]), loop.axis)
        if loop.dim in tiles
        else loop
        for loop in node.loops
    ]


def other_tiles(
    kernel: KernelOp, system: SystemOp
) -> Iterator[tuple[PlanEntry, float]]:
    """
    Yield other tiles for a kernel, with its seconds without the launch.

    They are the fastest tiles for each extent along each dimension of the grid, the
    fastest ones first.
    """
    node, gpu, name = computing_node(kernel), device_of(system), kernel.sym_name.data
    if node is None:
        return
    summary = summarize(node, gpu_levels(system), gpu)
    if (priced := tilings_that_fit(summary, gpu)) is None:
        return
    found = ranked("other tiles", f"@{name}", priced.candidates(summary.nest.grid))
    looped = dict.fromkeys(dim for op in _nodes(node) for dim in op.factors)
    present = tile_blocks(node)
    for tiling in (candidate.result for candidate in found):
        tiles = tuple((dim, tiling.blocks[dim]) for dim in looped)
        same = node.launch == tiling.launch and all(present[d] == n for d, n in tiles)
        if not same and tiling.seconds <= WORTH_TRYING * found[0].result.seconds:
            numbers = (*tiles, *tiling.launch.numbers.items())
            yield PlanEntry(name, numbers), tiling.seconds - gpu.times.launch
