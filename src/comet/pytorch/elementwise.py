"""The translation of elementwise functions and conditions."""

from __future__ import annotations

from dataclasses import replace
from math import inf, log
from typing import cast

from xdsl.dialects.builtin import IntegerType, f32, i1, i32

from comet.dialects.compound.dims import Element
from comet.dialects.compound.map import MapKind
from comet.pytorch.arithmetic import UnsupportedError
from comet.pytorch.emitter import View
from comet.pytorch.rules import Operand, Result, rule
from comet.pytorch.tracer import Tracer


def promoted(t: Tracer, out: Result, *operands: Operand) -> list[Operand]:
    """Return operands in the element type of the result."""
    return [t.convert(x, out.element) if isinstance(x, View) else x for x in operands]


def _elementwise(name: str, kind: MapKind) -> None:
    @rule(name)
    def apply(t: Tracer, out: Result, *operands: Operand) -> View:
        return mapped(t, out, kind, *operands)


def mapped(t: Tracer, out: Result, kind: MapKind, *operands: Operand) -> View:
    """Return a function of operands that are converted to the result's type first."""
    return t.map(kind, *promoted(t, out, *operands))


def wide(element: Element) -> Element:
    """Return the type in which what is rounded to `element` is computed."""
    return element if element.bitwidth >= 32 else f32


for _name, _kind in {
    "prims.div": MapKind.DIV,
    "aten.maximum": MapKind.MAX,
    "aten.minimum": MapKind.MIN,
    "aten.exp": MapKind.EXP,
    "aten.exp2": MapKind.EXP2,
    "aten.log": MapKind.LOG,
    "aten.sqrt": MapKind.SQRT,
    "aten.rsqrt": MapKind.RSQRT,
    "aten.tanh": MapKind.TANH,
    "aten.erf": MapKind.ERF,
    "aten.sin": MapKind.SIN,
    "aten.cos": MapKind.COS,
}.items():
    _elementwise(_name, _kind)


@rule("aten.mul")
def product(t: Tracer, out: Result, input: Operand, other: Operand):
    if out.element == i1:
        return t.map(MapKind.SELECT, *_conditions(t, input, other), 0)
    return mapped(t, out, MapKind.MULT, input, other)


def _conditions(t: Tracer, *operands: Operand) -> list[View]:
    """Return operands as conditions, numbers among them."""
    return [
        t.convert(x, i1) if isinstance(x, View) else t.full((), x, i1) for x in operands
    ]


@rule("aten.add")
def added(t: Tracer, out: Result, input: Operand, other: Operand, *, alpha: float = 1):
    if out.element == i1:
        one, two = _conditions(t, input, other)
        return t.map(MapKind.SELECT, one, 1, two)
    if isinstance(input, View) and isinstance(out.element, IntegerType) and other == 0:
        return t.convert(input, out.element)  # Positions without an offset.
    return mapped(t, out, MapKind.ADD, input, scaled(t, out, other, alpha))


@rule("aten.sub")
def sub(t: Tracer, out: Result, input: Operand, other: Operand, *, alpha: float = 1):
    return mapped(t, out, MapKind.SUB, input, scaled(t, out, other, alpha))


@rule("aten.rsub")
def rsub(t: Tracer, out: Result, input: Operand, other: Operand, alpha: float = 1):
    return mapped(t, out, MapKind.SUB, other, scaled(t, out, input, alpha))


def scaled(t: Tracer, out: Result, operand: Operand, factor: float) -> Operand:
    """Return a number of times an operand."""
    if factor == 1:
        return operand
    if isinstance(operand, View):
        return mapped(t, out, MapKind.MULT, operand, factor)
    return operand * factor


@rule("aten.reciprocal")
def reciprocal(t: Tracer, out: Result, input: View):
    return mapped(t, out, MapKind.DIV, 1.0, input)


@rule("prims.fma")
def fma(t: Tracer, out: Result, a: Operand, b: Operand, c: Operand):
    """Return a b + c, which torch rounds once."""
    return mapped(t, out, MapKind.ADD, mapped(t, out, MapKind.MULT, a, b), c)


