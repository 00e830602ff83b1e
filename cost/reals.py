"""Arithmetic on numbers of one mapping, or on arrays with one element per mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

Real: TypeAlias = "float | NDArray[np.float64]"
"""A number, or one number per mapping."""

Truth: TypeAlias = "bool | np.bool_ | NDArray[np.bool_]"
"""A truth value, or one per mapping."""

KeyT = TypeVar("KeyT")

Precision: TypeAlias = Callable[["Real"], "Real"]
"""Rounds to the precision in which a formula is evaluated."""


def double(value: Real) -> Real:
    """Double precision, which arrays have."""
    return value if isinstance(value, np.ndarray) else np.float64(value)


single = cast(Precision, np.float32)
"""Single precision, in which the COMET tool computes times."""


def product(values: Iterable[Real]) -> Real:
    """The product of numbers or arrays, 1 of none."""
    rest = iter(values)
    result = next(rest, 1.0)
    for value in rest:
        result = result * value
    return result


def total(values: Iterable[Real]) -> Real:
    """The sum of numbers or arrays, 0 of none."""
    rest = iter(values)
    result = next(rest, 0.0)
    for value in rest:
        result = result + value
    return result


def longest(values: Iterable[Real]) -> Real:
    """The largest of numbers or arrays, at least 0."""
    result: Real = 0.0
    for value in {id(value): value for value in values}.values():
        if isinstance(value, float) and isinstance(result, float):
            result = max(result, value)
        else:
            result = np.maximum(result, value)
    return result


def any_of(truths: Iterable[Truth]) -> Truth:
    """Whether one of some truth values holds; False of none."""
    result: Truth = False
    for truth in truths:
        result = np.logical_or(result, truth)
    return result


def times(a: Real, b: Real) -> Real:
    """The product; nothing is computed for a factor of 1."""
    if isinstance(a, float) and a == 1.0:
        return b
    return a if isinstance(b, float) and b == 1.0 else a * b


def ratio(a: Real, b: Real) -> Real:
    """The quotient; nothing is computed for a divisor of 1."""
    return a if isinstance(b, float) and b == 1.0 else a / b


def add_to(table: dict[KeyT, Real], key: KeyT, value: Real) -> None:
    """Add `value` to the sum at `key`; the first value starts it."""
    table[key] = table[key] + value if key in table else value


def larger(a: Real, b: Real) -> Real:
    """The larger of two numbers, or of each pair of arrays."""
    if a is b:
        return a
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a if a >= b else b
    return np.maximum(a, b)


def smaller(a: Real, b: Real) -> Real:
    """The smaller of two numbers, or of each pair of arrays."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a if a <= b else b
    return np.minimum(a, b)


def ascending(values: Iterable[Real]) -> list[Real]:
    """Return numbers in order; of arrays, those of each mapping."""
    ordered: list[Real] = []
    for value in values:
        rest = value
        for position, lower in enumerate(ordered):
            ordered[position], rest = smaller(lower, rest), larger(lower, rest)
        ordered.append(rest)
    return ordered


def choose(condition: Truth, then: Real, otherwise: Real) -> Real:
    """`then` where the condition holds, else `otherwise`."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, then, otherwise)
    return then if condition else otherwise


class Products:
    """Products that are computed once for equal numbers and identical arrays."""

    def __init__(self) -> None:
        self._known: dict[tuple[float, float], tuple[Real, Real, Real]] = {}

    def of(self, values: Iterable[Real]) -> Real:
        """The product of numbers or arrays, 1 of none."""
        result: Real = 1.0
        for value in values:
            if isinstance(value, float) and value == 1.0:
                continue
            if isinstance(result, float) and result == 1.0:
                result = value
            else:
                result = self.times(result, value)
        return result

    def times(self, a: Real, b: Real) -> Real:
        """The product of two numbers or arrays."""
        if isinstance(a, float) and (isinstance(b, float) or a == 1.0):
            return times(a, b)
        if isinstance(b, float) and b == 1.0:
            return a
        # As `identity` of both, which is not called: this is the busiest line of all.
        key = a if isinstance(a, float) else id(a), b if isinstance(b, float) else id(b)
        if (known := self._known.get(key)) is None:
            known = a, b, a * b  # operands stay alive: no id() is reused
            self._known[key] = known
        return known[2]


class Terms:
    """A sum of products; the weights of one array are added before they multiply it."""

    def __init__(self) -> None:
        self._terms: dict[float, tuple[Real, Real]] = {}

    def add(self, value: Real, weight: Real = 1.0) -> None:
        """Add `value` times `weight`."""
        key = identity(value)
        term = self._terms.get(key)
        sum_ = weight if term is None else term[1] + weight
        self._terms[key] = value, sum_

    @property
    def value(self) -> Real:
        """The sum."""
        return total(times(value, weight) for value, weight in self._terms.values())


def identity(value: Real) -> float:
    """The identity of a number, or of an array among all arrays alive."""
    return value if isinstance(value, float) else id(value)
