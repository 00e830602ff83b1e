"""
The points of a program at which register pressure may be highest.

At most points a program holds nothing that it does not also hold at another one. Such
points are no peaks, whatever the sizes of tiles, and need no evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import chain
from typing import TypeVar

from comet.cost.gpu.terms import Point, Term

T = TypeVar("T")


def peak_points(points: Iterable[Point]) -> tuple[Point, ...]:
    """Return the points without those at which another one holds the same, or more."""
    by_epilogue: dict[Hashable, list[Point]] = {}
    for point in points:
        by_epilogue.setdefault(point.epilogue, []).append(point)
    return tuple(
        chain.from_iterable(
            _largest(each, _held_at_point) for each in by_epilogue.values()
        )
    )


def peak_groups(groups: Iterable[tuple[Term, ...]]) -> tuple[tuple[Term, ...], ...]:
    """Return the groups of terms without those that another one contains."""
    return tuple(_largest(groups, _numbered))


def _largest(
    items: Iterable[T], parts: Callable[[T], Iterable[Hashable]]
) -> Iterator[T]:
    """Yield the items whose parts no other item has; of equal ones, the first."""
    bits: dict[Hashable, int] = {}
    masks: dict[int, T] = {}
    for item in items:
        mask = sum(1 << bits.setdefault(part, len(bits)) for part in parts(item))
        masks.setdefault(mask, item)
    for mask, item in masks.items():
        if not any(mask & other == mask != other for other in masks):
            yield item


def _held_at_point(point: Point) -> Iterator[Hashable]:
    """
    Yield the terms that are alive at a point, with the part that an epilogue needs.
    """
    yield from (("tile", *each) for each in _numbered(point.tiles))
    yield from (("broadcast", *each) for each in _numbered(point.broadcast))
    yield from (("accumulator", *each) for each in _numbered(point.accumulator))
    if point.operands is not None:
        yield point.operands, point.before


def _numbered(terms: Iterable[Term]) -> Iterator[tuple[int, Term]]:
    """Yield terms, each with how many equal ones come before it."""
    seen: dict[Term, int] = {}
    for term in terms:
        seen[term] = number = seen.get(term, -1) + 1
        yield number, term
