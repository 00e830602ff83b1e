"""How `lower-to-triton` writes the node that is a kernel: programs and their slices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import tl
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule_attributes import Combiner
from comet.dialects.tl_types import BinaryKind
from comet.passes.lower_to_triton_nodes import BodyLowering
from comet.passes.lower_to_triton_slices import (
    inner_slice,
    is_split_inside,
    step_of,
    tile_extent,
)
from comet.passes.lower_to_triton_values import Buffer, Scope


def lower_grid(
    node: SpatialOp,
    scope: Scope,
    inputs: Sequence[Buffer],
    targets: Sequence[Buffer],
    body: BodyLowering,
) -> list[int]:
    """
    Write the grid node that is a kernel; return the extents of its launch grid.

    Raises `PassFailedException` where programs would have to combine their results.
    """
    for result, combiner in zip(node.outs, node.combiners, strict=True):
        if combiner not in (Combiner.NONE, Combiner.SAME):
            raise PassFailedException(
                f"lower-to-triton: programs of the grid combine {result.type} by "
                f"{combiner}; split the dimension in a temporal loop instead"
            )
    _check_rows(node)
    grid = _place_on_grid(node, scope)
    for argument, buffer in zip(node.tiles, inputs, strict=True):
        body.bind(scope, buffer, argument)
    body.lower_body(node, scope, targets)
    for value, target in zip(node.yielded, targets, strict=True):
        body.spill(scope, scope.values[value], value, target)
    return grid


def _check_rows(node: SpatialOp) -> None:
    dims = [row.dim for row in node.loops]
    for dim in dims:
        if dims.count(dim) > 1:
            raise PassFailedException(
                f"lower-to-triton: two grid axes split {dim}; use one with the product "
                "of their factors"
            )


def _place_on_grid(node: SpatialOp, scope: Scope) -> list[int]:
    """Give every program its slices; return the extents of the launch grid."""
    rows = [row for row in node.loops if row.factor > 1]
    counts = [_program_count(node, row.dim, scope) for row in rows]
    group = 1 if node.launch is None else node.launch.group
    if len(rows) == 2 and group > 1:
        # The last axis of the launch grid advances slowest.
        row, column = (scope.prologue.add(tl.ProgramIdOp(axis)) for axis in (1, 0))
        swizzle = tl.Swizzle2dOp(row, column, (counts[0], counts[1]), group)
        scope.prologue.add(swizzle)
        for result, loop in zip(swizzle.results, rows, strict=True):
            result.name_hint = f"pid_{loop.dim.lower()}"
        programs, grid = list(swizzle.results), [counts[1], counts[0]]
    else:
        programs, grid = _programs(counts, scope)
    for row, program in zip(rows, programs, strict=True):
        _place(node, row.dim, program, scope)
    return grid or [1]


def _programs(counts: list[int], scope: Scope) -> tuple[list[SSAValue], list[int]]:
    """
    Return the program's index along each row, and the extents of the launch grid.

    A launch grid has three axes: the first rows share the first one if there are more,
    the last of these advancing fastest.
    """
    home = scope.prologue
    if not counts:
        return [], []
    shared = max(1, len(counts) - 2)
    axes = 1 + len(counts[shared:])
    first, *others = [home.add(tl.ProgramIdOp(axis)) for axis in range(axes)]
    indices: list[SSAValue] = []
    for count in reversed(counts[1:shared]):
        extent = home.add(tl.ConstantOp.of(count, i32))
        indices.append(home.add(tl.BinaryOp(BinaryKind.MOD, first, extent)))
        first = home.add(tl.BinaryOp(BinaryKind.FLOORDIV, first, extent))
    grid = [prod(counts[:shared]), *counts[shared:]]
    return [first, *reversed(indices), *others], grid


def _program_count(node: SpatialOp, dim: str, scope: Scope) -> int:
    """Return how many slices cover the dimension: blocks may exceed the tiles."""
    tile = tile_extent(node, dim)
    block = scope.constexprs.plan.block(dim, tile)
    length = tile if is_split_inside(node, dim) else block
    return -(-scope.slices[dim].length // length)


def _place(node: SpatialOp, dim: str, program: SSAValue, scope: Scope) -> None:
    """Bind the slice of a dimension that belongs to a program."""
    part, home = scope.slices[dim], scope.prologue
    if tile_extent(node, dim) == 1:
        start = program
        start.name_hint = dim.lower()
    else:
        product = tl.BinaryOp(BinaryKind.MUL, program, step_of(part, node, home.add))
        hint = f"start_{dim.lower()}" if is_split_inside(node, dim) else None
        start = home.add(product, hint)
    scope.slices[dim] = inner_slice(part, node, dim, start, home)
