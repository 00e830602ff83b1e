"""How `lower-to-triton` writes the node that is a kernel: programs and their slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import tl
from comet.dialects.compound.dims import names_of
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.node import NodeOp
from comet.dialects.tl.types import BinaryKind, CompareKind
from comet.passes.triton.lower_to_triton.blocks import BlockPlan
from comet.passes.triton.lower_to_triton.channels import (
    Awaited,
    Received,
    from_all,
    from_owner,
    owned_slice,
    peer_at,
    ranks_of,
    wait_for_own_rank,
)
from comet.passes.triton.lower_to_triton.nodes import BodyLowering
from comet.passes.triton.lower_to_triton.slices import (
    LoopSlice,
    inner_slice,
    loop_slices,
    step_of,
)
from comet.passes.triton.lower_to_triton.values import Buffer, GridIndex, Scope, both


@dataclass(frozen=True)
class Grid:
    """How the programs of a kernel share the work of its node."""

    inputs: Sequence[Buffer]
    targets: Sequence[Buffer]
    owned: Sequence[str] = ()
    """Dimensions whose first loop runs over the ranks that sent or receive them."""
    exact: bool = False
    """Whether there are exactly as many programs as the loops say: all signal."""
    first: Sequence[Received] = ()
    """This rank's messages that have to be there before anything is loaded."""