@rule("aten.sigmoid")
def sigmoid(t: Tracer, out: Result, input: View):
    x = t.convert(input, wide(out.element))
    less = t.map(MapKind.EXP, t.map(MapKind.NEG, x))
    return t.cast(t.map(MapKind.DIV, 1.0, t.map(MapKind.ADD, less, 1.0)), out.element)


@rule("aten.relu")
def relu(t: Tracer, out: Result, input: View):
    return t.map(MapKind.MAX, input, 0.0)


@rule("aten.neg")
def negative(t: Tracer, out: Result, input: View):
    if isinstance(input.tensor.element, IntegerType):
        return t.map(MapKind.SUB, 0, input)
    return t.map(MapKind.NEG, input)


@rule("aten.abs")
def absolute(t: Tracer, out: Result, input: View):
    return t.map(MapKind.MAX, input, negative(t, out, input))


@rule("aten.sign")
def sign(t: Tracer, out: Result, input: View):
    """Return 1, -1 or 0, which is also that of NaN."""
    below = t.map(MapKind.GT, 0.0, input)
    rest = t.map(MapKind.SELECT, below, t.full((), -1, out.element), 0)
    return t.map(MapKind.SELECT, t.map(MapKind.GT, input, 0.0), 1, rest)


@rule("aten.clamp")
def clamp(
    t: Tracer,
    out: Result,
    input: View,
    min: Operand | None = None,
    max: Operand | None = None,
):
    if min is not None:
        input = mapped(t, out, MapKind.MAX, input, min)
    return input if max is None else mapped(t, out, MapKind.MIN, input, max)


@rule("aten.pow")
def power(t: Tracer, out: Result, input: Operand, exponent: Operand):
    if isinstance(exponent, View):
        return _exponential(t, out, input, exponent)
    assert isinstance(input, View)
    base = t.convert(input, wide(out.element))
    roots = {0.5: MapKind.SQRT, -0.5: MapKind.RSQRT}
    if exponent in roots:
        return t.cast(t.map(roots[exponent], base), out.element)
    if not float(exponent).is_integer() and not isinstance(out.element, IntegerType):
        logs = t.map(MapKind.LOG, base)
        powers = t.map(MapKind.EXP, t.map(MapKind.MULT, logs, exponent))
        return t.cast(powers, out.element)
    if exponent not in range(-_LARGEST_POWER, _LARGEST_POWER + 1) or exponent == 0:
        raise UnsupportedError(f"a power with the exponent {exponent}")
    result = _by_squares(t, base, abs(int(exponent)))
    result = result if exponent > 0 else t.map(MapKind.DIV, 1.0, result)
    return t.cast(result, out.element)


