"""Evaluates the ops of the compound dialect; `formulas` has the named ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np
from xdsl.utils.exceptions import InterpretationError

from comet.dialects.collective.mesh import lookup_mesh
from comet.dialects.collective.spmd import SpmdOp
from comet.dialects.compound import (
    CastOp,
    ConcatOp,
    ContractOp,
    ExtentOp,
    FillOp,
    FoldOp,
    GatherOp,
    MapKind,
    MapOp,
    PadOp,
    ReduceOp,
    RenameOp,
    ScatterAddOp,
    SliceOp,
    View,
)
from comet.dialects.compound.dims import extents_of, names_of
from comet.dialects.compound.index import IndexOp
from comet.dialects.compound.named import CompoundOp
from comet.dialects.parents import enclosing
from comet.interpreter import formulas
from comet.interpreter.chunking import FoldTree, Steps, elements
from comet.interpreter.instances import chunk, resized, split
from comet.interpreter.machine import Interpreter, Values, dims_of, evaluate
from comet.interpreter.tensor import (
    Array,
    Tensor,
    added_rows,
    contracted,
    joined_axes,
    joined_lengths,
    joined_starts,
    masked,
    reduced,
    rows_of,
    scalar,
    selected,
    with_padding,
)
from comet.philox import philox


def _rsqrt(value: Array) -> Array:
    return 1.0 / np.sqrt(value)


def _select(condition: Array, then: Array, otherwise: Array) -> Array:
    return np.where(condition != 0, then, otherwise)


def _erf(value: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(value)


MAP: dict[MapKind, Callable[..., Array]] = {
    MapKind.ADD: np.add,
    MapKind.SUB: np.subtract,
    MapKind.MULT: np.multiply,
    MapKind.DIV: np.divide,
    MapKind.MAX: np.maximum,
    MapKind.MIN: np.minimum,
    MapKind.EXP: np.exp,
    MapKind.EXP2: np.exp2,
    MapKind.LOG: np.log,
    MapKind.SQRT: np.sqrt,
    MapKind.RSQRT: _rsqrt,
    MapKind.NEG: np.negative,
    MapKind.TANH: np.tanh,
    MapKind.ERF: _erf,
    MapKind.SIN: np.sin,
    MapKind.COS: np.cos,
    MapKind.COPY: np.positive,
    MapKind.GE: np.greater_equal,
    MapKind.GT: np.greater,
    MapKind.EQ: np.equal,
    MapKind.SELECT: _select,
    MapKind.RANDOM: philox,
}
"""The functions on arrays; comparisons return booleans."""


@evaluate.register
def _(op: CompoundOp, machine: Interpreter, args: Values) -> Values:
    formula: object = getattr(formulas, op.name.removeprefix("compound."), None)
    if formula is None:
        raise InterpretationError(f"'{op.name}' op has no meaning in the interpreter")
    compute = cast(Callable[..., Array], formula)
    data = compute(op, *(value.data for value in args))
    return (Tensor((), dims_of(op.result.type), data),)


@evaluate.register
def _(op: ContractOp, machine: Interpreter, args: Values) -> Values:
    lhs, rhs = args
    return (contracted(lhs, rhs, names_of(op.result)),)


@evaluate.register
def _(op: ReduceOp, machine: Interpreter, args: Values) -> Values:
    return (_ordered(reduced(args[0], op.kind.data, op.reduced), op),)


def _ordered(value: Tensor, op: ReduceOp) -> Tensor:
    dims = names_of(op.result)
    return replace(value, dims=dims, data=value.view(value.axes, dims))


@evaluate.register
def _(op: MapOp, machine: Interpreter, args: Values) -> Values:
    axes, dims = joined_axes(args), names_of(op.result)
    result = MAP[op.kind.data](*(value.view(axes, dims) for value in args))
    data = result.astype(np.float64, copy=False)
    lengths, starts = joined_lengths(args, dims), joined_starts(args, dims)
    return (Tensor(axes, dims, data, lengths, starts),)


@evaluate.register
def _(op: CastOp, machine: Interpreter, args: Values) -> Values:
    """All values are float64, so only a cast to integers rounds: towards zero."""
    (value,) = args
    return (replace(value, data=np.trunc(value.data)) if op.truncates else value,)


@evaluate.register
def _(op: RenameOp, machine: Interpreter, args: Values) -> Values:
    (value,), names = args, op.renaming
    lengths = {names[dim]: length for dim, length in value.lengths.items()}
    starts = {names[dim]: start for dim, start in value.starts.items()}
    data = _reshaped(op, value) if op.reshapes else value.data
    return (Tensor(value.axes, names_of(op.result), data, lengths, starts),)


def _reshaped(op: RenameOp, value: Tensor) -> Array:
    """Return the data with one axis as two, or two axes as one."""
    for dim in op.reshaped:
        if dim in value.lengths:
            raise InterpretationError(
                f"'{op.name}' op splits or merges {dim}, of which an instance has only "
                "a shard"
            )
    extents = tuple(extents_of(op.result).values())
    return value.data.reshape(*value.data.shape[: len(value.axes)], *extents)


@evaluate.register
def _(op: PadOp, machine: Interpreter, args: Values) -> Values:
    (value,) = args
    return (with_padding(_resized(op, value), op.extents, op.number),)


@evaluate.register
def _(op: SliceOp, machine: Interpreter, args: Values) -> Values:
    (value,), after = args, extents_of(op.result)
    for dim, first in op.offsets.items():
        _check_unsharded(op, value, dim)
        data = np.moveaxis(value.data, value.position(dim), 0)
        data = np.moveaxis(data[first : first + after[dim]], 0, value.position(dim))
        value = replace(value, data=data)
    return (value,)


@evaluate.register
def _(op: ConcatOp, machine: Interpreter, args: Values) -> Values:
    dim, axes, dims = op.dim.data, joined_axes(args), names_of(op.result)
    for value in args:
        _check_unsharded(op, value, dim)
    views = [value.view(axes, dims) for value in args]
    instances = np.broadcast_shapes(*(view.shape[: len(axes)] for view in views))
    parts = [np.broadcast_to(v, (*instances, *v.shape[len(axes) :])) for v in views]
    data = np.concatenate(parts, axis=len(axes) + dims.index(dim))
    lengths, starts = joined_lengths(args, dims), joined_starts(args, dims)
    return (Tensor(axes, dims, data, lengths, starts),)


@evaluate.register
def _(op: GatherOp, machine: Interpreter, args: Values) -> Values:
    table, ids = args
    if op.own is None:
        _check_unsharded(op, table, op.along)
    _check_ids(op, ids, op.along)
    return (rows_of(table, ids, op.along),)


@evaluate.register
def _(op: ScatterAddOp, machine: Interpreter, args: Values) -> Values:
    values, ids = args
    _check_ids(op, ids, op.into)
    return (added_rows(values, ids, op.into, extents_of(op.result)),)


def _check_ids(op: GatherOp | ScatterAddOp, ids: Tensor, dim: str) -> None:
    """Raise `InterpretationError` for an id that is no position of `dim`."""
    chosen = masked(ids, ids.dims, 0.0).data
    if wrong := chosen[(chosen < 0) | (chosen >= op.rows)].tolist():
        raise InterpretationError(
            f"'{op.name}' op takes position {wrong[0]:g} along {dim}, which has "
            f"{op.rows}; pass ids from 0 to {op.rows - 1}"
        )


def _resized(op: PadOp, value: Tensor) -> Tensor:
    """Return `value` with the extents of the result; new elements are NaN."""
    before, after = extents_of(op.input), extents_of(op.result)
    for dim in [dim for dim in before if before[dim] != after[dim]]:
        _check_unsharded(op, value, dim)
        data = resized(value.data, value.position(dim), after[dim])
        value = replace(value, data=data)
    return value


def _check_unsharded(op: PadOp | View, value: Tensor, dim: str) -> None:
    """Raise InterpretationError if an instance holds only a shard of `dim`."""
    if np.any(value.start(dim).data):
        raise InterpretationError(
            f"'{op.name}' op takes parts of {dim}, of which an instance has "
            "only a shard"
        )


@evaluate.register
def _(op: FillOp, machine: Interpreter, args: Values) -> Values:
    extents = extents_of(op.result)
    data = np.full(tuple(extents.values()), op.value.value.data)
    return (Tensor((), tuple(extents), data),)


@evaluate.register
def _(op: ExtentOp, machine: Interpreter, args: Values) -> Values:
    return (args[0].length(op.dim.data),)


@evaluate.register
def _(op: IndexOp, machine: Interpreter, args: Values) -> Values:
    extents = extents_of(op.result)
    positions = Tensor((), tuple(extents), np.arange(op.extent, dtype=np.float64))
    if not op.axis_names:
        return (positions,)
    return (split(positions, op.dim, _split_axes(op), extents[op.dim]),)


def _split_axes(op: IndexOp) -> dict[str, int]:
    """Return the mesh axes, with their extents, that shard the dimension of `op`."""
    if (region := enclosing(op, SpmdOp)) is None:
        raise InterpretationError(f"'{op.name}' op counts a shard outside of any mesh")
    extents = lookup_mesh(region, region.mesh).axis_extents
    return {axis: extents[axis] for axis in op.axis_names}


@evaluate.register
def _(op: FoldOp, machine: Interpreter, args: Values) -> Values:
    count = len(op.ins)
    extent = next(v.extent(op.dim.data) for v in args[:count] if op.dim.data in v.dims)
    single_steps = op.element_by_element
    tree = Steps((1,) * extent) if single_steps else machine.chunks(extent)
    if elements(tree) != extent:
        raise InterpretationError(
            f"the chunks hold {elements(tree)} elements, {op.dim.data} has {extent}"
        )
    return _folded(op, machine, args, tree, 0)


def _folded(
    op: FoldOp, machine: Interpreter, args: Values, tree: FoldTree, start: int
) -> Values:
    """Return the results of a tree that reads the elements from `start` on."""
    if not isinstance(tree, Steps):
        left = _folded(op, machine, args, tree.left, start)
        middle = start + elements(tree.left)
        right = _folded(op, machine, args, tree.right, middle)
        return machine.run_block(op.merge.block, (*left, *right))
    iter_args = args[len(op.ins) :]
    for size in tree.sizes:
        iter_args = _step(op, machine, args, iter_args, start, size)
        start += size
    return iter_args


def _step(
    op: FoldOp,
    machine: Interpreter,
    args: Values,
    iter_args: Values,
    start: int,
    size: int,
) -> Values:
    """Run one step; instances whose chunk is empty keep their iter_args."""
    dim, count = op.dim.data, len(op.ins)
    take = partial(chunk, dim=dim, start=start, size=size)
    chunks = [
        take(value, extent=value.extent(dim)) if dim in value.dims else value
        for value in args[:count]
    ]
    after = machine.run_block(op.step.block, (*chunks, *iter_args))
    length = joined_lengths(chunks, (dim,)).get(dim, scalar(size))
    return tuple(
        selected(length, new, old) for new, old in zip(after, iter_args, strict=True)
    )
