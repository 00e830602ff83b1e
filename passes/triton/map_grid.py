"""
`map-grid`: which programs of the launch grid compute the tiles of a kernel.

Each loop of a grid node gets a number of programs, the elements of each program, and an
axis of the launch grid. A launch grid has three axes; the kernels of several ranks have
one, so that one launch can have the programs of all ranks, and those of several nodes.
So have kernels whose programs exchange: those of a group follow each other. A node that
the last program to arrive runs has the programs of the node that arrives.
An L2 swizzle is written if the node has several loops and launch numbers with a group,
and the number of persistent programs if these are fewer than the tiles.

Takes functions at the schedule or the dataflow level, with blocks: programs have whole
blocks, unless loops inside split these, or peers count the tiles. What is written there
already stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from comet.dialects.compound.dims import ceil_div
from comet.dialects.dataflow import KernelOp, SignalOp, program_value
from comet.dialects.dataflow.launch_axes import launch_axes
from comet.dialects.dataflow.merging import arrivals_in
from comet.dialects.dataflow.signals import producers_in
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import GRID_AXES, ProgramsAttr
from comet.passes.analysis.grid import grid_nodes
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass
from comet.passes.triton.pad_blocks import kernel_extents, pad_blocks
from comet.passes.triton.slices import RankLoops, all_loops, rank_loops

MOST_PROGRAMS = 65535
"""Along the second and the third axis of a launch grid: CUDA C++ Programming Guide."""


@dataclass(frozen=True)
class MapGridPass(FunctionPass):
    """Give the loops of grid nodes programs of the launch grid."""

    name = "map-grid"

    LEVELS = (IRLevel.SCHEDULE, IRLevel.DATAFLOW)
    TAKES_COPIES = True

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        pad_blocks(function)
        map_grids(function)


def map_grids(function: FuncOp) -> None:
    """Write the programs of every grid node in `function` that has none."""
    for node in grid_nodes(function):
        if node.programs is None:
            node.programs = grid_programs(node)


def grid_programs(node: SpatialOp) -> ProgramsAttr:
    """Return the programs of a grid node with blocks."""
    loops, ranks, extents = all_loops(node), rank_loops(node), kernel_extents(node)
    exact = exact_loops(node, ranks)
    counts: list[int] = []
    slices: list[int] = []
    for index, loop in enumerate(loops):
        is_exact = index in exact
        slices.append(loop.tile if is_exact else loop.length)
        counts.append(
            loop.factor if is_exact else ceil_div(extents[loop.dim], slices[-1])
        )
        extents[loop.dim] = loop.tile
    slicing = [index for index, loop in enumerate(loops) if loop.factor > 1]
    group = 1 if node.launch is None or len(slicing) < 2 else node.launch.group
    axes = [0] * len(loops)
    if launch_axes(node) > 1:
        found = axes_of([counts[index] for index in slicing], group)
        for index, axis in zip(slicing, found, strict=True):
            axes[index] = axis
    persistent = 0 if node.launch is None else node.launch.persistent
    if persistent >= prod(counts):
        persistent = 0
    return ProgramsAttr(counts, slices, axes, group, persistent)


def axes_of(counts: Sequence[int], group: int) -> list[int]:
    """
    Return the axis of the launch grid for each loop with these numbers of programs.

    The last loop has the first axis, which advances fastest: successive programs then
    read most of the same operands, such as the keys of one head. With a swizzle all
    loops before the last share an axis. Where an axis would be too long, all share the
    first.
    """
    most = 1 if group > 1 else GRID_AXES - 1
    axes = [min(axis, most) for axis in reversed(range(len(counts)))]
    lengths = [prod(n for n, on in zip(counts, axes) if on == axis) for axis in (1, 2)]
    return axes if max(lengths) <= MOST_PROGRAMS else [0] * len(counts)


def exact_loops(node: SpatialOp, ranks: RankLoops) -> set[int]:
    """
    Return the loops whose programs have one tile each, and not a larger block.

    These are all loops of a node whose tiles peers count, or other programs that arrive
    or merge, and loops over ranks.
    """
    kernel = node.parent_op()
    if not isinstance(kernel, KernelOp):
        return set()
    if signals_of(kernel, node) or arrivals_in(kernel):
        return set(range(len(node.loops)))
    dims = [loop.dim for loop in node.loops]
    return {dims.index(dim) for dim in ranks.owned if dim in dims}


def signals_of(kernel: KernelOp, node: SpatialOp) -> tuple[SignalOp, ...]:
    """Return the signals that cover the stores of a node to channels."""
    stored = {program_value(op.channel) for op in producers_in(kernel, node)}
    signals = (op for op in kernel.walk() if isinstance(op, SignalOp))
    return tuple(op for op in signals if program_value(op.channel) in stored)
