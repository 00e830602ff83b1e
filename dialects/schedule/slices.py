"""
The slices of a dimension: the only definition of how the loops of a node cut it.

Each loop cuts its dimension into slices; the next loop of the same dimension cuts these
slices again, and the last one gives the tiles of the body. All mesh axes of a dimension
make one cut. Slice i begins at i * tile and has `tile` elements; the last slice may be
shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from comet.dialects.compound.dims import ceil_div
from comet.dialects.schedule.attributes import LoopAttr


@dataclass(frozen=True)
class Cut:
    """One cut of a dimension: by one loop, or by several mesh axes at once."""

    dim: str
    loops: tuple[LoopAttr, ...]
    extent: int
    """The elements of the dimension before the cut."""
    tile: int
    """The elements of a full slice."""

    @property
    def factor(self) -> int:
        """The number of slices."""
        return prod(loop.factor for loop in self.loops)


def cuts_along(
    loops: Sequence[LoopAttr], dim: str, extent: int, on_mesh: bool = False
) -> tuple[Cut, ...]:
    """
    Return the even cuts of `extent` elements of `dim` by the loops of a node.

    Outermost cut first; a dimension without loops has one cut into one slice.
    """
    dim_loops = [loop for loop in loops if loop.dim == dim]
    groups = (
        [tuple(dim_loops)]
        if on_mesh or not dim_loops
        else [(loop,) for loop in dim_loops]
    )
    cuts: list[Cut] = []
    for group in groups:
        tile = ceil_div(extent, prod(loop.factor for loop in group))
        cuts.append(Cut(dim, group, extent, tile))
        extent = tile
    return tuple(cuts)


def is_tile(cut: Cut, tile: int, on_mesh: bool = False) -> bool:
    """
    Return whether the last cut of a dimension may give slices of `tile` elements.

    On a mesh slices are even; in a loop or a grid they may have any size that gives the
    same number of slices.
    """
    if on_mesh:
        return tile == cut.tile
    return 1 <= tile <= cut.extent and ceil_div(cut.extent, tile) == cut.factor


def with_tile(cuts: Sequence[Cut], tile: int) -> tuple[Cut, ...]:
    """Return the cuts of one dimension with `tile` as that of the last cut."""
    return (*cuts[:-1], replace(cuts[-1], tile=tile))
