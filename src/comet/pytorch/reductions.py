"""The translation of sums, and of products of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, prod

from xdsl.dialects.builtin import IntegerType, f32, i1, i32, i64

from comet.dialects.compound.dims import Element
from comet.dialects.compound.elementary import ReduceKind
from comet.dialects.compound.map import MapKind
from comet.pytorch.arithmetic import UnsupportedError
from comet.pytorch.elementwise import absolute, added, negative, scaled, sign, wide
from comet.pytorch.emitter import View
from comet.pytorch.rules import Result, rule
from comet.pytorch.tracer import Tracer


@rule("aten.sum", "prims.sum")
def sum_(
    t: Tracer,
    out: Result,
    input: View,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: object = None,
):
    return _accumulated(t, out, input, dim, keepdim)


def _accumulated(
    t: Tracer,
    out: Result,
    input: View,
    dim: Sequence[int] | None,
    keep: bool,
    factor: float = 1.0,
) -> View:
    """Return a sum times a factor; narrow floats are summed in f32."""
    x = t.convert(input, wide(out.element))
    total = t.reduce(ReduceKind.ADD, x, dim or (), keep=keep)
    if factor != 1:
        total = t.map(MapKind.MULT, total, factor)
    return t.cast(total, out.element)


@rule("aten.mean")
def mean(
    t: Tracer,
    out: Result,
    input: View,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: object = None,
):
    return _accumulated(t, out, input, dim, keepdim, 1 / _count(input, dim))


LONGEST_SUM = 128
"""
The longest axis of which each position is a sum of those before, by itself. By the
prices of an H200 an axis of 128 takes as long as a product with a triangle of ones, in
which infinity would be NaN; a longer one is cut into blocks.
"""


@rule("aten.cumsum")
def cumsum(t: Tracer, out: Result, input: View, dim: int, *, dtype: object = None):
    """Return sums up to each position; narrow floats are summed in f32."""
    x = t.convert(input, wide(out.element))
    if not x.axes or x.shape[dim] == 1:
        return t.cast(x, out.element)
    dim %= len(x.axes)
    extent, outer, inner = x.shape[dim], x.shape[:dim], x.shape[dim + 1 :]
    block = next(n for n in range(int(extent**0.5), 0, -1) if extent % n == 0)
    if extent <= LONGEST_SUM:
        return t.cast(_sums_before(t, x, dim, MapKind.GE), out.element)
    if extent // block > LONGEST_SUM:
        raise UnsupportedError(
            f"sums of {extent} positions, which are no blocks of up to {LONGEST_SUM}"
        )
    blocks = t.reshaped(x, [*outer, extent // block, block, *inner])
    within = _sums_before(t, blocks, dim + 1, MapKind.GE)
    totals = t.reduce(ReduceKind.ADD, blocks, [dim + 1], keep=True)
    before = _sums_before(t, totals, dim, MapKind.GT)
    sums = t.map(MapKind.ADD, within, before)
    return t.cast(t.reshaped(sums, out.shape), out.element)


def _sums_before(t: Tracer, x: View, dim: int, kind: MapKind) -> View:
    """Return sums over the positions of which each one is `kind`: greater, or equal."""
    extent, inner = x.shape[dim], len(x.axes) - 1 - dim
    here = t.reshaped(t.positions(extent, i32), [extent, *[1] * inner])
    other = t.reshaped(t.positions(extent, i32), [extent, 1, *[1] * inner])
    summed = t.map(kind, here, other)
    apart = t.reshaped(x, [*x.shape[: dim + 1], 1, *x.shape[dim + 1 :]])
    return t.reduce(ReduceKind.ADD, t.map(MapKind.SELECT, summed, apart, 0), [dim])


MOST_FACTORS = 8
"""The most numbers of a row whose product is a chain."""


@rule("aten.prod")
def prod_(
    t: Tracer,
    out: Result,
    input: View,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: object = None,
):
    x = t.convert(input, out.element)
    if dim is None:
        x, dim = t.reshaped(x, [prod(x.shape)]), 0
    count = x.shape[dim]
    if count > MOST_FACTORS or out.element == i1:
        raise UnsupportedError(f"a product of {count} numbers")
    result = t.sliced(x, dim, 0, 1)
    for number in range(1, count):
        result = t.map(MapKind.MULT, result, t.sliced(x, dim, number, 1))
    return t.reshaped(result, out.shape)


def _count(input: View, dim: Sequence[int] | None) -> int:
    """Return how many elements are reduced to one."""
    return prod(input.shape[axis] for axis in (dim or range(len(input.shape))))


@rule("aten.amax")
def amax(
    t: Tracer, out: Result, input: View, dim: Sequence[int] = (), keepdim: bool = False
):
    return t.reduce(ReduceKind.MAX, input, dim, keep=keepdim)


@rule("aten.amin")
def amin(
    t: Tracer, out: Result, input: View, dim: Sequence[int] = (), keepdim: bool = False
):
    less = t.reduce(ReduceKind.MAX, negative(t, out, input), dim, keep=keepdim)
    return negative(t, out, less)


@rule("aten.max")
def max_(
    t: Tracer, out: Result, input: View, dim: int | None = None, keepdim: bool = False
):
    if dim is None:
        return t.reduce(ReduceKind.MAX, input, ())
    top = t.reduce(ReduceKind.MAX, input, (dim,), keep=keepdim)
    return top, _first(t, input, dim, keep=keepdim)


@rule("aten.argmax")
def argmax(
    t: Tracer, out: Result, input: View, dim: int | None = None, keepdim: bool = False
):
    if dim is not None:
        return _first(t, input, dim, keep=keepdim)
    return t.reshaped(_first(t, t.reshaped(input, [-1]), 0, keep=False), out.shape)


@rule("aten.min")
def min_(
    t: Tracer, out: Result, input: View, dim: int | None = None, keepdim: bool = False
):
    less = negative(t, out, input)
    if dim is None:
        return negative(t, out, t.reduce(ReduceKind.MAX, less, ()))
    top = t.reduce(ReduceKind.MAX, less, (dim,), keep=keepdim)
    return negative(t, out, top), _first(t, less, dim, keep=keepdim)


@rule("aten.argmin")
def argmin(
    t: Tracer, out: Result, input: View, dim: int | None = None, keepdim: bool = False
):
    return argmax(t, out, negative(t, out, input), dim, keepdim)


def _first(
    t: Tracer, input: View, dim: int, *, keep: bool, among: View | None = None
) -> View:
    """
    Return the first position of the maximum of an axis, the last one beside NaN.

    Where `among` is false there is none.
    """
    top = t.reduce(ReduceKind.MAX, input, (dim,), keep=True)
    extent = input.shape[dim]
    before = t.map(MapKind.SUB, 0, t.positions_along(input, dim, i64))
    here = t.map(MapKind.EQ, input, top)
    if among is not None:
        here = t.map(MapKind.SELECT, among, here, 0)
    found = t.map(MapKind.SELECT, here, before, 1 - extent)
    nearest = t.reduce(ReduceKind.MAX, found, (dim,), keep=keep)
    return t.map(MapKind.SUB, 0, nearest)


MOST_FOUND = 8
"""The most of the largest numbers that are found one after the other, as of experts."""


@rule("aten.topk")
def topk(
    t: Tracer,
    out: Result,
    input: View,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
):
    """Return the largest numbers of an axis, and their positions."""
    if k > MOST_FOUND or isinstance(out.element, IntegerType):
        raise UnsupportedError(f"the {k} largest of {out.element}")
    if not input.axes:
        return input, t.full((), 0, i64)
    dim %= len(input.axes)
    left = input if largest else negative(t, out, input)
    places, rest = t.positions_along(input, dim, i64), t.full((), 1, i1)
    tops, positions = list[View](), list[View]()
    for _ in range(k):
        tops.append(t.reduce(ReduceKind.MAX, left, (dim,), keep=True))
        positions.append(_first(t, left, dim, keep=True, among=rest))
        taken = t.map(MapKind.EQ, places, positions[-1])
        rest = t.map(MapKind.SELECT, taken, 0, rest)
        left = t.map(MapKind.SELECT, taken, -inf, left)
    values = t.stacked(tops, dim)
    values = values if largest else negative(t, out, values)
    return values, t.stacked(positions, dim)


@rule("aten.any")
def any_(
    t: Tracer,
    out: Result,
    input: View,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
):
    axes = (dim,) if isinstance(dim, int) else dim or ()
    ones = t.cast(t.convert(input, i1), f32)
    return t.convert(t.reduce(ReduceKind.MAX, ones, axes, keep=keepdim), i1)


@rule("aten.var_mean")
def var_mean(
    t: Tracer,
    out: Result,
    input: View,
    dim: Sequence[int] | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
):
    """Return variance and mean; those of narrow floats are computed in f32."""
    freedom = _count(input, dim) - (1 if correction is None else correction)
    if freedom <= 0:
        raise UnsupportedError("the variance of one element")
    x, share = t.convert(input, wide(out.element)), 1 / _count(input, dim)
    in_wide = replace(out, element=x.tensor.element)
    mean_ = _accumulated(t, in_wide, x, dim, True, share)
    less = t.map(MapKind.SUB, x, mean_)
    square = t.map(MapKind.MULT, less, less)
    variance = _accumulated(t, out, square, dim, keepdim, 1 / freedom)
    if keepdim:
        return variance, t.cast(mean_, out.element)
    return variance, _accumulated(t, out, x, dim, False, share)


@rule("aten.var", "prims.var")
def var(
    t: Tracer,
    out: Result,
    input: View,
    dim: Sequence[int] | None = None,
    correction: float | None = None,
    keepdim: bool = False,
):
    return var_mean(t, out, input, dim, correction=correction, keepdim=keepdim)[0]


@rule("aten._softmax")
def softmax(t: Tracer, out: Result, input: View, dim: int, half_to_float: bool):
    x = t.cast(input, wide(out.element))
    top = t.reduce(ReduceKind.MAX, x, (dim,), keep=True)
    powers = t.map(MapKind.EXP, t.map(MapKind.SUB, x, top))
    total = t.reduce(ReduceKind.ADD, powers, (dim,), keep=True)
    return t.cast(t.map(MapKind.DIV, powers, total), out.element)


@rule("aten._cdist_forward")
def cdist(
    t: Tracer, out: Result, x1: View, x2: View, p: float, compute_mode: int | None
):
    """Return distances of few rows, of which torch makes no product."""
    less = _differences(t, x1, x2, p)
    if p == 1:
        return t.reduce(ReduceKind.ADD, absolute(t, out, less), [-1])
    squares = t.map(MapKind.MULT, less, less)
    return t.map(MapKind.SQRT, t.reduce(ReduceKind.ADD, squares, [-1]))


@rule("aten._cdist_backward")
def cdist_backward(
    t: Tracer, out: Result, grad: View, x1: View, x2: View, p: float, cdist: View
):
    """Return the gradient of the first rows; where a distance is 0, it is 0."""
    less = _differences(t, x1, x2, p)
    if p == 1:
        less = sign(t, out, less)
    else:
        apart = t.map(MapKind.GT, cdist, 0.0)
        grad = t.map(MapKind.SELECT, apart, t.map(MapKind.DIV, grad, cdist), 0.0)
    each = t.map(MapKind.MULT, t.reshaped(grad, [*grad.shape, 1]), less)
    return t.reduce(ReduceKind.ADD, each, [-2])


def _differences(t: Tracer, x1: View, x2: View, p: float) -> View:
    """Return rows less other rows, (.., rows, other rows, columns)."""
    if p not in (1, 2):
        raise UnsupportedError(f"distances with the exponent {p}")
    *outer, rows, columns = x1.shape
    one = t.reshaped(x1, [*outer, rows, 1, columns])
    *outer, rows, columns = x2.shape
    return t.map(MapKind.SUB, one, t.reshaped(x2, [*outer, 1, rows, columns]))


@rule("aten.mm", "aten.bmm")
def mm(t: Tracer, out: Result, input: View, mat2: View):
    return t.product(input, mat2, _float(out))


def _float(out: Result) -> Element:
    """Return the type of a product; raise UnsupportedError for integers."""
    if isinstance(out.element, IntegerType):
        raise UnsupportedError(f"a product of {out.element}")
    return out.element


@rule("aten.addmm", "aten.baddbmm")
def addmm(
    t: Tracer,
    out: Result,
    input: View,
    mat1: View,
    mat2: View,
    *,
    beta: float = 1,
    alpha: float = 1,
):
    product = scaled(t, out, t.product(mat1, mat2, _float(out)), alpha)
    return added(t, out, product, input, alpha=beta)
