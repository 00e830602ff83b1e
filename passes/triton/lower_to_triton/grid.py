"""How `lower-to-triton` writes the node that is a kernel: programs and their slices."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import prod

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects import tl
from comet.dialects.compound.dims import names_of
from comet.dialects.errors import OpError
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.attributes import Combiner, ProgramsAttr
from comet.dialects.tl.types import BinaryKind, CompareKind
from comet.passes.triton.lower_to_triton.channels import (
    owned_slice,
    peer_at,
)
from comet.passes.triton.lower_to_triton.copies import lower_body, target_of
from comet.passes.triton.lower_to_triton.offsets import inner_slice, step_of
from comet.passes.triton.lower_to_triton.table import lowers
from comet.passes.triton.lower_to_triton.values import GridIndex, Scope, Tile, both
from comet.passes.triton.lower_to_triton.waits import with_sources
from comet.passes.triton.slices import LoopSlice, is_rank_loop, loop_slices


def lower_grid(node: SpatialOp, scope: Scope) -> None:
    """
    Write the grid node that is a kernel, or a part of one.

    Raises `PassFailedException` where programs would have to combine their results.
    """
    for result, combiner in zip(node.outs, node.combiners, strict=True):
        if combiner not in (Combiner.NONE, Combiner.SAME):
            raise OpError(
                node,
                f"lower-to-triton: programs of the grid combine {result.type} by "
                f"{combiner}; split the dimension in a temporal loop instead",
            )
    memory = scope.memory
    _place_on_grid(node, scope)
    for argument, value in zip(node.tiles, node.ins, strict=True):
        if (number := scope.numbers.get(value)) is not None:
            scope.values[argument] = Tile(number, ())
            continue
        scope.values[argument] = with_sources(scope, argument, memory.buffers[value])
    targets = [
        memory.target(value).only_where(_is_first(node, scope, value))
        for value in node.outs
    ]
    lower_body(node, scope, targets)


@lowers(SpatialOp)
def lower_group(node: SpatialOp, scope: Scope) -> None:
    """
    Write the node of a group: each of its programs has a part of a dimension.

    Raises `PassFailedException` where programs would have to combine their results, and
    for a grid in a grid.
    """
    if not node.on_mesh:
        raise OpError(
            node, f"lower-to-triton: {node.name} cannot be in a kernel of one GPU"
        )
    for result, combiner in zip(node.outs, node.combiners, strict=True):
        if combiner is not Combiner.NONE:
            raise OpError(
                node,
                f"lower-to-triton: programs of a group combine {result.type} by "
                f"{combiner}; let each store its part of the result",
            )
    inner = replace(scope, slices=dict(scope.slices), values={})
    for argument, value in zip(node.tiles, node.ins, strict=True):
        inner.values[argument] = with_sources(inner, argument, scope.values[value])
    assert scope.group is not None
    for loop in loop_slices(node):
        _place(loop, scope.group.rank, inner)
    targets = [target_of(scope, value) for value in node.outs]
    lower_body(node, inner, targets)
    results = zip(node.outs, node.yielded, strict=True)
    scope.values |= {value: inner.values[inside] for value, inside in results}


def _is_first(node: SpatialOp, scope: Scope, value: SSAValue) -> SSAValue | None:
    """
    Return whether this program stores a result that several programs have.

    None where each program has its own part. Programs that store the same tile to one
    address would race.
    """
    shared = [loop.dim for loop in loop_slices(node) if loop.dim not in names_of(value)]
    first: SSAValue | None = None
    for dim in dict.fromkeys(shared):
        start = scope.slices[dim].named_start()
        assert start is not None
        zero = scope.integer(0)
        is_first = scope.compare(CompareKind.EQ, start, zero)
        first = is_first if first is None else both(scope, first, is_first)
    if first is not None:
        first.name_hint = "stores"
    return first


def _place_on_grid(node: SpatialOp, scope: Scope) -> None:
    """Give every program its slices."""
    assert node.programs is not None
    loops = loop_slices(node)
    triples = zip(node.loops, node.programs.counts, node.programs.axes, strict=True)
    sliced = [(count, axis) for loop, count, axis in triples if loop.factor > 1]
    counts, axes = [count for count, _ in sliced], [axis for _, axis in sliced]
    if scope.places is not None:
        indices = [scope.places[loop.dim] for loop in loops]
    elif node.programs.swizzle > 1:
        indices = _swizzled(loops, counts, axes, node.programs, scope)
    else:
        indices = _indices(counts, axes, node.programs, scope)
    if scope.places is None:
        indices = _reversed(indices, loops, counts, node.reversed_dims, scope)
    scope.grid = [
        GridIndex(loop.dim, index, count)
        for loop, index, count in zip(loops, indices, counts, strict=True)
    ]
    for loop, index in zip(loops, indices, strict=True):
        current = scope.slices[loop.dim].shape
        if is_rank_loop(node, loop, current, scope.over_ranks):
            _place_owner(loop, index, scope)
        else:
            _place(loop, index, scope)


def _indices(
    counts: Sequence[int], axes: Sequence[int], programs: ProgramsAttr, scope: Scope
) -> list[SSAValue]:
    """Return the index of the program along each loop."""
    indices: dict[int, SSAValue] = {}
    for axis, program in _on_axes(sorted(set(axes)), programs, scope):
        on_axis = [loop for loop, other in enumerate(axes) if other == axis]
        found = split_program(program, [counts[loop] for loop in on_axis], scope)
        indices |= dict(zip(on_axis, found, strict=True))
    return [indices[loop] for loop in range(len(axes))]


def _on_axes(
    axes: Sequence[int], programs: ProgramsAttr, scope: Scope
) -> Iterator[tuple[int, SSAValue]]:
    """
    Yield axes of the launch grid, and the program id on each.

    Persistent programs have the number of a tile, which counts along the first axis
    first, as launches do.
    """
    program = scope.program
    if program is None:
        for axis in axes:
            yield axis, scope.prologue.insert(tl.ProgramIdOp(axis))
    elif programs.persistent:
        counts = [programs.tiles[axis] for axis in reversed(axes)]
        yield from zip(
            reversed(axes), split_program(program, counts, scope), strict=True
        )
    elif axis := max(axes, default=0):
        raise PassFailedException(
            f"lower-to-triton: programs are on axis {axis} of the launch grid, and "
            "those of several nodes, groups or ranks are on axis 0; write `on 0` for "
            "all loops"
        )
    else:
        yield from ((axis, program) for axis in axes)


def _swizzled(
    loops: Sequence[LoopSlice],
    counts: Sequence[int],
    axes: Sequence[int],
    programs: ProgramsAttr,
    scope: Scope,
) -> list[SSAValue]:
    """
    Return the index of the program along each loop, with an L2 swizzle.

    The last loop has the columns of a matrix of tiles, the others have its rows.
    """
    *others, columns = counts
    shape = prod(others), columns
    row, column = _indices(shape, (axes[0], axes[-1]), programs, scope)
    swizzle = tl.Swizzle2dOp(row, column, shape, programs.swizzle)
    scope.prologue.insert(swizzle)
    row, column = swizzle.results
    row.name_hint = "row"
    indices = [*split_program(row, others, scope), column]
    for index, loop in zip(indices, loops, strict=True):
        index.name_hint = f"pid_{loop.dim.lower()}"
    return indices


def _reversed(
    indices: Sequence[SSAValue],
    loops: Sequence[LoopSlice],
    counts: Sequence[int],
    dims: Collection[str],
    scope: Scope,
) -> list[SSAValue]:
    """Return the indices, counted from the last tile along `dims`."""
    found: list[SSAValue] = []
    for index, loop, count in zip(indices, loops, counts, strict=True):
        if loop.dim in dims:
            last = scope.prologue.integer(count - 1)
            hint = f"from_last_{loop.dim.lower()}"
            index = scope.prologue.binary(BinaryKind.SUB, last, index, hint)
        found.append(index)
    return found


def split_program(
    program: SSAValue, counts: Sequence[int], scope: Scope
) -> list[SSAValue]:
    """Return the indices of a program along loops, of which the last is fastest."""
    home, rest, indices = scope.prologue, program, list[SSAValue]()
    for count in reversed(counts[1:]):
        if rest is not program:
            rest.name_hint = "rest"
        extent = home.integer(count)
        indices.append(home.binary(BinaryKind.MOD, rest, extent))
        rest = home.binary(BinaryKind.FLOORDIV, rest, extent)
    return [rest, *reversed(indices)]


def _place_owner(loop: LoopSlice, program: SSAValue, scope: Scope) -> None:
    """Bind a program to the shard of a rank: its own first, then the next."""
    is_source = loop.dim in scope.over_ranks.sources
    peer = peer_at(scope, program, "source" if is_source else "dest")
    shard, owner = owned_slice(scope, scope.slices[loop.dim], loop, peer)
    scope.slices[loop.dim], scope.owners[loop.dim] = shard, owner


def _place(loop: LoopSlice, program: SSAValue, scope: Scope) -> None:
    """Bind the slice of a dimension that belongs to a program."""
    outer, home = scope.slices[loop.dim], scope.prologue
    start = program
    if loop.tile > 1:
        product = tl.BinaryOp(BinaryKind.MUL, program, step_of(outer, loop, home))
        hint = f"start_{loop.dim.lower()}" if loop.is_bounded else None
        start = home.insert(product, hint)
    if outer.start is not None:
        start = home.binary(BinaryKind.ADD, outer.start, start)
    if loop.tile == 1:
        start.name_hint = loop.dim.lower()
    shape = outer.shape.by_number(loop)
    scope.slices[loop.dim] = inner_slice(outer, loop, shape, start, home)
