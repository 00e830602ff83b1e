"""
The ways to shard a program over clusters and cores: which dimension takes which axes.

Where the instances along the axes do not divide a dimension, some of them may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import gcd, prod

from xdsl.dialects.builtin import ModuleOp

from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.collective.mesh import MeshOp
from comet.passes.analysis.memory_chain import Axes, memory_chain
from comet.passes.explore.constraints import Constraints
from comet.passes.explore.quick import AcceleratorPipeline
from comet.passes.sharding.dim_axes import (
    DimAxes,
    Dims,
    LikeAxes,
    assign_axes,
    axes_of,
    dims_in,
    extents_along,
    like_axes,
)


@dataclass(frozen=True)
class Shardings:
    """The shardings of a padded and streamed program that constraints leave open."""

    constraints: Constraints
    pipeline: AcceleratorPipeline

    def of(self, module: ModuleOp) -> Sequence[Dims]:
        """
        Return the ways to shard `module`, at least one, with the most instances first.

        The axes of the clusters, and those of the cores, shard one dimension or none,
        or those of each direction of the meshes do, or each axis with the constraint
        `split`. Of axes that do not divide their
        dimension as many instances are used as divide it, or none of these, or each
        number, by the constraint `parts`. In addition there are the shardings of
        `comet-accelerator`, whose dimensions take as many axes as divide them.
        Of shardings that differ only in axes of equal extents, there is the first.
        """
        if self.constraints.dim is not None:
            return self.constraints.dim
        system = attached_system(module)
        different: dict[LikeAxes, Dims] = {}
        for dims in self._all(module, system):
            different.setdefault(like_axes(system, dims), dims)
        return sorted(different.values(), key=lambda dims: -_instances(system, dims))

    def _all(self, module: ModuleOp, system: SystemOp) -> Iterator[Dims]:
        """Yield all shardings, some of them several times."""
        for groups in self._groupings(system):
            yield from self._by_groups(module, system, groups)
        yield from self._quick(module, system)

    def _by_groups(
        self, module: ModuleOp, system: SystemOp, groups: Sequence[Axes]
    ) -> Iterator[Dims]:
        """Yield those that give each group of axes to one dimension or to none."""
        dims = dims_in(module)
        shared = {dim: gcd(*extents_along(module, dim)) for dim in dims}
        for chosen in product((*dims, None), repeat=len(groups)):
            axes = axes_of(system, zip(chosen, groups, strict=True))
            open_ = [
                [
                    _entry(system, dim, dict(zip(names, counts, strict=True)))
                    for counts in self._counts(shared[dim], system, names)
                ]
                for dim, names in axes.items()
                if dim is not None
            ]
            for entries in product(*open_):
                yield tuple(entry for entry in entries if entry.axes)

    def _groupings(self, system: SystemOp) -> Sequence[tuple[Axes, ...]]:
        """Return the ways to group the axes; those of a group shard one dimension."""
        levels = memory_chain(system)
        if self.constraints.split:
            return [tuple((axis,) for group in levels.by_level for axis in group)]
        return [levels.by_level, levels.by_direction]

    def _counts(
        self, extent: int, system: SystemOp, axes: tuple[str, ...]
    ) -> Sequence[tuple[int, ...]]:
        """Return the open numbers of instances along `axes` of a dimension."""
        sizes = tuple(system.axes[axis] for axis in axes)
        if self.constraints.parts == "all":
            return dividing(extent, sizes)
        if extent % prod(sizes) == 0:
            return (sizes,)
        if self.constraints.parts == "none":
            return ()
        return (
            max(dividing(extent, sizes), key=lambda counts: (prod(counts), counts)),
        )

    def _quick(self, module: ModuleOp, system: SystemOp) -> Iterator[Dims]:
        """Yield those of `comet-accelerator`, with the axes of each dimension."""
        mesh = MeshOp(system.system_name, system.axes)
        for dims in self.pipeline.open_dims(module):
            shards = assign_axes("explore", module, mesh, dims)
            yield tuple(DimAxes(*shard) for shard in shards)


@cache
def dividing(extent: int, sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """
    Return all numbers of instances along axes of `sizes` that divide an extent.

    Their product divides it, and each is at most the size of its axis.
    """
    if not sizes:
        return ((),)
    return tuple(
        (count, *rest)
        for count in range(1, sizes[0] + 1)
        if extent % count == 0
        for rest in dividing(extent // count, sizes[1:])
    )


def _entry(system: SystemOp, dim: str, counts: Mapping[str, int]) -> DimAxes:
    """Return the axes of a dimension that have several instances in `counts`."""
    several = {axis: count for axis, count in counts.items() if count > 1}
    parts = {axis: n for axis, n in several.items() if n < system.axes[axis]}
    return DimAxes(dim, tuple(several), tuple(parts.items()))


def _instances(system: SystemOp, dims: Dims) -> int:
    return prod(
        dict(entry.parts).get(axis, system.axes[axis])
        for entry in dims
        for axis in entry.axes or ()
    )
