"""
The values of the reference interpreter: arrays with named axes.

A value of an SPMD program is one array for all instances of the mesh: an axis for each
mesh axis along which instances may differ (absent = replicated), followed by the axes
of the tensor. Ops work on all instances in lockstep.

If a factor does not divide, some instances have fewer real elements. Arrays keep the
extent of the type; `lengths` has the number of real elements of each instance. The
others are padding: a reduction takes its neutral element for them. `starts` has the
position of a slice in the whole dimension, which masks need.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_letters

import numpy as np
from numpy.typing import NDArray
from xdsl.utils.exceptions import InterpretationError

from comet.dialects.compound import ReduceKind

Array = NDArray[np.float64]

NEUTRAL: dict[ReduceKind, float] = {ReduceKind.ADD: 0.0, ReduceKind.MAX: -np.inf}
REDUCE: dict[ReduceKind, np.ufunc] = {
    ReduceKind.ADD: np.add,
    ReduceKind.MAX: np.maximum,
}


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value on all instances of the enclosing mesh axes."""

    axes: tuple[str, ...]
    """The mesh axes along which instances may differ: the leading axes of `data`."""
    dims: tuple[str, ...]
    """The names of the tensor's dimensions: the trailing axes of `data`."""
    data: Array
    lengths: Mapping[str, Tensor] = field(default_factory=dict[str, "Tensor"])
    """Real elements along a ragged dimension, for each instance; absent = all."""
    starts: Mapping[str, Tensor] = field(default_factory=dict[str, "Tensor"])
    """The first position along a sliced dimension, for each instance; absent = 0."""

    def position(self, dim: str) -> int:
        """Return the index of the axis of `data` that holds the dimension."""
        return len(self.axes) + self.dims.index(dim)

    def extent(self, dim: str) -> int:
        """Return the extent (elements) of a dimension, the padding included."""
        return self.data.shape[self.position(dim)]

    def view(self, axes: Sequence[str], dims: Sequence[str]) -> Array:
        """Return the data with these axes, of extent 1 where the value has none."""
        wanted = [*(("axis", a) for a in axes), *(("dim", d) for d in dims)]
        have = [*(("axis", a) for a in self.axes), *(("dim", d) for d in self.dims)]
        order = [have.index(label) for label in wanted if label in have]
        index = tuple(slice(None) if w in have else None for w in wanted)
        return self.data.transpose(order)[index]

    def length(self, dim: str) -> Tensor:
        """Return the number of real elements along `dim`, for each instance."""
        return self.lengths.get(dim) or scalar(self.extent(dim))

    def start(self, dim: str) -> Tensor:
        """Return the first position along `dim`, for each instance."""
        return self.starts.get(dim) or scalar(0)

    def positions(self, dim: str) -> Tensor:
        """Return the position of each element along `dim` in the whole dimension."""
        start = self.start(dim)
        counted = start.data[..., None] + np.arange(self.extent(dim))
        return Tensor(start.axes, (dim,), counted)


def scalar(value: float) -> Tensor:
    """Return a rank-0 value that is the same on every instance."""
    return Tensor((), (), np.asarray(value, dtype=np.float64))


def joined_axes(values: Iterable[Tensor]) -> tuple[str, ...]:
    """Return the mesh axes along which any of `values` differs."""
    return tuple(dict.fromkeys(axis for value in values for axis in value.axes))


def joined_lengths(values: Sequence[Tensor], dims: Iterable[str]) -> dict[str, Tensor]:
    """
    Return the lengths of the ragged ones of `dims` in a result computed from `values`.

    A value that is not ragged (a constant) fits any length. Raises InterpretationError
    if two ragged values disagree.
    """
    lengths: dict[str, Tensor] = {}
    for dim in dims:
        for value in values:
            if (length := value.lengths.get(dim)) is not None:
                _check_equal(lengths.setdefault(dim, length), length, dim)
    return lengths


def joined_starts(values: Iterable[Tensor], dims: Sequence[str]) -> dict[str, Tensor]:
    """Return the starts along `dims` of a result computed from `values`."""
    starts: dict[str, Tensor] = {}
    for value in values:
        starts = {d: s for d, s in value.starts.items() if d in dims} | starts
    return starts


def _check_equal(first: Tensor, second: Tensor, dim: str) -> None:
    axes = joined_axes((first, second))
    if np.any(first.view(axes, ()) != second.view(axes, ())):
        raise InterpretationError(
            f"operands have different numbers of elements along {dim} on some instance"
        )


def ragged(dim: str, length: Tensor, extent: int) -> dict[str, Tensor]:
    """Return `length` as an entry of `lengths`; nothing if all elements are real."""
    return {dim: length} if np.any(length.data != extent) else {}


def real_elements(value: Tensor, dim: str) -> Tensor:
    """Return 1 where an element along `dim` is real, 0 where it is padding."""
    length = value.length(dim)
    real = np.arange(value.extent(dim)) < length.data[..., None]
    return Tensor(length.axes, (dim,), real.astype(np.float64))


def masked(value: Tensor, dims: Iterable[str], fill: float) -> Tensor:
    """Return `value` with `fill` in its padding along `dims`."""
    data, wanted = value.data, tuple(dims)
    for dim in wanted:
        if dim in value.lengths:
            real = real_elements(value, dim).view(value.axes, value.dims)
            data = np.where(real != 0.0, data, fill)
    lengths = {dim: n for dim, n in value.lengths.items() if dim not in wanted}
    return replace(value, data=data, lengths=lengths)


