"""
Dimensions of a traced graph: which of them are the same, and how they are split.

An axis of a torch tensor is a sequence of dimensions, outer first: none if it has one
element, several if a view merges or splits it. So views need no op. Products and
elementwise functions make dimensions the same, in all tensors that have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import TypeAlias


class Dim:
    """A dimension of `extent` elements."""

    def __init__(self, extent: int):
        self.extent = extent
        self._same: Dim | None = None
        self._parts: tuple[Dim, ...] = ()

    @property
    def leaves(self) -> Axis:
        """The dimensions that it consists of now, outer first."""
        if self._same is not None:
            return self._same.leaves
        return leaves(self._parts) if self._parts else (self,)

    def become(self, other: Dim) -> None:
        """Be the same dimension as `other` from now on; both are leaves."""
        self._same = other

    def split(self, extents: Sequence[int]) -> None:
        """Consist of dimensions with these extents, outer first; it is a leaf."""
        self._parts = tuple(map(Dim, extents))


Axis: TypeAlias = tuple[Dim, ...]
"""The dimensions of one axis of a tensor, outer first."""


def leaves(dims: Iterable[Dim]) -> Axis:
    """Return the dimensions that others consist of now, in order."""
    return tuple(leaf for dim in dims for leaf in dim.leaves)


def elements(dims: Iterable[Dim]) -> int:
    """Return the number of elements of an axis."""
    return prod(dim.extent for dim in dims)


def sizes_of(dims: Iterable[Dim]) -> list[int]:
    """Return the extents (elements) of the dimensions that others consist of now."""
    return [dim.extent for dim in leaves(dims)]


def inner_sizes(extents: Sequence[int]) -> list[int]:
    """Return how many elements are inside of one position of each dimension."""
    products = list(accumulate(reversed(extents), int.__mul__, initial=1))
    return products[-2::-1]


def refine(axis: Axis, sizes: Iterable[int]) -> bool:
    """
    Split the dimensions of an axis, so that it can be cut inside of which `sizes` are.

    Returns whether that is possible: 6 elements are split into 2 x 3 or into 3 x 2.
    """
    dims = leaves(axis)
    inner = inner_sizes(sizes_of(dims))
    cuts = sorted({1, *inner, *sizes, elements(dims)})
    if any(large % small for small, large in pairwise(cuts)):
        return False
    for dim, size in zip(dims, inner, strict=True):
        bounds = [cut for cut in cuts if size <= cut <= size * dim.extent]
        if len(bounds) > 2:
            dim.split([large // small for small, large in pairwise(bounds)][::-1])
    return True


def dims_of(axes: Sequence[Axis]) -> Axis:
    """Return the dimensions of all axes, in order."""
    return leaves(dim for axis in axes for dim in axis)


def new_axis(extent: int) -> Axis:
    """Return an axis with its own dimension; one element needs none."""
    return (Dim(extent),) if extent != 1 else ()


def like_axis(axis: Axis) -> Axis:
    """Return other dimensions with the extents of an axis."""
    return tuple(Dim(dim.extent) for dim in leaves(axis))


def cut_alike(axis: Axis, other: Axis) -> bool:
    """Split the dimensions of two axes into the same extents, if that is possible."""
    extents = map(sizes_of, (axis, other))
    sizes = [size for each in extents for size in inner_sizes(each)]
    return refine(axis, sizes) and refine(other, sizes)


def replaced(dims: Axis, pairs: Iterable[tuple[Axis, Axis]]) -> Axis:
    """Return dimensions with others in place of those of some axes."""
    new: dict[Dim, Axis] = {}
    for olds, axis in pairs:
        first, *others = leaves(olds)
        new |= {first: axis, **dict.fromkeys(others, ())}
    return tuple(dim for old in leaves(dims) for dim in new.get(old, (old,)))


class Groups:
    """The dimensions that tensors and views have: those of one stay different."""

    def __init__(self) -> None:
        self._groups: list[Axis] = []

    def add(self, dims: Iterable[Dim]) -> None:
        """Note the dimensions of one tensor or view."""
        self._groups.append(tuple(dims))

    def unify(self, one: Dim, other: Dim) -> bool:
        """Make two leaves the same dimension, unless a tensor has both."""
        if one is other:
            return True
        if any({one, other} <= set(leaves(group)) for group in self._groups):
            return False
        one.become(other)
        return True
