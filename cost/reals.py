"""Numbers that may stand for one mapping or, as arrays, for many."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

Real: TypeAlias = "float | NDArray[np.float64]"
"""A number, or one number per mapping."""

Precision: TypeAlias = Callable[["Real"], "Real"]
"""Rounds to the precision in which a formula is evaluated."""

double = cast(Precision, np.float64)
"""Double precision."""

single = cast(Precision, np.float32)
"""Single precision, in which the COMET tool computes times."""


def product(values: Iterable[Real]) -> Real:
    """The product of numbers or arrays, 1 of none."""
    result: Real = 1.0
    for value in values:
        result = result * value
    return result


def total(values: Iterable[Real]) -> Real:
    """The sum of numbers or arrays, 0 of none."""
    result: Real = 0.0
    for value in values:
        result = result + value
    return result


def longest(values: Iterable[Real]) -> Real:
    """The largest of numbers or arrays, at least 0."""
    result: Real = 0.0
    for value in values:
        if isinstance(value, float) and isinstance(result, float):
            result = max(result, value)
        else:
            result = np.maximum(result, value)
    return result
