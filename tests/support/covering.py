"""A part of many cases in which all values still meet: what interacts is tested."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, TypeVar

import pytest

Case = TypeVar("Case", bound=tuple[Any, ...])
T = TypeVar("T")
U = TypeVar("U")

EVERY_CASE = bool(os.environ.get("EVERY_CASE"))
"""Whether no case is left out: `make exhaustive`."""

exhaustive = pytest.mark.skipif(not EVERY_CASE, reason="for make exhaustive")
"""Marks what takes long, and what faster tests show in other cases or in part."""

GOLDEN = 0.6180339887
"""Multiples of it are spread evenly between whole numbers."""


def one_of(count: int) -> pytest.MarkDecorator:
    """Mark cases that show the same: one of `count`, and all for make exhaustive."""
    return pytest.mark.one_of(count)


def spread(index: int, count: int) -> bool:
    """Whether a case is taken, of all that are numbered from 0 one of `count`."""
    return EVERY_CASE or index * GOLDEN % 1 < 1 / count


def covering(
    cases: Iterable[Case], strength: int = 2, paired: int | None = None
) -> list[Case]:
    """
    Return few of `cases` in which any `strength` values occur together that do in all.

    If `paired` is given, that holds for the first `paired` values of a case; each other
    value occurs at least once, and which one a case has is mixed.
    Values are compared by their position. The same cases are returned in every run.
    """
    every = list(cases)
    if EVERY_CASE:
        return every
    numbered = [_numbers(column) for column in zip(*every, strict=True)]
    rows = [[*enumerate(row)] for row in zip(*numbered, strict=True)]
    alone = 0 if paired is None else len(numbered) - paired
    groups = [
        [*combinations(row[:paired], strength), *((part,) for part in row[-alone:])]
        if alone
        else [*combinations(row, strength)]
        for row in rows
    ]
    missing = {group for row in groups for group in row}
    order = sorted(range(len(rows)), key=lambda index: alone and index * GOLDEN % 1)
    taken: set[int] = set()
    for least in range(max(map(len, groups), default=0), 0, -1):
        for index in order:
            if len(missing.intersection(groups[index])) >= least:
                missing.difference_update(groups[index])
                taken.add(index)
    return [every[index] for index in sorted(taken)]


def some(cases: Iterable[T], of: int) -> list[T]:
    """Return one of `of` cases; `make exhaustive` takes all of them."""
    return list(cases)[:: 1 if EVERY_CASE else of]


def fraction(first: Iterable[T], second: Sequence[U], of: int = 2) -> list[tuple[T, U]]:
    """Return one of `of` pairs, so that a value meets that part of the other side."""
    return [
        (one, other)
        for row, one in enumerate(first)
        for column, other in enumerate(second)
        if EVERY_CASE or (row + column) % of == 0
    ]


def _numbers(column: Sequence[object]) -> list[int]:
    """Return a number for each value, the same for equal ones."""
    known: list[object] = []
    for value in column:
        if value not in known:
            known.append(value)
    return [known.index(value) for value in column]
