"""
The tiles that kernels of a launch plan compute: others than those they have.

A kernel alone is fastest with the tiles that `tile` chooses. Beside others, and with
channels, others may be: wider ones load less from peers, smaller ones send earlier.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.hardware import device_of
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.compound.dims import joined_extents
from comet.dialects.dataflow import KernelOp, ProgramOp
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import LoopAttr
from comet.dialects.schedule.node import NodeOp
from comet.passes.schedule.plan_string import PLAN, PlanEntry, Rows, parse_plan
from comet.passes.schedule.retile import retile_node, set_loops
from comet.passes.schedule.tile.gpu import finish_kernel, tilings

WORTH_TRYING = 2.0
"""How much slower than the best a kernel alone may be with tiles that are tried."""


@dataclass(frozen=True)
class KernelTiles:
    """The tiles of one kernel."""

    kernel: KernelOp
    node: SpatialOp
    tiles: Mapping[str, int]
    """The extent of a tile along each dimension that the kernel's nodes loop over."""


def plan_tiles(program: ProgramOp, text: str) -> tuple[KernelTiles, ...]:
    """
    Return the tiles that `KERNEL: M=64 N=128; ..` gives to kernels of a program.

    Raises `PassFailedException` for a kernel, or a dimension, that is not there.
    """
    kernels = {kernel.sym_name.data: kernel for kernel in program.kernels()}
    nodes = {name: computing_node(kernel) for name, kernel in kernels.items()}
    plans: list[KernelTiles] = []
    for entry in parse_plan(text):
        node = nodes.get(entry.name)
        if node is None:
            known = ", ".join(f"@{name}" for name, node in nodes.items() if node)
            raise PassFailedException(
                f"bsp-to-dataflow: tiles are for @{entry.name}, which is no kernel "
                f"that computes; there are {known}"
            )
        looped = dict.fromkeys(dim for op in _nodes(node) for dim in op.factors)
        for dim, _ in entry.numbers:
            if dim not in looped:
                raise PassFailedException(
                    f"bsp-to-dataflow: tiles cut {dim}, over which @{entry.name} does "
                    f"not loop; it does over {', '.join(looped)}"
                )
        plans.append(KernelTiles(kernels[entry.name], node, dict(entry.numbers)))
    return tuple(plans)


def computing_node(kernel: KernelOp) -> SpatialOp | None:
    """Return the node of a kernel that is one node on the grid, None of any other."""
    nodes = [op for op in kernel.body.block.ops if isinstance(op, SpatialOp)]
    return nodes[0] if len(nodes) == 1 else None


def _nodes(node: SpatialOp) -> Iterator[NodeOp]:
    return (op for op in node.walk() if isinstance(op, NodeOp))


def apply_tiles(
    function: FuncOp, plans: Sequence[KernelTiles], system: SystemOp
) -> None:
    """Give kernels other tiles, and the launch numbers that are best for these."""
    levels = gpu_levels(system)
    for plan in plans:
        for op in _nodes(plan.node):
            set_loops(op, _rows(op, plan.tiles))
        retile_node(plan.node)
        plan.node.launch = None
        finish_kernel(plan.node, levels, device_of(system))
    if plans:
        # What the function says of its tiles holds no longer.
        function.attributes.pop(PLAN, None)


def _rows(node: NodeOp, tiles: Mapping[str, int]) -> list[LoopAttr]:
    """Return the rows of a node with factors that make `tiles`, others as they are."""
    extents = joined_extents((*node.ins, *node.init_args()))
    return [
        LoopAttr(row.dim, -(-extents[row.dim] // tiles[row.dim]), row.axis)
        if row.dim in tiles
        else row
        for row in node.loops
    ]


def other_tiles(kernel: KernelOp, system: SystemOp) -> Iterator[PlanEntry]:
    """
    Yield tiles for a kernel that are worth trying, the fastest for it alone first.

    For each extent of a tile along each dimension of its grid these are the fastest.
    """
    node = computing_node(kernel)
    if node is None:
        return
    levels = gpu_levels(system)
    found = sorted(
        tilings(node, levels, device_of(system)), key=lambda tiling: tiling.seconds
    )
    looped = dict.fromkeys(dim for op in _nodes(node) for dim in op.factors)
    seen: set[Rows] = set()
    for tiling in found:
        rows = tuple((dim, tiling.blocks[dim]) for dim in looped)
        if rows in seen or tiling.seconds > WORTH_TRYING * found[0].seconds:
            continue
        seen.add(rows)
        yield PlanEntry(kernel.sym_name.data, rows)
