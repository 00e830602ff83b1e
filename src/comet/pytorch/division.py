"""The translation of divisions, and of what they leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from xdsl.dialects.builtin import IntegerType, f32

from comet.dialects.compound.map import MapKind
from comet.pytorch.arithmetic import UnsupportedError
from comet.pytorch.elementwise import floor, mapped, promoted, trunc
from comet.pytorch.emitter import View
from comet.pytorch.rules import Operand, Result, rule
from comet.pytorch.tracer import Tracer

Rounding = Callable[[Tracer, Result, View], View]


@rule("aten.div")
def div(
    t: Tracer,
    out: Result,
    input: Operand,
    other: Operand,
    *,
    rounding_mode: str | None = None,
):
    if rounding_mode is None:
        return mapped(t, out, MapKind.DIV, input, other)
    return _quotient(t, out, input, other, floor if rounding_mode == "floor" else trunc)


@rule("aten.remainder")
def remainder(t: Tracer, out: Result, input: Operand, other: Operand):
    """Return what is left of whole multiples, which has the sign of `other`."""
    return _left(t, out, input, other, floor)


@rule("aten.fmod")
def fmod(t: Tracer, out: Result, input: Operand, other: Operand):
    """Return what is left of whole multiples, which has the sign of `input`."""
    return _left(t, out, input, other, trunc)


def _left(
    t: Tracer, out: Result, input: Operand, other: Operand, round_: Rounding
) -> View:
    multiple = mapped(
        t, out, MapKind.MULT, _quotient(t, out, input, other, round_), other
    )
    return mapped(t, out, MapKind.SUB, input, multiple)


def _quotient(
    t: Tracer, out: Result, input: Operand, other: Operand, round_: Rounding
) -> View:
    """Return a quotient that is rounded down or towards zero."""
    if not isinstance(out.element, IntegerType):
        return round_(t, out, mapped(t, out, MapKind.DIV, input, other))
    if not isinstance(input, View) or isinstance(other, View):
        raise UnsupportedError(f"a division by what is no number, of {out.element}")
    if not 0 < other <= _LARGEST_DIVISOR:
        raise UnsupportedError(f"a division of {out.element} by {other}")
    (dividend,) = cast("list[View]", promoted(t, out, input))
    return _of_integers(t, dividend, int(other), down=round_ is floor)


_BITS = 22
"""A quotient in f32 is right but for 1 part in 2 to this power."""
_LARGEST_DIVISOR = 2 ** (_BITS - 1)


def _of_integers(t: Tracer, dividend: View, divisor: int, *, down: bool) -> View:
    """
    Return a quotient of integers that is rounded down, or else towards zero.

    It is a sum of quotients in f32: of the dividend, and of what is left of it by those
    before. At last that is one divisor, or less.
    """
    element = dividend.tensor.element
    quotient, left = t.full((), 0, element), dividend
    for _ in range(-(-element.bitwidth // _BITS)):
        part = t.cast(t.map(MapKind.DIV, t.cast(left, f32), float(divisor)), element)
        left = _less(t, left, part, divisor)
        quotient = t.map(MapKind.ADD, quotient, part)
    one, zero = t.full((), 1, element), t.full((), 0, element)
    more = t.map(MapKind.SELECT, t.map(MapKind.GE, left, divisor), one, zero)
    more = t.map(MapKind.SELECT, t.map(MapKind.GT, 0, left), -1, more)
    quotient = t.map(MapKind.ADD, quotient, more)
    if down:
        return quotient
    left = _less(t, dividend, quotient, divisor)
    more = t.map(MapKind.SELECT, t.map(MapKind.GT, left, 0), one, zero)
    more = t.map(MapKind.SELECT, t.map(MapKind.GT, 0, dividend), more, 0)
    return t.map(MapKind.ADD, quotient, more)


def _less(t: Tracer, dividend: View, quotient: View, divisor: int) -> View:
    """Return what is left of a dividend without so many divisors."""
    return t.map(MapKind.SUB, dividend, t.map(MapKind.MULT, quotient, divisor))
