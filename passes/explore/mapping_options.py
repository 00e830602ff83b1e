"""What the passes of a mapping decide, under the keys of constraints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.passes import ModulePass

from comet.passes.comet.known_meshes import KnownMeshesPass
from comet.passes.explore.constraints import KindOrAuto, Mesh
from comet.passes.explore.quick import UNPADDED
from comet.passes.graph.pad import PadPass
from comet.passes.graph.stream import StreamPass
from comet.passes.pipeline import of_kind
from comet.passes.schedule.fuse import FusePass
from comet.passes.schedule.tile import TilePass
from comet.passes.sharding.dim_axes import DimAxes, Dims, Parts
from comet.passes.sharding.distribute import DistributePass
from comet.passes.sharding.place_collectives import PlaceCollectivesPass, parse_each
from comet.passes.sharding.select_instances import SelectInstancesPass

Placement: TypeAlias = tuple[KindOrAuto, str | None]
"""The kind of a collective, and the level of its explicit form if that is named."""


@dataclass(frozen=True)
class MappingOptions:
    """The options of the passes of a mapping."""

    mesh: Mesh
    pad: str
    """The padded extents, or `none`."""
    stream: bool
    dim: Dims
    parts: Parts
    """The number of instances of each axis that is not used whole."""
    placed: tuple[Placement, ...]
    """Of all collectives, or of each; none if no pass places any."""
    each: bool
    """Whether `placed` is of each collective."""
    fused: tuple[FusePass, ...]
    tiled: tuple[TilePass, ...]


def mapping_options(passes: Sequence[ModulePass]) -> MappingOptions:
    """Return the options that the passes of a mapping have."""
    parts = {
        axis: count
        for each in of_kind(passes, SelectInstancesPass)
        for axis, count in each.parts.items()
    }
    placing = of_kind(passes, PlaceCollectivesPass)
    padded = of_kind(passes, PadPass)
    return MappingOptions(
        mesh="known" if of_kind(passes, KnownMeshesPass) else "whole",
        pad=padded[0].to if padded else UNPADDED,
        stream=bool(of_kind(passes, StreamPass)),
        dim=tuple(_sharded(each, parts) for each in of_kind(passes, DistributePass)),
        parts=parts,
        placed=tuple(pair for each in placing for pair in _placements(each)),
        each=any(each.each is not None for each in placing),
        fused=tuple(of_kind(passes, FusePass)),
        tiled=tuple(of_kind(passes, TilePass)),
    )


def _sharded(distribute: DistributePass, parts: Parts) -> DimAxes:
    axes = tuple(distribute.axes)
    used = tuple((axis, count) for axis, count in parts.items() if axis in axes)
    return DimAxes(distribute.dim, axes, used)


def _placements(place: PlaceCollectivesPass) -> Iterator[Placement]:
    if place.each is None:
        yield place.kind, place.at
    else:
        yield from parse_each(place.each)