def _by_squares(t: Tracer, base: View, exponent: int) -> View:
    """Return a power with a positive whole number as exponent."""
    if exponent == 1:
        return base
    half = _by_squares(t, base, exponent // 2)
    square = t.map(MapKind.MULT, half, half)
    return t.map(MapKind.MULT, square, base) if exponent % 2 else square


def _exponential(t: Tracer, out: Result, base: Operand, exponent: View) -> View:
    """Return powers of a positive number, as in tables of rotary embeddings."""
    if isinstance(out.element, IntegerType):
        raise UnsupportedError(f"powers of {out.element} with a tensor as exponent")
    wide = t.cast(exponent, f32)
    if isinstance(base, View):
        power = _powers(t, replace(out, element=f32), t.cast(base, f32), wide)
        return t.cast(power, out.element)
    if not 0 < base < inf:
        raise UnsupportedError(f"powers of {base} with a tensor as exponent")
    return t.cast(t.map(MapKind.EXP, t.map(MapKind.MULT, wide, log(base))), out.element)


def _powers(t: Tracer, out: Result, base: View, exponent: View) -> View:
    """
    Return powers with tensors as base and exponent, in f32.

    They are those of the base's magnitude. Where the base is negative, they have the
    sign that a whole exponent gives, and for others are NaN, as the logarithm is.
    """
    whole = t.map(MapKind.EQ, floor(t, out, exponent), exponent)
    logs = t.map(
        MapKind.LOG, t.map(MapKind.SELECT, whole, absolute(t, out, base), base)
    )
    power = t.map(MapKind.EXP, t.map(MapKind.MULT, exponent, logs))
    half = t.map(MapKind.MULT, exponent, 0.5)
    odd = t.map(MapKind.GT, half, floor(t, out, half))
    odd = t.map(MapKind.SELECT, t.map(MapKind.GT, 0.0, base), odd, 0)
    odd = t.map(MapKind.SELECT, whole, odd, 0)
    power = t.map(MapKind.SELECT, odd, t.map(MapKind.NEG, power), power)
    return t.map(MapKind.SELECT, t.map(MapKind.EQ, exponent, 0.0), 1.0, power)


_LARGEST_POWER = 64
"""
The largest exponent for which a power is a chain of products, each of which may add its
rounding error.
"""


_WHOLE = 2.0**23
"""From here on all numbers of f32 are whole."""


@rule("aten.tan")
def tan(t: Tracer, out: Result, input: View):
    x = t.convert(input, wide(out.element))
    found = t.map(MapKind.DIV, t.map(MapKind.SIN, x), t.map(MapKind.COS, x))
    return t.cast(found, out.element)


@rule("aten.trunc")
def trunc(t: Tracer, out: Result, input: View):
    """Return the whole number between 0 and each number; that of NaN is NaN."""
    if isinstance(out.element, IntegerType):
        return input
    wide = t.cast(input, f32)
    whole = t.cast(t.cast(wide, i32), f32)
    small = t.map(MapKind.GT, _WHOLE, absolute(t, out, wide))
    return t.cast(t.map(MapKind.SELECT, small, whole, wide), out.element)


@rule("aten.floor")
def floor(t: Tracer, out: Result, input: View):
    whole = trunc(t, out, input)
    if isinstance(out.element, IntegerType):
        return whole
    above = t.map(MapKind.GT, whole, input)
    return t.map(MapKind.SELECT, above, t.map(MapKind.SUB, whole, 1.0), whole)


@rule("aten.ceil")
def ceil(t: Tracer, out: Result, input: View):
    return negative(t, out, floor(t, out, negative(t, out, input)))


@rule("aten.round")
def rounded(t: Tracer, out: Result, input: View):
    """Return the nearest whole number, of two the even one."""
    if isinstance(out.element, IntegerType):
        return input
    below = floor(t, out, input)
    rest, half = t.map(MapKind.SUB, input, below), t.map(MapKind.MULT, below, 0.5)
    is_odd = t.map(MapKind.GT, half, floor(t, out, half))
    of_odd, of_even = (t.map(kind, rest, 0.5) for kind in (MapKind.GE, MapKind.GT))
    above = t.map(MapKind.SELECT, is_odd, of_odd, of_even)
    return t.map(MapKind.SELECT, above, t.map(MapKind.ADD, below, 1.0), below)


@rule("aten.log1p")
def log1p(t: Tracer, out: Result, input: View):
    """
    Return log(1 + x), also for small x.

    It is log(u) x / (u - 1) with u = 1 + x as it is rounded (Kahan's formula).
    """
    (x,) = cast("list[View]", promoted(t, out, input))
    sum_ = t.map(MapKind.ADD, x, 1.0)
    left, logs = t.map(MapKind.SUB, sum_, 1.0), t.map(MapKind.LOG, sum_)
    near = t.map(MapKind.DIV, t.map(MapKind.MULT, logs, x), left)
    near = t.map(MapKind.SELECT, t.map(MapKind.EQ, left, 0.0), x, near)
    # Where the sum is exact, log(u) is the result: of infinity, the division is NaN.
    return t.map(MapKind.SELECT, t.map(MapKind.EQ, left, x), logs, near)


@rule("aten.expm1")
def expm1(t: Tracer, out: Result, input: View):
    """
    Return e^x - 1, also for small x.

    It is (u - 1) x / log(u) with u = e^x as it is rounded (Kahan's formula).
    """
    (x,) = cast("list[View]", promoted(t, out, input))
    power = t.map(MapKind.EXP, x)
    less, logs = t.map(MapKind.SUB, power, 1.0), t.map(MapKind.LOG, power)
    near = t.map(MapKind.DIV, t.map(MapKind.MULT, less, x), logs)
    near = t.map(MapKind.SELECT, t.map(MapKind.EQ, power, 1.0), x, near)
    # Where u - 1 rounds to u (large x) or to -1 (very negative x), that is the result.
    near = t.map(MapKind.SELECT, t.map(MapKind.EQ, less, power), less, near)
    return t.map(MapKind.SELECT, t.map(MapKind.EQ, less, -1.0), less, near)


def _comparison(name: str, kind: MapKind, *, swap: bool = False, negate: bool = False):
    @rule(name)
    def compare(t: Tracer, out: Result, input: Operand, other: Operand) -> View:
        one, two = alike(t, input, other)
        found = t.map(kind, two, one) if swap else t.map(kind, one, two)
        return t.negated(found) if negate else found


_comparison("aten.ge", MapKind.GE)
_comparison("aten.gt", MapKind.GT)
_comparison("aten.eq", MapKind.EQ)
_comparison("aten.le", MapKind.GE, swap=True)
_comparison("aten.lt", MapKind.GT, swap=True)
_comparison("aten.ne", MapKind.EQ, negate=True)


def alike(t: Tracer, *operands: Operand) -> list[Operand]:
    """
    Return operands of a comparison in one type: the widest float, or the widest.

    Of a number it is one that has it.
    """
    elements = [x.tensor.element for x in operands if isinstance(x, View)]
    numbers = [x for x in operands if not isinstance(x, View)]
    floats = [e for e in elements if not isinstance(e, IntegerType)]
    if not floats and any(isinstance(x, float) for x in numbers):
        floats = [f32]
    if any(x not in (0, 1) for x in numbers):
        elements.append(i32)  # No condition is such a number.
    widest = max(floats or elements, key=lambda element: element.bitwidth)
    return [t.convert(x, widest) if isinstance(x, View) else x for x in operands]


@rule("aten.logical_not", "aten.bitwise_not")
def logical_not(t: Tracer, out: Result, input: View):
    return t.negated(t.convert(input, _boolean(out)))


@rule("aten.logical_and", "aten.bitwise_and")
def logical_and(t: Tracer, out: Result, input: View, other: View):
    condition = t.convert(input, _boolean(out))
    return t.map(MapKind.SELECT, condition, t.convert(other, i1), 0)


@rule("aten.logical_or", "aten.bitwise_or")
def logical_or(t: Tracer, out: Result, input: View, other: View):
    condition = t.convert(input, _boolean(out))
    return t.map(MapKind.SELECT, condition, 1, t.convert(other, i1))


def _boolean(out: Result) -> Element:
    """Return the type of conditions; raise UnsupportedError for bits of integers."""
    if out.element != i1:
        raise UnsupportedError(f"bits of {out.element}")
    return i1


@rule("aten.logical_xor", "aten.bitwise_xor")
def logical_xor(t: Tracer, out: Result, input: View, other: View):
    one = t.convert(input, _boolean(out))
    return t.negated(t.map(MapKind.EQ, one, t.convert(other, i1)))


@rule("aten.isnan")
def isnan(t: Tracer, out: Result, input: View):
    return t.negated(t.map(MapKind.EQ, input, input))


@rule("aten.isinf")
def isinf(t: Tracer, out: Result, input: View):
    return t.map(MapKind.EQ, absolute(t, out, input), inf)


@rule("aten.where")
def where(t: Tracer, out: Result, condition: View, input: Operand, other: Operand):
    one, two = promoted(t, out, input, other)
    if not isinstance(one, View) and not isinstance(two, View):
        one = t.full((), one, out.element)
    return t.map(MapKind.SELECT, t.convert(condition, i1), one, two)


@rule("aten.masked_fill")
def masked_fill(t: Tracer, out: Result, input: View, mask: View, value: Operand):
    return where(t, out, mask, value, input)
