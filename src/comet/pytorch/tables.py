"""The translation of rows of tables, and of elements that indices name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from xdsl.dialects.builtin import IntegerType, f32, i1, i32, i64

from comet.dialects.compound.dims import Element
from comet.dialects.compound.elementary import ReduceKind
from comet.dialects.compound.map import MapKind
from comet.pytorch.arithmetic import UnsupportedError
from comet.pytorch.elementwise import alike
from comet.pytorch.emitter import View
from comet.pytorch.rules import Number, Result, rule
from comet.pytorch.tracer import Tracer


@rule("aten.embedding")
def embedding(
    t: Tracer,
    out: Result,
    weight: View,
    indices: View,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
):
    return t.gathered(weight, indices)


@rule("aten.embedding_dense_backward")
def embedding_dense_backward(
    t: Tracer,
    out: Result,
    grad_output: View,
    indices: View,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
):
    if scale_grad_by_freq:
        raise UnsupportedError("gradients of an embedding by frequencies")
    rows = t.cast(grad_output, f32)
    if padding_idx >= 0:
        padding = t.map(MapKind.EQ, indices, padding_idx)
        padding = t.reshaped(padding, [*indices.shape, 1])
        rows = t.map(MapKind.SELECT, padding, 0.0, rows)
    sums = t.scattered(rows, indices, num_weights)
    return t.cast(sums, out.element)


def _named(
    t: Tracer, input: View, dim: int, index: View, src: View | Number = 0
) -> View:
    """Return which position of an axis an index names, for each position of others."""
    if not _names_one_each(input, dim, index, src):
        raise UnsupportedError("an index with several positions of an axis")
    return t.map(MapKind.EQ, index, t.positions_along(input, dim, index.tensor.element))


def _names_one_each(input: View, dim: int, index: View, src: View | Number = 0) -> bool:
    """Whether an index, and `src`, have one position for each of the other axes."""
    wanted = [*input.shape]
    wanted[dim] = 1
    given = [view.shape for view in (index, src) if isinstance(view, View)]
    return all(shape == tuple(wanted) for shape in given)


def _element_ids(t: Tracer, input: View, dim: int, index: View) -> View:
    """Return the place in memory, in elements, of each position that an index names."""
    rank = len(input.axes)
    ids = t.convert(index, i64)
    named: list[View] = [t.positions_along(index, axis, i64) for axis in range(rank)]
    named[dim] = ids
    return _combined(t, named, input.shape)


def _combined(t: Tracer, ids: Sequence[View], extents: Sequence[int]) -> View:
    """Return the positions in one axis that several, of `extents`, are as one."""
    first, *others = ids
    for view, extent in zip(others, extents[1:], strict=True):
        first = t.map(MapKind.ADD, t.map(MapKind.MULT, first, extent), view)
    return first


@rule("aten.gather")
def gather(t: Tracer, out: Result, input: View, dim: int, index: View, **_: object):
    if not _names_one_each(input, dim, index):
        elements = t.reshaped(input, [prod(input.shape)])
        return t.gathered(elements, _element_ids(t, input, dim, index))
    named = t.map(MapKind.SELECT, _named(t, input, dim, index), input, 0)
    return t.reduce(ReduceKind.ADD, named, [dim], keep=True)


MOST_POSITIONS = 8
"""The most positions of an axis that are set one after the other, as of experts."""


@rule("aten.scatter")
def scatter(
    t: Tracer, out: Result, input: View, dim: int, index: View, src: View | Number
):
    """Set one position after the other; of equal ones the last counts."""
    count = index.shape[dim] if index.shape else 1
    if count > MOST_POSITIONS and not isinstance(src, View):
        named = t.map(MapKind.GT, _counts(t, input, dim, index), 0.0)
        return t.map(MapKind.SELECT, named, src, input)
    if count > MOST_POSITIONS:
        raise UnsupportedError(f"{count} positions of an axis that are set")
    for number in range(count):
        parts = [
            t.sliced(x, dim, number, 1) if isinstance(x, View) and count > 1 else x
            for x in (index, src)
        ]
        one, value = cast("tuple[View, View | Number]", parts)
        here = _named(t, input, dim, one, value)
        input = t.map(MapKind.SELECT, here, value, input)
    return input


@rule("aten.scatter_add")
def scatter_add(t: Tracer, out: Result, input: View, dim: int, index: View, src: View):
    if _names_one_each(input, dim, index, src):
        named = _named(t, input, dim, index, src)
        more = t.map(MapKind.SELECT, named, src, 0.0)
    else:
        ids = _element_ids(t, input, dim, index)
        for axis, extent in enumerate(index.shape):
            src = t.sliced(src, axis, 0, extent)
        sums = t.scattered(t.cast(src, _sum_type(out)), ids, prod(input.shape))
        more = t.cast(t.reshaped(sums, input.shape), out.element)
    return t.map(MapKind.ADD, input, more)


def _counts(t: Tracer, input: View, dim: int, index: View) -> View:
    """Return how often an index names each position, in f32."""
    of_input, of_index = (
        t.full(x.shape, number, f32) for x, number in ((input, 0), (index, 1))
    )
    return scatter_add(t, Result(input.shape, f32), of_input, dim, index, of_index)


@rule("aten.scatter_reduce")
def scatter_reduce(
    t: Tracer,
    out: Result,
    input: View,
    dim: int,
    index: View,
    src: View,
    reduce: str,
    *,
    include_self: bool = True,
):
    """Return sums or means of what an index names, with what was there or without."""
    if reduce not in ("sum", "mean") or isinstance(out.element, IntegerType):
        raise UnsupportedError(f"a scatter of {out.element} by {reduce}")
    counts = _counts(t, input, dim, index)
    if not include_self:
        input = t.map(MapKind.SELECT, t.map(MapKind.GT, counts, 0.0), 0.0, input)
    sums = scatter_add(
        t, Result(out.shape, f32), t.cast(input, f32), dim, index, t.cast(src, f32)
    )
    if reduce == "mean":
        added = (
            t.map(MapKind.ADD, counts, 1.0)
            if include_self
            else t.map(MapKind.MAX, counts, 1.0)
        )
        sums = t.map(MapKind.DIV, sums, added)
    return t.cast(sums, out.element)


@rule("aten.bucketize")
def bucketize(
    t: Tracer,
    out: Result,
    input: View | Number,
    boundaries: View,
    *,
    out_int32: bool = False,
    right: bool = False,
):
    return _below(t, out, boundaries, input, right=right)


@rule("aten.searchsorted")
def searchsorted(
    t: Tracer,
    out: Result,
    sorted_sequence: View,
    input: View | Number,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: View | None = None,
):
    if sorter is not None:
        raise UnsupportedError("boundaries in another order")
    return _below(t, out, sorted_sequence, input, right=right or side == "right")


def _below(
    t: Tracer, out: Result, boundaries: View, input: View | Number, *, right: bool
) -> View:
    """Return how many boundaries are below each number, with `right` not above."""
    if boundaries.shape[-1] * prod(out.shape) > MOST_COMPARED:
        raise UnsupportedError(
            f"{prod(out.shape)} numbers among {boundaries.shape[-1]}"
        )
    *outer, count = boundaries.shape
    several = t.reshaped(boundaries, [*outer, 1, count] if outer else [count])
    number = t.reshaped(input, [*input.shape, 1]) if isinstance(input, View) else input
    above = t.map(MapKind.GT if right else MapKind.GE, *alike(t, several, number))
    one, zero = t.full((), 1, i32), t.full((), 0, i32)
    counted = t.map(MapKind.SELECT, above, zero, one)
    return t.cast(t.reduce(ReduceKind.ADD, counted, [-1]), out.element)


@rule("aten.index")
def index(t: Tracer, out: Result, input: View, indices: Sequence[View | None]):
    return _indexed(t, input, _Named.by(indices))


@rule("aten.index_select")
def index_select(t: Tracer, out: Result, input: View, dim: int, index: View):
    return _indexed(t, input, _Named({dim % len(input.axes): index}))


@rule("aten.index_put", "aten._unsafe_index_put")
def index_put(
    t: Tracer,
    out: Result,
    input: View,
    indices: Sequence[View | None],
    values: View,
    accumulate: bool = False,
):
    if not accumulate and prod(values.shape) == 1 and (mask := _mask(indices)):
        rest = [1] * (len(input.axes) - len(mask.axes))
        where = t.reshaped(mask, [*mask.shape, *rest])
        number = t.convert(t.reshaped(values, ()), out.element)
        return t.map(MapKind.SELECT, where, number, input)
    named = _Named.by(indices)
    ids, rows = named.ids(t, input.shape), named.rows(input.shape)
    count, whole = prod(rows), named.whole(input.shape)
    order = named.order(len(ids.axes), len(whole))
    shape = [[*ids.shape, *whole][place] for place in order]
    each = t.permuted(t.expanded(values, shape), _inverse(order))
    back = _inverse([*named.axes, *named.others(len(input.axes))])
    if accumulate:
        sums = t.scattered(t.cast(each, _sum_type(out)), ids, count)
        table = t.reshaped(t.cast(sums, out.element), [*rows, *whole])
        return t.map(MapKind.ADD, input, t.permuted(table, back))
    if prod(ids.shape) != 1:
        table = t.permuted(input, [*named.axes, *named.others(len(input.axes))])
        table = t.reshaped(table, [count, *whole])
        placed = _placed(t, table, ids, t.convert(each, out.element))
        return t.permuted(t.reshaped(placed, [*rows, *whole]), back)
    one = t.permuted(t.reshaped(each, [*(1 for _ in rows), *whole]), back)
    places = t.reshaped(t.positions(count, ids.tensor.element), rows)
    here = t.map(MapKind.EQ, places, t.reshaped(ids, ()))
    here = t.permuted(t.reshaped(here, [*rows, *(1 for _ in whole)]), back)
    return t.map(MapKind.SELECT, here, t.convert(one, out.element), input)


MOST_COMPARED = 2**24
"""The most pairs of an id and a row that are compared to set rows."""


def _placed(t: Tracer, table: View, ids: View, values: View) -> View:
    """
    Return a table with rows that ids name set to values.

    Each row is that of the last id that names it, which is found by comparing all.
    """
    count, (rows, *whole) = prod(ids.shape), table.shape
    if rows * count > MOST_COMPARED:
        raise UnsupportedError(f"{count} of {rows} positions that are set")
    flat = t.reshaped(ids, [1, count])
    places = t.reshaped(t.positions(rows, ids.tensor.element), [rows, 1])
    numbers = t.positions_along(flat, 1, i64)
    here = t.map(MapKind.EQ, places, flat)
    last = t.reduce(ReduceKind.MAX, t.map(MapKind.SELECT, here, numbers, -1), [1])
    found = t.gathered(t.reshaped(values, [count, *whole]), t.map(MapKind.MAX, last, 0))
    named = t.reshaped(t.map(MapKind.GE, last, 0), [rows, *(1 for _ in whole)])
    return t.map(MapKind.SELECT, named, found, table)


def _mask(indices: Sequence[View | None]) -> View | None:
    """Return the conditions that say where, along the first axes; None if ids do."""
    first, *others = indices
    masks = first is not None and first.tensor.element == i1
    return first if masks and not any(others) else None


@dataclass(frozen=True)
class _Named:
    """The axes of a tensor whose positions other tensors name."""

    given: Mapping[int, View]

    @classmethod
    def by(cls, indices: Sequence[View | None]) -> _Named:
        """Return those that have an index; raise UnsupportedError for conditions."""
        given = {axis: ids for axis, ids in enumerate(indices) if ids is not None}
        if any(ids.tensor.element == i1 for ids in given.values()):
            raise UnsupportedError("an index of conditions, whose result has any shape")
        return cls(given)

    @property
    def axes(self) -> list[int]:
        """The numbers of these axes."""
        return [*self.given]

    def others(self, rank: int) -> list[int]:
        """Return the numbers of the axes whose positions are all taken."""
        return [axis for axis in range(rank) if axis not in self.given]

    def rows(self, shape: Sequence[int]) -> list[int]:
        """Return the extents of the axes."""
        return [shape[axis] for axis in self.given]

    def whole(self, shape: Sequence[int]) -> list[int]:
        """Return the extents of the others."""
        return [shape[axis] for axis in self.others(len(shape))]

    def ids(self, t: Tracer, shape: Sequence[int]) -> View:
        """Return the positions in all of the axes as one, those from the end too."""
        named, rows = self.given.values(), self.rows(shape)
        element = max((view.tensor.element for view in named), key=_width)
        counted: list[View] = []
        for view, extent in zip(named, rows, strict=True):
            near = t.convert(view, element)
            from_end = t.map(MapKind.ADD, near, extent)
            here = t.map(MapKind.GE, near, 0)
            counted.append(t.map(MapKind.SELECT, here, near, from_end))
        return _combined(t, counted, rows)

    def order(self, count: int, others: int) -> list[int]:
        """
        Return the order of `count` axes of ids, and of others behind them, in a result.

        Where the axes are adjacent, those of ids are in their place, else in front.
        """
        first, *_ = axes = self.axes
        front = first if axes == [*range(first, first + len(axes))] else 0
        behind = range(count, count + others)
        return [*behind[:front], *range(count), *behind[front:]]


def _indexed(t: Tracer, input: View, named: _Named) -> View:
    """Return the positions of some axes that tensors name, and others whole."""
    shape = input.shape
    whole = named.whole(shape)
    front = t.permuted(input, [*named.axes, *named.others(len(shape))])
    table = t.reshaped(front, [prod(named.rows(shape)), *whole])
    ids = named.ids(t, shape)
    rows = t.gathered(table, ids)
    return t.permuted(rows, named.order(len(ids.axes), len(whole)))


def _width(element: Element) -> int:
    return element.bitwidth


def _sum_type(out: Result) -> Element:
    """Return the type of sums; raise UnsupportedError for conditions."""
    if out.element == i1:
        raise UnsupportedError("sums of i1")
    return out.element if isinstance(out.element, IntegerType) else f32


def _inverse(order: Sequence[int]) -> list[int]:
    """Return the order that undoes another one."""
    return sorted(range(len(order)), key=order.__getitem__)
