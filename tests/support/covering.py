"""A part of many cases in which all values still meet: what interacts is tested."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, TypeVar

Case = TypeVar("Case", bound=tuple[Any, ...])
T = TypeVar("T")
U = TypeVar("U")

EVERY_CASE = bool(os.environ.get("EVERY_CASE"))
"""Whether no case is left out: `make exhaustive`."""


def covering(cases: Iterable[Case], strength: int = 2) -> list[Case]:
    """
    Return few of `cases` in which any `strength` values occur together that do in all.

    Values are compared by their position. The same cases are returned in every run.
    """
    every = list(cases)
    if EVERY_CASE:
        return every
    numbered = [_numbers(column) for column in zip(*every, strict=True)]
    groups = [
        [*combinations(enumerate(row), strength)] for row in zip(*numbered, strict=True)
    ]
    missing = {group for row in groups for group in row}
    taken: set[int] = set()
    for least in range(max(map(len, groups), default=0), 0, -1):
        for index, row in enumerate(groups):
            if len(missing.intersection(row)) >= least:
                missing.difference_update(row)
                taken.add(index)
    return [every[index] for index in sorted(taken)]


def half(first: Iterable[T], second: Sequence[U]) -> list[tuple[T, U]]:
    """Return every second pair, so that each value meets half of the other side."""
    return [
        (one, other)
        for row, one in enumerate(first)
        for column, other in enumerate(second)
        if EVERY_CASE or (row + column) % 2 == 0
    ]


def _numbers(column: Sequence[object]) -> list[int]:
    """Return a number for each value, the same for equal ones."""
    known: list[object] = []
    for value in column:
        if value not in known:
            known.append(value)
    return [known.index(value) for value in column]
