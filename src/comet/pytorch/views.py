"""The translation of views, and of new tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import i32

from comet.dialects.compound.map import MapKind
from comet.pytorch.arithmetic import UnsupportedError
from comet.pytorch.emitter import View
from comet.pytorch.ops import Fill, Map
from comet.pytorch.rules import Number, Result, rule
from comet.pytorch.tracer import Tracer


@rule(
    "aten.clone",
    "aten.alias",
    "aten.detach",
    "aten.contiguous",
    "aten.lift_fresh_copy",
    "aten.view_of",
    "prims.view_of",
)
def same(t: Tracer, out: Result, input: View, **_: object):
    return input


@rule("aten._to_copy", "prims.convert_element_type", "aten.to")
def to_copy(t: Tracer, out: Result, input: View, *_: object, **__: object):
    return t.convert(input, out.element)


@rule(
    "aten.view",
    "aten.reshape",
    "aten._unsafe_view",
    "aten._reshape_copy",
    "aten.squeeze",
    "aten.unsqueeze",
    "aten.flatten",
    "aten.unflatten",
)
def reshape(t: Tracer, out: Result, input: View, *_: object):
    if out.element != input.tensor.element:
        raise UnsupportedError("a view of the bits of other elements")
    return t.reshaped(input, out.shape)


@rule("aten.permute", "prims.transpose")
def permute(t: Tracer, out: Result, input: View, dims: Sequence[int]):
    return t.permuted(input, dims)


@rule("aten.transpose")
def transpose(t: Tracer, out: Result, input: View, dim0: int, dim1: int):
    order = [*range(len(input.axes))]
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return t.permuted(input, order)


@rule("aten.t")
def t_(t: Tracer, out: Result, input: View):
    return t.permuted(input, range(len(input.axes))[::-1])


@rule("aten.expand")
def expand(t: Tracer, out: Result, input: View, size: Sequence[int], **_: object):
    return t.expanded(input, out.shape)


@rule("aten.repeat")
def repeat(t: Tracer, out: Result, input: View, repeats: Sequence[int]):
    shape = [1] * (len(repeats) - len(input.axes)) + [*input.shape]
    pairs = list(zip(repeats, shape, strict=True))
    apart = t.reshaped(input, [n for _, extent in pairs for n in (1, extent)])
    several = t.expanded(apart, [n for pair in pairs for n in pair])
    return t.reshaped(several, out.shape)


@rule("prims.broadcast_in_dim")
def broadcast_in_dim(
    t: Tracer,
    out: Result,
    input: View,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
):
    kept = [1] * len(shape)
    for axis, extent in zip(broadcast_dimensions, input.shape, strict=True):
        kept[axis] = extent
    return t.expanded(t.reshaped(input, kept), shape)


@rule("aten.slice")
def slice_(
    t: Tracer,
    out: Result,
    input: View,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
):
    first, _, _ = slice(start, end).indices(input.shape[dim])
    count = out.shape[dim]
    if step == 1:
        return t.sliced(input, dim, first, count)
    blocks = _blocks(input.shape[dim], first, count, step)
    after = max(blocks + count * step - input.shape[dim], 0)
    longer = t.padded(input, dim, 0, after, 0)
    whole = t.sliced(longer, dim, blocks, count * step)
    dim %= len(input.axes)
    before, behind = whole.shape[:dim], whole.shape[dim + 1 :]
    apart = t.reshaped(whole, [*before, count, step, *behind])
    return t.reshaped(t.sliced(apart, dim + 1, first - blocks, 1), out.shape)


def _blocks(extent: int, first: int, count: int, step: int) -> int:
    """
    Return where `count` blocks of `step` positions begin that have one each of a slice.

    They end at the axis's end or before it, if that is possible.
    """
    return min(first, max(extent - count * step, 0))


@rule("aten.slice_scatter")
def slice_scatter(
    t: Tracer,
    out: Result,
    input: View,
    src: View,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
):
    extent, count = input.shape[dim], src.shape[dim]
    first, _, _ = slice(start, end).indices(extent)
    fill = input.tensor.op
    number = fill.number if isinstance(fill, Fill) else 0
    if step != 1:
        placed = _apart(t, src, dim, extent, first, step, number)
        if isinstance(fill, Fill):
            return placed
        ones = t.full((count,), 1, i32)
        steps = _apart(t, ones, 0, extent, first, step, 0)
        inner = len(input.axes) - 1 - dim % len(input.axes)
        here = t.map(MapKind.EQ, t.reshaped(steps, [extent, *[1] * inner]), 1)
        return t.map(MapKind.SELECT, here, placed, input)
    after = extent - first - count
    if isinstance(fill, Fill):
        return t.padded(src, dim, first, after, number)
    before = [t.sliced(input, dim, 0, first)] if first else []
    behind = [t.sliced(input, dim, first + count, after)] if after else []
    return t.joined([*before, src, *behind], dim)


def _apart(
    t: Tracer,
    part: View,
    dim: int,
    extent: int,
    first: int,
    step: int,
    number: float,
) -> View:
    """Return an axis with a number everywhere but at every `step`-th position."""
    count = part.shape[dim]
    blocks = _blocks(extent, first, count, step)
    dim %= len(part.axes)
    outer, inner = part.shape[:dim], part.shape[dim + 1 :]
    one = t.reshaped(part, [*outer, count, 1, *inner])
    place = first - blocks
    each = t.padded(one, dim + 1, place, step - 1 - place, number)
    whole = t.reshaped(each, [*outer, count * step, *inner])
    left = min(count * step, extent - blocks)
    longer = t.padded(t.sliced(whole, dim, 0, left), dim, blocks, 0, number)
    return t.padded(longer, dim, 0, extent - blocks - left, number)


@rule("aten.select_scatter")
def select_scatter(
    t: Tracer, out: Result, input: View, src: View, dim: int, index: int
):
    first, shape = index % input.shape[dim], [*input.shape]
    shape[dim] = 1
    return slice_scatter(t, out, input, t.reshaped(src, shape), dim, first, first + 1)


@rule("aten.constant_pad_nd")
def constant_pad_nd(
    t: Tracer, out: Result, input: View, pad: Sequence[int], value: Number = 0
):
    for place in range(0, len(pad), 2):
        axis = len(input.axes) - 1 - place // 2
        before, after = pad[place : place + 2]
        left = input.shape[axis] + min(before, 0) + min(after, 0)
        input = t.sliced(input, axis, max(-before, 0), left)
        input = t.padded(input, axis, max(before, 0), max(after, 0), value)
    return input


@rule("aten.select")
def select(t: Tracer, out: Result, input: View, dim: int, index: int):
    part = t.sliced(input, dim, index % input.shape[dim], 1)
    return t.reshaped(part, out.shape)


@rule("aten.split_with_sizes", "aten.split", "aten.chunk")
def split(
    t: Tracer, out: Result, input: View, sizes: Sequence[int] | int, dim: int = 0
):
    extent = input.shape[dim]
    if isinstance(sizes, int):
        sizes = [min(sizes, extent - first) for first in range(0, extent, sizes)]
    firsts = [sum(sizes[:number]) for number in range(len(sizes))]
    pairs = zip(firsts, sizes, strict=True)
    parts = tuple(t.sliced(input, dim, first, size) for first, size in pairs)
    if len(set(sizes)) == 1:
        t.parts[parts] = input, dim
    return parts


@rule("aten.cat")
def cat(t: Tracer, out: Result, tensors: Sequence[View], dim: int = 0):
    parts = [t.convert(x, out.element) for x in tensors]
    if known := t.parts.get(tuple(parts)):
        return _moved(t, *known, dim, len(parts))
    raw = [_negated(part) for part in parts]
    if all(raw) or not any(raw):
        return t.joined(parts, dim)
    some = [one or part for one, part in zip(raw, parts, strict=True)]
    return _signed(
        t, t.joined(some, dim), dim, [part.shape[dim] for part in parts], raw
    )


def _moved(t: Tracer, view: View, old: int, new: int, count: int) -> View:
    """
    Return the parts of one axis of a view, one behind the other along another one.

    Torch moves to the first axis, and from there, what ranks gather and scatter.
    """
    old, new, shape = old % len(view.axes), new % len(view.axes), [*view.shape]
    shape[old : old + 1] = count, shape[old] // count
    cut = t.reshaped(view, shape)
    order = [axis for axis in range(len(shape)) if axis != old]
    joined = [shape[axis] for axis in order]
    joined[new] *= count
    order.insert(new, old)
    return t.reshaped(t.permuted(cut, order), joined)


def _negated(view: View) -> View | None:
    """Return what a view is the negative of, None for others."""
    op = view.tensor.op
    if isinstance(op, Map) and op.kind is MapKind.NEG:
        return View(op.operands[0], view.axes)
    return None


def _signed(
    t: Tracer,
    joined: View,
    dim: int,
    extents: Sequence[int],
    negative: Sequence[object | None],
) -> View:
    """
    Return joined parts, some of which are negative.

    A part is stored before it is joined, so that of a rotary embedding, which is stored
    anyway, no other half is: signs are those of positions.
    """
    inner = len(joined.axes) - 1 - dim % len(joined.axes)
    positions = t.positions(joined.shape[dim], i32)
    place = t.reshaped(positions, [*positions.shape, *[1] * inner])
    signs = [-1.0 if each else 1.0 for each in negative]
    sign, first = t.full((), signs[0], joined.tensor.element), 0
    for extent, number in zip(extents, signs[1:], strict=False):
        first += extent
        sign = t.map(MapKind.SELECT, t.map(MapKind.GE, place, first), number, sign)
    return t.map(MapKind.MULT, joined, sign)


@rule("aten.roll")
def roll(
    t: Tracer, out: Result, input: View, shifts: Sequence[int], dims: Sequence[int] = ()
):
    whole = input if dims else t.reshaped(input, [prod(input.shape)])
    for shift, dim in zip(shifts, dims or (0,), strict=True):
        extent = whole.shape[dim]
        if last := shift % extent:
            end = t.sliced(whole, dim, extent - last, last)
            start = t.sliced(whole, dim, 0, extent - last)
            whole = t.joined([end, start], dim)
    return t.reshaped(whole, out.shape)


@rule("aten.flip")
def flip(t: Tracer, out: Result, input: View, dims: Sequence[int]):
    """Return rows that positions name, from the last one to the first."""
    for dim in dims:
        if (extent := input.shape[dim]) > 1:
            last = t.map(MapKind.SUB, extent - 1, t.positions(extent, i32))
            order = [*range(len(input.axes))]
            order.insert(0, order.pop(dim))
            rows = t.gathered(t.permuted(input, order), last)
            back = sorted(range(len(order)), key=order.__getitem__)
            input = t.permuted(rows, back)
    return input


@rule("aten.unfold")
def unfold(t: Tracer, out: Result, input: View, dimension: int, size: int, step: int):
    """Return windows along a new last axis: parts of blocks, or rows of positions."""
    last = len(input.axes)
    dim = dimension % last
    count = out.shape[dim]
    if size > step:
        starts = t.map(MapKind.MULT, t.positions(count, i32), step)
        starts = t.reshaped(starts, [count, 1])
        order = [dim, *(axis for axis in range(last) if axis != dim)]
        ids = t.map(MapKind.ADD, starts, t.positions(size, i32))
        rows = t.gathered(t.permuted(input, order), ids)
        back = [*range(2, 2 + dim), 0, *range(2 + dim, 1 + last), 1]
        return t.permuted(rows, back)
    read = min(count * step, input.shape[dim])
    whole = t.padded(t.sliced(input, dim, 0, read), dim, 0, count * step - read, 0)
    before, behind = whole.shape[:dim], whole.shape[dim + 1 :]
    blocks = t.reshaped(whole, [*before, count, step, *behind])
    parts = t.sliced(blocks, dim + 1, 0, size)
    return t.permuted(parts, [*(n for n in range(last + 1) if n != dim + 1), dim + 1])


@rule("aten.diagonal")
def diagonal(
    t: Tracer, out: Result, input: View, offset: int = 0, dim1: int = 0, dim2: int = 1
):
    """Return elements of rows of a matrix, which positions name."""
    rank = len(input.axes)
    pair = dim1 % rank, dim2 % rank
    rest = [axis for axis in range(rank) if axis not in pair]
    columns, count = input.shape[dim2], out.shape[-1]
    first = offset if offset >= 0 else -offset * columns
    elements = t.reshaped(
        t.permuted(input, [*pair, *rest]),
        [input.shape[dim1] * columns, *(input.shape[axis] for axis in rest)],
    )
    steps = t.map(MapKind.MULT, t.positions(count, i32), columns + 1)
    found = t.gathered(elements, t.map(MapKind.ADD, steps, first))
    return t.permuted(found, [*range(1, 1 + len(rest)), 0])


@rule("aten.diagonal_scatter")
def diagonal_scatter(
    t: Tracer,
    out: Result,
    input: View,
    src: View,
    offset: int = 0,
    dim1: int = 0,
    dim2: int = 1,
):
    """Return a tensor with another diagonal, each element of which has its own row."""
    rank = len(input.axes)
    rows, columns = (t.positions_along(input, dim, i32) for dim in (dim1, dim2))
    here = t.map(MapKind.EQ, columns, t.map(MapKind.ADD, rows, offset))
    long = dim1 if offset >= 0 else dim2
    missing = input.shape[long] - src.shape[-1]
    src = t.padded(src, -1, 0, missing, 0)
    order = [*range(rank - 2)]
    for dim in sorted((dim1 % rank, dim2 % rank)):
        order.insert(dim, rank - 2 if dim == long % rank else rank - 1)
    apart = t.permuted(t.reshaped(src, [*src.shape, 1]), order)
    return t.map(MapKind.SELECT, here, apart, input)


@rule("aten.copy")
def copy(t: Tracer, out: Result, input: View, src: View, **_: object):
    return t.expanded(t.convert(src, out.element), out.shape)


@rule(
    "aten.empty",
    "aten.empty_like",
    "aten.empty_strided",
    "aten.empty_permuted",
    "aten.new_empty",
    "aten.new_empty_strided",
)
def empty(t: Tracer, out: Result, *_: object, **__: object):
    return t.full(out.shape, 0, out.element)


@rule("aten.full", "aten.full_like")
def full(t: Tracer, out: Result, _: object, fill_value: Number, **__: object):
    return t.full(out.shape, fill_value, out.element)


@rule("aten.scalar_tensor")
def scalar_tensor(t: Tracer, out: Result, s: Number, **_: object):
    return t.full((), s, out.element)


@rule("aten.zeros", "aten.zeros_like", "aten.new_zeros")
def zeros(t: Tracer, out: Result, *_: object, **__: object):
    return t.full(out.shape, 0.0, out.element)


@rule("aten.ones", "aten.ones_like", "aten.new_ones")
def ones(t: Tracer, out: Result, *_: object, **__: object):
    return t.full(out.shape, 1.0, out.element)


@rule("aten.arange")
def arange(t: Tracer, out: Result, *bounds: float, **_: object):
    return _sequence(t, out, *(bounds if len(bounds) > 1 else (0, *bounds)))


@rule("prims.iota")
def iota(
    t: Tracer, out: Result, length: int, *, start: int = 0, step: int = 1, **_: object
):
    return _sequence(t, out, start, length, step)


def _sequence(
    t: Tracer, out: Result, start: float, _end: float, step: float = 1
) -> View:
    (extent,) = out.shape
    positions = t.positions(extent, out.element)
    if step != 1:
        positions = t.map(MapKind.MULT, positions, step)
    return positions if start == 0 else t.map(MapKind.ADD, positions, start)
