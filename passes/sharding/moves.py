"""Which collectives move a value from one sharding to another, and their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from comet.dialects.collective.mesh import MeshOp
from comet.dialects.collective.spmd import Sharding


@dataclass(frozen=True)
class Held:
    """How instances hold a value."""

    sharding: Sharding
    pending: tuple[str, ...] = ()
    """The axes over which its reduction is still to be completed."""


def swapped(present: Sharding, wanted: Sharding) -> tuple[str, str] | None:
    """Return the dimensions to split and to concatenate if one all-to-all does it."""
    split = [dim for dim in wanted if wanted[dim] != present.get(dim)]
    concat = [dim for dim in present if present[dim] != wanted.get(dim)]
    if (
        len(split) != 1
        or len(concat) != 1
        or split[0] in present
        or concat[0] in wanted
    ):
        return None
    return (split[0], concat[0]) if wanted[split[0]] == present[concat[0]] else None


def scattered_dim(pending: Sequence[str], wanted: Sharding) -> str | None:
    """Return the dimension along which a reduction over `pending` may be scattered."""
    return next((dim for dim, axes in wanted.items() if axes == tuple(pending)), None)


def received(held: Held, wanted: Sharding, size: float, mesh: MeshOp) -> float | None:
    """
    Return the bytes that an instance receives to have a value in `wanted`.

    `size` is the size of the whole value in bytes. Of a group of n instances each gets
    (n - 1) / n of what it gathers, or of what it reduces; an all-reduce is a
    reduce-scatter and an all-gather. None if a whole value would be scattered.
    """
    present, moved = dict(held.sharding), 0.0
    if axes := held.pending:
        moved += _missing_bytes(size, axes, mesh)
        if (dim := scattered_dim(axes, wanted)) is not None and dim not in present:
            present[dim] = axes
        else:
            moved += _missing_bytes(size, axes, mesh)
    if (swap := swapped(present, wanted)) is not None:
        axes = wanted[swap[0]]
        return moved + _missing_bytes(size / mesh.size(axes), axes, mesh)
    if any(present.get(dim) != axes for dim, axes in wanted.items()):
        return None
    gathered = [axes for dim, axes in present.items() if wanted.get(dim) != axes]
    return moved + sum(_missing_bytes(size, axes, mesh) for axes in gathered)


def _missing_bytes(size: float, axes: Sequence[str], mesh: MeshOp) -> float:
    """Return the bytes of `size` that the other instances along `axes` hold."""
    return size * (1 - 1 / mesh.size(axes))
