"""Moving values between the instances of mesh axes: slices, copies, concatenation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray
from xdsl.utils.exceptions import InterpretationError

from comet.dialects.compound import ReduceKind
from comet.interpreter.tensor import (
    NEUTRAL,
    REDUCE,
    Array,
    Tensor,
    joined_axes,
    ragged,
    real_elements,
    scalar,
)

TOLERANCE = 1e-9
"""Relative difference up to which instances count as equal."""


def split(value: Tensor, dim: str, axes: Mapping[str, int], tile: int) -> Tensor:
    """
    Split `dim` into slices for the instances along the new `axes` (name: extent).

    The first axis is major; a slice has `tile` elements, the last ones fewer or none.
    """
    for axis in axes:
        if axis in value.axes:
            raise InterpretationError(
                f"instances already differ along the axis '{axis}'; a value is split "
                "over an axis once"
            )
    first, position = len(value.axes), value.position(dim)
    data = resized(value.data, position, prod(axes.values()) * tile)
    before, after = data.shape[:position], data.shape[position + 1 :]
    data = data.reshape(*before, *axes.values(), tile, *after)
    sources = range(position, position + len(axes))
    data = np.moveaxis(data, sources, range(first, first + len(axes)))
    starts = tile * np.arange(prod(axes.values()), dtype=np.float64)
    start = Tensor(tuple(axes), (), starts.reshape(*axes.values()))
    lengths = _sliced(value, dim, start, tile, tile)
    begins = _moved(value, dim, start)
    return Tensor((*value.axes, *axes), value.dims, data, lengths, begins)


def chunk(value: Tensor, dim: str, start: int, size: int, extent: int) -> Tensor:
    """Return elements [start, start + size) of `dim`, in an array of this `extent`."""
    position = value.position(dim)
    stop = min(start + size, value.extent(dim))
    data = value.data.take(range(start, stop), axis=position)
    lengths = _sliced(value, dim, scalar(start), size, extent)
    begins, data = _moved(value, dim, scalar(start)), resized(data, position, extent)
    return Tensor(value.axes, value.dims, data, lengths, begins)


def resized(data: Array, position: int, extent: int) -> Array:
    """Cut the axis at `position`, or pad it with NaN, which no op may read."""
    if data.shape[position] >= extent:
        return data.take(range(extent), axis=position)
    widths = [(0, 0)] * data.ndim
    widths[position] = (0, extent - data.shape[position])
    return np.pad(data, widths, constant_values=np.nan)


def _sliced(
    value: Tensor, dim: str, start: Tensor, size: int, extent: int
) -> dict[str, Tensor]:
    """Return how many elements of [start, start + size) of `dim` are real."""
    total = value.length(dim)
    axes = joined_axes((total, start))
    left = total.view(axes, ()) - start.view(axes, ())
    length = Tensor(axes, (), np.clip(left, 0, size))
    lengths = {name: n for name, n in value.lengths.items() if name != dim}
    return lengths | ragged(dim, length, extent)


def _moved(value: Tensor, dim: str, start: Tensor) -> dict[str, Tensor]:
    """Return the starts of a slice of `value` that begins at `start` of `dim`."""
    before = value.start(dim)
    axes = joined_axes((before, start))
    begin = Tensor(axes, (), before.view(axes, ()) + start.view(axes, ()))
    return {**value.starts, dim: begin}


def spread(value: Tensor, axes: Mapping[str, int]) -> Tensor:
    """Return `value` with an array axis for each of `axes`, after its other axes."""
    others = tuple(axis for axis in value.axes if axis not in axes)
    view = value.view((*others, *axes), value.dims)
    tail = view.shape[len(others) + len(axes) :]
    shape = (*view.shape[: len(others)], *axes.values(), *tail)
    data = np.broadcast_to(view, shape)
    return replace(value, axes=(*others, *axes), data=data)


def join(value: Tensor, dim: str, axes: Mapping[str, int], extent: int) -> Tensor:
    """
    Concatenate the slices of all instances along `axes`: the inverse of `split`.

    A dimension that `value` does not have is new: one element per instance. Raises
    InterpretationError if the slices hold more than `extent` elements.
    """
    if dim not in value.dims:
        value = _with_dim(value, dim)
    joined = _side_by_side(value, dim, axes)
    if dim in value.lengths:
        real = _side_by_side(real_elements(value, dim), dim, axes)
        joined = _compacted(joined, dim, real, extent)
    data = resized(joined.data, joined.position(dim), extent)
    return replace(joined, data=data)


def _with_dim(value: Tensor, dim: str) -> Tensor:
    dims = (dim, *value.dims)
    return replace(value, dims=dims, data=value.view(value.axes, dims))


def _side_by_side(value: Tensor, dim: str, axes: Mapping[str, int]) -> Tensor:
    """Concatenate whole arrays, padding included, along `dim`."""
    copies = spread(value, axes)
    first = len(copies.axes) - len(axes)
    position = copies.position(dim) - len(axes)
    data = np.moveaxis(
        copies.data,
        range(first, first + len(axes)),
        range(position, position + len(axes)),
    )
    before, after = data.shape[:position], data.shape[position + len(axes) + 1 :]
    data = data.reshape(*before, prod(axes.values()) * value.extent(dim), *after)
    others = {d: n for d, n in value.lengths.items() if d != dim}
    lengths = {d: _uniform(n, d, axes) for d, n in others.items()}
    starts = {d: instance(n, axes, 0) for d, n in value.starts.items()}
    return Tensor(copies.axes[:first], value.dims, data, lengths, starts)


def _compacted(value: Tensor, dim: str, real: Tensor, extent: int) -> Tensor:
    """Move the elements that `real` marks along `dim` to the front, in order."""
    total = Tensor(real.axes, (), real.data.sum(axis=-1))
    if (largest := int(total.data.max())) > extent:
        raise InterpretationError(
            f"{largest} elements are concatenated along {dim}, where the type has "
            f"{extent}"
        )
    order = np.argsort(real.data == 0.0, axis=-1, kind="stable")
    named = Tensor(real.axes, real.dims, order.astype(np.float64))
    index = named.view(value.axes, value.dims).astype(np.intp)
    data = np.take_along_axis(value.data, index, axis=value.position(dim))
    lengths = {**value.lengths, **ragged(dim, total, extent)}
    return replace(value, data=data, lengths=lengths)


def _uniform(length: Tensor, dim: str, axes: Iterable[str]) -> Tensor:
    """
    Return `length` without `axes`.

    Raises InterpretationError if instances along them have different lengths.
    """
    for axis in axes:
        if axis not in length.axes:
            continue
        first = at(length, axis, 0)
        if np.any(first.view(length.axes, ()) != length.data):
            raise InterpretationError(
                f"instances along the axis '{axis}' have different numbers of elements "
                f"along {dim}, and are combined element by element"
            )
        length = first
    return length


def at(value: Tensor, axis: str, index: int) -> Tensor:
    """Return the value of the instance at `index` of a mesh axis."""
    if axis not in value.axes:
        return value
    data = value.data.take(index, axis=value.axes.index(axis))
    axes = tuple(other for other in value.axes if other != axis)
    lengths = {dim: at(n, axis, index) for dim, n in value.lengths.items()}
    starts = {dim: at(n, axis, index) for dim, n in value.starts.items()}
    return Tensor(axes, value.dims, np.asarray(data), lengths, starts)


def instance(value: Tensor, axes: Mapping[str, int], index: int) -> Tensor:
    """Return the value of the instance at a linear index in its group along `axes`."""
    indices = np.unravel_index(index, tuple(axes.values()))
    for axis, position in zip(axes, indices, strict=True):
        value = at(value, axis, int(position))
    return value


def only_at_root(value: Tensor, axes: Mapping[str, int], root: int) -> Tensor:
    """Return `value` on the instance `root` of each group, NaN on the others."""
    copies = spread(value, axes)
    others = np.arange(prod(axes.values())).reshape(*axes.values()) != root
    hidden = Tensor(tuple(axes), (), others.astype(np.float64))
    view = hidden.view(copies.axes, copies.dims)
    return replace(copies, data=np.where(view != 0.0, np.nan, copies.data))


def reduced_over(value: Tensor, kind: ReduceKind, axes: Mapping[str, int]) -> Tensor:
    """Reduce over groups of instances; every instance gets the result."""
    copies = spread(value, axes)
    first = len(copies.axes) - len(axes)
    where = tuple(range(first, len(copies.axes)))
    data = REDUCE[kind].reduce(copies.data, axis=where, initial=NEUTRAL[kind])
    lengths = {d: _uniform(n, d, axes) for d, n in value.lengths.items()}
    starts = {d: instance(n, axes, 0) for d, n in value.starts.items()}
    return Tensor(copies.axes[:first], value.dims, np.asarray(data), lengths, starts)


def shifted(value: Tensor, axis: str, count: int, offset: int, wrap: bool) -> Tensor:
    """Return the value of the instance `offset` before; zeros if there is none."""
    copies, old = spread(value, {axis: count}), value.lengths
    last = len(copies.axes) - 1
    data = np.roll(copies.data, offset, axis=last)
    if not wrap:
        source = np.arange(count) - offset
        lost = Tensor((axis,), (), ((source < 0) | (source >= count)).astype(float))
        data = np.where(lost.view(copies.axes, copies.dims) != 0.0, 0.0, data)
    lengths = {d: shifted(n, axis, count, offset, True) for d, n in old.items()}
    begins = value.starts.items()
    starts = {d: shifted(n, axis, count, offset, True) for d, n in begins}
    return Tensor(copies.axes, copies.dims, data, lengths, starts)


def stacked(values: Sequence[Tensor], axes: Mapping[str, int]) -> Tensor:
    """Return one value whose instances along the new `axes`, in order, are `values`."""
    if not axes:
        return values[0]
    dims, old = values[0].dims, joined_axes(values)
    views = np.broadcast_arrays(*(value.view(old, dims) for value in values))
    data = np.stack(views, axis=len(old))
    shape = (*data.shape[: len(old)], *axes.values(), *data.shape[len(old) + 1 :])
    lengths: dict[str, Tensor] = {}
    for dim in dict.fromkeys(dim for value in values for dim in value.lengths):
        lengths[dim] = stacked([value.length(dim) for value in values], axes)
    starts: dict[str, Tensor] = {}
    for dim in dict.fromkeys(dim for value in values for dim in value.starts):
        starts[dim] = stacked([value.start(dim) for value in values], axes)
    return Tensor((*old, *axes), dims, data.reshape(shape), lengths, starts)


def agreed(value: Tensor, axes: Iterable[str]) -> Tensor:
    """Return the common value of the instances along `axes`, NaN where they differ."""
    for axis in axes:
        if axis not in value.axes:
            continue
        first = at(value, axis, 0)
        same = np.all(_close(first, value), axis=value.axes.index(axis))
        data = np.where(same, first.data, np.nan)
        value = replace(first, data=data)
    return value


def agree(value: Tensor, axes: Iterable[str]) -> bool:
    """Return whether the instances along `axes` hold the same value."""
    return all(
        np.all(_close(at(value, axis, 0), value)) for axis in axes if axis in value.axes
    )


def _close(first: Tensor, second: Tensor) -> NDArray[np.bool_]:
    view = first.view(second.axes, second.dims)
    return np.isclose(view, second.data, rtol=TOLERANCE, atol=1e-12, equal_nan=True)
