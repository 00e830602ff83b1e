"""
What the nodes of a tile tree compute.

Every row of a node is an axis along which tiles differ, just as along the mesh axes of
an SPMD region, so a body runs once for all tiles of its node. Only a node with carries
runs tile by tile, each iteration on what the one before yielded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import InterpretationError

from comet.dialects.compound import ReduceKind
from comet.dialects.compound.dims import extents_of
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.node import NodeOp
from comet.interpreter.instances import (
    agree,
    at,
    instance,
    join,
    reduced_over,
    split,
    stacked,
)
from comet.interpreter.machine import Machine, Values, evaluate
from comet.interpreter.tensor import Tensor, joined_lengths, selected


@dataclass(frozen=True)
class Row:
    """One row of a node: `count` tiles of `dim`, told apart along `axis`."""

    axis: str
    dim: str
    count: int
    cuts: bool = False
    """Whether it cuts the shares of a row before it, and not the whole dimension."""


def rows_of(op: NodeOp) -> tuple[Row, ...]:
    """
    Return the rows of a node; those of nested nodes have different axes.

    The second axis of a mesh that splits a dimension cuts no shares: both count as one
    row of their product.
    """
    depth, parent = 0, op.parent_op()
    while isinstance(parent, NodeOp):
        depth, parent = depth + 1, parent.parent_op()
    on_mesh = isinstance(op, SpatialOp) and op.mesh_name is not None
    rows: list[Row] = []
    for row in op.loops:
        cuts = not on_mesh and any(other.dim == row.dim for other in rows)
        name = f"{row.dim} at depth {depth}{' again' if cuts else ''}"
        rows.append(Row(row.axis or name, row.dim, row.factor, cuts))
    return tuple(rows)


def axes_of(rows: Sequence[Row]) -> dict[str, int]:
    """Return the extent of each row's axis, the first row major."""
    return {row.axis: row.count for row in rows}


@dataclass(frozen=True)
class Cut:
    """One cut of a dimension into slices, along the axes of one or more rows."""

    dim: str
    axes: dict[str, int]
    whole: int
    """The extent of what is cut."""
    slice: int
    """The extent of a slice."""