def lower_grid(
    node: SpatialOp, scope: Scope, grid: Grid, body: BodyLowering
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
    extents = _place_on_grid(node, scope, grid)
    awaited = Awaited()
    for received in grid.first:
        wait_for_own_rank(scope, awaited.once(received, ranks_of(scope).rank))
    for argument, buffer in zip(node.tiles, grid.inputs, strict=True):
        scope.values[argument] = _arrived(node, scope, buffer, body, awaited)
    targets = [
        replace(target, within=_is_first(node, scope, value))
        for value, target in zip(node.outs, grid.targets, strict=True)
    ]
    body.lower_body(node, scope, targets)
    return extents


def _is_first(node: SpatialOp, scope: Scope, value: SSAValue) -> SSAValue | None:
    """
    Return whether the program is the one to store a result that several have.

    None where the programs' results are parts of one. Programs that stored the same to
    one place would race.
    """
    lost = [loop.dim for loop in loop_slices(node) if loop.dim not in names_of(value)]
    first: SSAValue | None = None
    for dim in dict.fromkeys(lost):
        start = scope.slices[dim].named_start()
        assert start is not None
        zero = scope.insert(tl.ConstantOp.of(0, i32))
        is_first = scope.insert(tl.CmpOp(CompareKind.EQ, start, zero))
        first = is_first if first is None else both(scope, first, is_first)
    if first is not None:
        first.name_hint = "stores"
    return first


def _arrived(
    node: SpatialOp,
    scope: Scope,
    buffer: Buffer,
    body: BodyLowering,
    awaited: Awaited,
) -> Buffer:
    """
    Wait for what is received before the body, unless a loop inside waits for it.

    Where no loop runs over the sources, all messages have to be there.
    """
    if not isinstance(buffer, Received):
        return buffer
    if (owner := scope.owners.get(buffer.gather)) is not None:
        return from_owner(scope, awaited.once(buffer, owner.rank), owner)
    loops = (
        loop
        for inner in node.body.walk()
        if isinstance(inner, NodeOp)
        for loop in loop_slices(inner)
        if loop.dim == buffer.gather
    )
    if any(body.is_source_loop(loop, scope) for loop in loops):
        return buffer
    return from_all(scope, awaited.once(buffer, None))


def _place_on_grid(node: SpatialOp, scope: Scope, grid: Grid) -> list[int]:
    """Give every program its slices; return the extents of the launch grid."""
    loops = loop_slices(node)
    counts = program_counts(node, scope.constexprs.plan, grid.owned, grid.exact)
    group = 1 if node.launch is None else node.launch.group
    if len(loops) == 2 and group > 1:
        programs, extents = _grouped(loops, counts, group, scope)
    elif scope.program is not None:
        programs, extents = _flat(counts, scope.program, scope), [prod(counts)]
    else:
        programs, extents = _programs(counts, scope)
    scope.grid = [
        GridIndex(loop.dim, program, count)
        for loop, program, count in zip(loops, programs, counts, strict=True)
    ]
    for loop, program in zip(loops, programs, strict=True):
        if loop.dim in grid.owned and loop.dim not in scope.owners:
            _place_owner(loop, program, scope, grid)
        else:
            _place(loop, program, scope, grid)
    return extents or [1]


def _grouped(
    loops: Sequence[LoopSlice], counts: list[int], group: int, scope: Scope
) -> tuple[list[SSAValue], list[int]]:
    """Return the indices along two rows, of which `group` of the first go together."""
    home, (rows, columns) = scope.prologue, counts
    if scope.program is not None:
        (row, column), extents = _flat(counts, scope.program, scope), [rows * columns]
    else:
        # The last axis of the launch grid advances slowest.
        row, column = (home.add(tl.ProgramIdOp(axis)) for axis in (1, 0))
        extents = [columns, rows]
    swizzle = tl.Swizzle2dOp(row, column, (rows, columns), group)
    home.add(swizzle)
    for result, loop in zip(swizzle.results, loops, strict=True):
        result.name_hint = f"pid_{loop.dim.lower()}"
    return list(swizzle.results), extents


def _flat(counts: list[int], program: SSAValue, scope: Scope) -> list[SSAValue]:
    """Return the indices along all rows of a launch with one axis, the last fastest."""
    home, left = scope.prologue, program
    indices: list[SSAValue] = []
    for count in reversed(counts[1:]):
        if left is not program:
            left.name_hint = "rest"
        extent = home.add(tl.ConstantOp.of(count, i32))
        indices.append(home.add(tl.BinaryOp(BinaryKind.MOD, left, extent)))
        left = home.add(tl.BinaryOp(BinaryKind.FLOORDIV, left, extent))
    return [left, *reversed(indices)] if counts else []


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


def program_counts(
    node: SpatialOp, plan: BlockPlan, owned: Sequence[str], exact: bool
) -> list[int]:
    """Return how many slices each row makes: blocks may exceed the tiles."""
    counts: list[int] = []
    wholes, left = dict(plan.extents), set(owned)
    for loop in loop_slices(node):
        length = loop.length(plan.block(loop.dim, loop.tile))
        whole, wholes[loop.dim] = wholes[loop.dim], loop.tile
        is_fixed = exact or loop.dim in left
        counts.append(loop.factor if is_fixed else -(-whole // length))
        left.discard(loop.dim)
    return counts


def _place_owner(loop: LoopSlice, program: SSAValue, scope: Scope, grid: Grid) -> None:
    """Bind a program to the shard of a rank: its own first, then the next."""
    gathered = (box.gather for box in grid.inputs if isinstance(box, Received))
    peer = peer_at(scope, program, "source" if loop.dim in gathered else "dest")
    part, owner = owned_slice(scope, scope.slices[loop.dim], loop, peer)
    scope.slices[loop.dim], scope.owners[loop.dim] = part, owner


def _place(loop: LoopSlice, program: SSAValue, scope: Scope, grid: Grid) -> None:
    """Bind the slice of a dimension that belongs to a program."""
    part, home = scope.slices[loop.dim], scope.prologue
    block = scope.constexprs.plan.block(loop.dim, loop.tile)
    if grid.exact and block != loop.tile:
        loop = replace(loop, split=True)
    start = program
    if loop.tile > 1:
        product = tl.BinaryOp(BinaryKind.MUL, program, step_of(part, loop, home.add))
        start = home.add(product, f"start_{loop.dim.lower()}" if loop.split else None)
    if part.start is not None:
        start = home.add(tl.BinaryOp(BinaryKind.ADD, part.start, start))
    if loop.tile == 1:
        start.name_hint = loop.dim.lower()
    bounded = not part.ragged and (part.start is None or part.full)
    scope.slices[loop.dim] = inner_slice(part, loop, start, home, bounded)
