"""Neutral elements of reductions, finite so that arithmetic on them is exact."""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat, BFloat16Type, Float16Type, Float32Type

from comet.dialects.compound.elementary import ReduceKind


def lowest_finite(element_type: AnyFloat) -> float:
    """
    Return the lowest finite number of a floating-point type.

    Types other than f16, bf16 and f32 are assumed to hold every number of f64.
    """
    match element_type:
        case Float16Type():
            return -65504.0
        case BFloat16Type():
            return -(2.0 - 2.0**-7) * 2.0**127
        case Float32Type():
            return -(2.0 - 2.0**-23) * 2.0**127
        case _:
            return -(2.0 - 2.0**-52) * 2.0**1023


def neutral_element(kind: ReduceKind, element_type: AnyFloat) -> float:
    """Return the value that changes no finite partial result of a reduction."""
    return 0.0 if kind == ReduceKind.ADD else lowest_finite(element_type)