def with_padding(value: Tensor, extents: Mapping[str, int], number: float) -> Tensor:
    """Return `value` with `number` at positions of a dimension from its extent on."""
    for dim, extent in extents.items():
        positions = value.positions(dim)
        axes, dims = joined_axes((value, positions)), value.dims
        beyond = positions.view(axes, dims) >= extent
        data = np.where(beyond, number, value.view(axes, dims))
        value = replace(value, axes=axes, data=data)
    return value


def reduced(value: Tensor, kind: ReduceKind, dims: Sequence[str]) -> Tensor:
    """Reduce the real elements along `dims`."""
    padded = masked(value, dims, NEUTRAL[kind])
    where = tuple(value.position(dim) for dim in dims)
    dims_left = tuple(dim for dim in value.dims if dim not in dims)
    data = REDUCE[kind].reduce(padded.data, axis=where, initial=NEUTRAL[kind])
    starts = joined_starts((value,), dims_left)
    return Tensor(value.axes, dims_left, np.asarray(data), padded.lengths, starts)


def contracted(lhs: Tensor, rhs: Tensor, dims: Sequence[str]) -> Tensor:
    """Multiply, and sum over the dimensions that are not in `dims`."""
    summed = [d for d in (*lhs.dims, *rhs.dims) if d not in dims]
    factors = [masked(value, summed, 0.0) for value in (lhs, rhs)]
    axes = joined_axes(factors)
    labels = [f"axis {axis}" for axis in axes]
    labels += dict.fromkeys((*lhs.dims, *rhs.dims))
    letters = dict(zip(labels, ascii_letters, strict=False))

    def subscripts(axes: Sequence[str], dims: Sequence[str]) -> str:
        return "".join(letters[x] for x in (*(f"axis {axis}" for axis in axes), *dims))

    left, right = (subscripts(value.axes, value.dims) for value in factors)
    data: Array = np.einsum(
        f"{left},{right}->{subscripts(axes, dims)}",
        *(value.data for value in factors),
        optimize=True,
    )
    both = (lhs, rhs)
    lengths, starts = joined_lengths(both, dims), joined_starts(both, dims)
    return Tensor(axes, tuple(dims), data, lengths, starts)


def _rows_and_ids(
    rows: Tensor, dims: Sequence[str], ids: Tensor, axes: Sequence[str]
) -> tuple[tuple[int, ...], Array, NDArray[np.intp]]:
    """
    Return the numbers of instances along mesh axes, and rows and ids on all of them.

    The axes of rows are `axes` and `dims`; ids in padding are 0.
    """
    data = rows.view(axes, dims)
    chosen = masked(ids, ids.dims, 0.0).view(axes, ids.dims).astype(np.intp)
    count = len(axes)
    instances = np.broadcast_shapes(data.shape[:count], chosen.shape[:count])
    return (
        instances,
        np.broadcast_to(data, (*instances, *data.shape[count:])),
        np.broadcast_to(chosen, (*instances, *chosen.shape[count:])),
    )


def rows_of(table: Tensor, ids: Tensor, dim: str) -> Tensor:
    """Return the rows of `table` along `dim` that `ids` names; each must exist."""
    axes, others = joined_axes((table, ids)), [d for d in table.dims if d != dim]
    instances, rows, chosen = _rows_and_ids(table, (dim, *others), ids, axes)
    selected = [rows[instance][chosen[instance]] for instance in np.ndindex(instances)]
    data = np.stack(selected).reshape((*instances, *selected[0].shape))
    at, both = table.dims.index(dim), (table, ids)
    dims = (*table.dims[:at], *ids.dims, *table.dims[at + 1 :])
    ordered = Tensor(axes, (*ids.dims, *others), data)
    lengths, starts = joined_lengths(both, dims), joined_starts(both, dims)
    return Tensor(axes, dims, ordered.view(axes, dims), lengths, starts)


def added_rows(
    values: Tensor, ids: Tensor, dim: str, extents: Mapping[str, int]
) -> Tensor:
    """Return zeros of `extents` (elements), and rows added where ids say."""
    axes, others = joined_axes((values, ids)), [d for d in extents if d != dim]
    real = masked(values, ids.dims, 0.0)
    instances, rows, chosen = _rows_and_ids(real, (*ids.dims, *others), ids, axes)
    row = rows.shape[len(axes) + len(ids.dims) :]
    data = np.zeros((*instances, extents[dim], *row))
    for instance in np.ndindex(instances):
        np.add.at(data[instance], chosen[instance], rows[instance])
    ordered, dims = Tensor(axes, (dim, *others), data), tuple(extents)
    lengths, starts = (
        joined_lengths((values,), others),
        joined_starts((values,), others),
    )
    return Tensor(axes, dims, ordered.view(axes, dims), lengths, starts)


def selected(condition: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """Return `yes` on the instances where the rank-0 `condition` holds, else `no`."""
    axes = joined_axes((condition, yes, no))
    data = np.where(
        condition.view(axes, yes.dims) != 0.0,
        yes.view(axes, yes.dims),
        no.view(axes, yes.dims),
    )
    both = (yes, no)
    lengths, starts = joined_lengths(both, yes.dims), joined_starts(both, yes.dims)
    return Tensor(axes, yes.dims, data, lengths, starts)