def cuts_of(
    rows: Sequence[Row], dims: Sequence[str], whole: SSAValue, tile: SSAValue
) -> list[Cut]:
    """Return how the rows cut `whole` into tiles, along those dimensions of `dims`."""
    cuts: list[Cut] = []
    extents, tiles = extents_of(whole), extents_of(tile)
    for dim in dict.fromkeys(row.dim for row in rows if row.dim in dims):
        shares = [row for row in rows if row.dim == dim and not row.cuts]
        inner = [row for row in rows if row.dim == dim and row.cuts]
        extent = extents[dim]
        for group in (shares, *([row] for row in inner)):
            axes = axes_of(group)
            part = -(-extent // prod(axes.values()))
            cuts.append(Cut(dim, axes, extent, part))
            extent = part
        cuts[-1] = replace(cuts[-1], slice=tiles[dim])
    return cuts


def tiled(
    value: Tensor, whole: SSAValue, tile: SSAValue, rows: Sequence[Row]
) -> Tensor:
    """Return all tiles of `value`, along the axes of the rows."""
    for cut in cuts_of(rows, value.dims, whole, tile):
        value = split(value, cut.dim, cut.axes, cut.slice)
    return value


def untiled(
    value: Tensor, whole: SSAValue, tile: SSAValue, rows: Sequence[Row]
) -> Tensor:
    """Return the value whose tiles, along the axes of the rows, are `value`."""
    for cut in reversed(cuts_of(rows, value.dims, whole, tile)):
        value = join(value, cut.dim, cut.axes, cut.whole)
    return value


@evaluate.register
def _(op: SpatialOp, machine: Machine, args: Values) -> Values:
    return _all_at_once(op, machine, args)


@evaluate.register
def _(op: TemporalOp, machine: Machine, args: Values) -> Values:
    run = _one_by_one if op.carry else _all_at_once
    return run(op, machine, args)


def _all_at_once(op: NodeOp, machine: Machine, args: Values) -> Values:
    rows, block = rows_of(op), op.body.block
    tiles = [
        tiled(value, whole, tile, rows)
        for value, whole, tile in zip(args, op.operands, block.args, strict=True)
    ]
    yielded = machine.run_block(block, tiles)
    if isinstance(op, SpatialOp) and op.merge is not None:
        yielded = _merged(op, machine, yielded)
    return tuple(_left(op, index, value, rows) for index, value in enumerate(yielded))


def _lost(rows: Sequence[Row], value: Tensor) -> tuple[Row, ...]:
    """Return the rows whose dimension `value` lacks."""
    return tuple(row for row in rows if row.dim not in value.dims)


def _left(op: NodeOp, index: int, value: Tensor, rows: Sequence[Row]) -> Tensor:
    """Return one result outside of the node: its tiles combined, then side by side."""
    lost = axes_of(_lost(rows, value))
    value = _combined(op, op.combiners[index], value, lost)
    return untiled(value, op.outs[index], op.yielded[index], rows)


def _combined(
    op: NodeOp, combiner: Combiner, value: Tensor, axes: Mapping[str, int]
) -> Tensor:
    match combiner:
        case Combiner.ADD:
            return reduced_over(value, ReduceKind.ADD, axes)
        case Combiner.MAX:
            return reduced_over(value, ReduceKind.MAX, axes)
        case Combiner.SAME:
            if not agree(value, axes):
                raise InterpretationError(
                    f"'{op.name}' op result {value.dims} is not the same in all tiles; "
                    "its combiner `same` says so"
                )
            return instance(value, axes, 0)
        case Combiner.ROOT:
            return instance(value, axes, 0)
        case Combiner.NONE:  # axes that idle have one instance
            return instance(value, {a: n for a, n in axes.items() if n == 1}, 0)
        case Combiner.FOLD:
            return value


def _merged(op: SpatialOp, machine: Machine, yielded: Values) -> Values:
    """Return `yielded` with the `fold` results merged over the instances."""
    assert op.merge is not None
    folds = [i for i, kind in enumerate(op.combiners) if kind is Combiner.FOLD]
    lost = {_lost(rows_of(op), yielded[i]) for i in folds}
    if len(lost) > 1:
        raise InterpretationError(
            f"'{op.name}' op merges results that lack different looped dimensions"
        )
    axes = axes_of([row for rows in lost for row in rows])
    partials = [yielded[i] for i in folds]
    merged = tuple(instance(value, axes, 0) for value in partials)
    for index in range(1, prod(axes.values())):
        other = tuple(instance(value, axes, index) for value in partials)
        merged = machine.run_block(op.merge.block, (*merged, *other))
    results = dict(zip(folds, merged, strict=True))
    return tuple(results.get(i, value) for i, value in enumerate(yielded))


@dataclass(frozen=True)
class _Carry:
    """The carry of one `fold` result: a tile for each of its kept tiles."""

    rows: tuple[Row, ...]
    """The rows whose dimension the carry has."""
    tiles: dict[tuple[int, ...], Tensor]

    def key(self, index: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(index[row.axis] for row in self.rows)


def _carry(
    value: Tensor, whole: SSAValue, tile: SSAValue, rows: Sequence[Row]
) -> _Carry:
    kept = tuple(row for row in rows if row.dim in value.dims)
    tiles = tiled(value, whole, tile, kept)
    return _Carry(kept, {index: _at(tiles, kept, index) for index in _indices(kept)})


def _fitted(start: Tensor, ins: Values) -> Tensor:
    """Return what a carry starts from, a constant cut to what is real of the ins."""
    return replace(start, lengths=joined_lengths(ins, start.dims) | dict(start.lengths))


def _indices(rows: Sequence[Row]) -> list[tuple[int, ...]]:
    return list(np.ndindex(*(row.count for row in rows)))


def _at(value: Tensor, rows: Sequence[Row], index: Sequence[int]) -> Tensor:
    for row, position in zip(rows, index, strict=True):
        value = at(value, row.axis, position)
    return value


def _one_by_one(op: TemporalOp, machine: Machine, args: Values) -> Values:
    rows, count = rows_of(op), len(op.ins)
    arguments = op.body.block.args
    tiles = [
        tiled(value, whole, tile, rows)
        for value, whole, tile in zip(args[:count], op.ins, op.tiles, strict=True)
    ]
    carries = [
        _carry(_fitted(value, args[:count]), whole, tile, rows)
        for value, whole, tile in zip(
            args[count:], op.carry, arguments[count:], strict=True
        )
    ]
    history = [
        _iteration(op, machine, [_at(tile, rows, i) for tile in tiles], carries, i)
        for i in _indices(rows)
    ]
    left = iter(carries)
    results: list[Tensor] = []
    for index, combiner in enumerate(op.combiners):
        if combiner is Combiner.FOLD:
            carry = next(left)
            value = stacked(list(carry.tiles.values()), axes_of(carry.rows))
        else:
            value = stacked([values[index] for values in history], axes_of(rows))
        results.append(_left(op, index, value, rows))
    return tuple(results)


def _iteration(
    op: TemporalOp,
    machine: Machine,
    tiles: Sequence[Tensor],
    carries: Sequence[_Carry],
    index: tuple[int, ...],
) -> Values:
    """Run one iteration, update the carries, and return what it yields."""
    rows = rows_of(op)
    position = {row.axis: i for row, i in zip(rows, index, strict=True)}
    before = [carry.tiles[carry.key(position)] for carry in carries]
    yielded = machine.run_block(op.body.block, (*tiles, *before))
    folds = [
        value
        for value, combiner in zip(yielded, op.combiners, strict=True)
        if combiner is Combiner.FOLD
    ]
    for carry, old, new in zip(carries, before, folds, strict=True):
        lost = [row.dim for row in _lost(rows, old)]
        carry.tiles[carry.key(position)] = _unless_empty(tiles, lost, new, old)
    return yielded


def _unless_empty(
    tiles: Sequence[Tensor], dims: Sequence[str], new: Tensor, old: Tensor
) -> Tensor:
    """Return `new`; on instances whose tile is empty along one of `dims`, `old`."""
    for length in joined_lengths(tiles, dims).values():
        new = selected(length, new, old)
    return new
