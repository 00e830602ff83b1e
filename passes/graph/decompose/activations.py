"""
Activations, written with functions that all targets have: exp, add, mult and div.

Both are x / (1 + exp(..)): if the exponential overflows, the quotient is 0, which is
correct.
"""

from __future__ import annotations

from math import pi, sqrt

from xdsl.ir import SSAValue

from comet.dialects.compound import MapKind
from comet.passes.graph.decompose.site import Site

CUBIC = 0.044715
"""The factor of x^3 in the form of GELU with tanh."""


def silu(site: Site, x: SSAValue) -> SSAValue:
    """Emit x / (1 + exp(-x))."""
    minus = site.emit.fill(-1.0, site.accumulator, name="minus")
    exponent = site.emit.map(MapKind.MULT, x, minus, name="negated")
    return _over_one_plus_exp(site, x, exponent)


def gelu(site: Site, x: SSAValue) -> SSAValue:
    """
    Emit x / (1 + exp(-2 u)), with u = sqrt(2 / pi) (x + 0.044715 x^3).

    This equals the form with tanh, x / 2 (1 + tanh(u)).
    """
    emit, slope = site.emit, -2 * sqrt(2 / pi)
    linear = emit.fill(slope, site.accumulator, name="linear")
    cubic = emit.fill(slope * CUBIC, site.accumulator, name="cubic")
    square = emit.map(MapKind.MULT, x, x, name="square")
    bend = emit.map(MapKind.MULT, square, cubic, name="bend")
    factor = emit.map(MapKind.ADD, bend, linear, name="factor")
    exponent = emit.map(MapKind.MULT, factor, x, name="exponent")
    return _over_one_plus_exp(site, x, exponent)


def _over_one_plus_exp(site: Site, x: SSAValue, exponent: SSAValue) -> SSAValue:
    emit = site.emit
    one = emit.fill(1.0, site.accumulator, name="one")
    grown = emit.map(MapKind.EXP, exponent, name="grown")
    divisor = emit.map(MapKind.ADD, grown, one, name="divisor")
    return emit.map(MapKind.DIV, x, divisor, name="active")
