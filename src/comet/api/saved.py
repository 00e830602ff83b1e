"""
A mapping that `comet-explore --output` wrote, as a start of a search or as constraints.

An attribute of its module has the passes that made it. A search can run them again, or
take their options as constraints.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import yaml
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass, PassPipeline
from xdsl.utils.exceptions import ArgSpecParseError

from comet.api.program import installed_context, parsed
from comet.api.source import Source
from comet.passes.comet.known_meshes import KnownMeshesPass
from comet.passes.explore.quick import UNPADDED
from comet.passes.graph.pad import PadPass
from comet.passes.graph.stream import StreamPass
from comet.passes.pipeline import of_kind
from comet.passes.schedule.bind import (
    KINDS,
    SEQUENTIAL,
    BindPass,
    Kinds,
    parse_bodies,
)
from comet.passes.schedule.fuse import FusePass
from comet.passes.schedule.tile import TilePass
from comet.passes.sharding.dim_axes import DimAxes, Parts, format_dims
from comet.passes.sharding.distribute import DistributePass
from comet.passes.sharding.place_collectives import PlaceCollectivesPass, parse_each
from comet.passes.sharding.select_instances import SelectInstancesPass
from comet.tools.diagnostics import UsageError
from comet.universe import installed

PIPELINE = "comet.pipeline"
"""The attribute of a module with the passes that mapped it, as a text for `-p`."""

MAPPING_PASSES = (
    "known-meshes",
    "decompose",
    "expand-maps",
    "pad",
    "stream",
    "select-instances",
    "distribute",
    "insert-collectives",
    "place-collectives",
    "fuse",
    "tile",
    "bind",
    "annotate-cost",
    "lower-to-comet",
)
"""The passes that map a program without changing the program or adding hardware."""


def mapping_passes(text: str) -> tuple[ModulePass, ...]:
    """Return passes that map a program; raises ValueError for others."""
    passes = installed().all_passes
    allowed = {name: passes[name] for name in MAPPING_PASSES}
    try:
        return PassPipeline.parse_spec(allowed, text).passes
    except ArgSpecParseError as error:
        raise ValueError(str(error)) from error


def with_pipeline(module: ModuleOp, pipeline: str) -> ModuleOp:
    """Return a copy of a mapped module with the passes that made it as an attribute."""
    copy = module.clone()
    copy.attributes[PIPELINE] = StringAttr(pipeline)
    return copy


def saved_passes(file: Source) -> tuple[ModulePass, ...]:
    """
    Return the passes that made a saved mapping.

    Raises UsageError for a file that does not have them.
    """
    module = parsed(file.text, file.name, installed_context())
    text = module.attributes.get(PIPELINE)
    try:
        if isinstance(text, StringAttr):
            return mapping_passes(text.data)
    except ValueError as error:
        raise UsageError(f"{file.name}: '{PIPELINE}': {error}") from error
    raise UsageError(
        f"{file.name}: there is no '{PIPELINE}' in it; name a file that comet-explore "
        "--output wrote"
    )


def saved_constraints(file: Source) -> Source:
    """
    Return a file of constraints; for a saved mapping, those that its passes meet.

    Raises UsageError as `saved_passes` does, and for passes without a tile tree.
    """
    if not (file.name.endswith(".mlir") or PIPELINE in file.text):
        return file
    passes = saved_passes(file)
    parts = _parts_of(passes)
    pads, placed = of_kind(passes, PadPass), of_kind(passes, PlaceCollectivesPass)
    fused, tiled = of_kind(passes, FusePass), of_kind(passes, TilePass)
    if len(fused) != 1 or len(tiled) != 1:
        raise UsageError(
            f"{file.name}: '{PIPELINE}' maps nothing; it needs one 'fuse' and one "
            "'tile', as comet-explore --output writes it"
        )
    dims = [
        DimAxes(
            each.dim,
            tuple(each.axes),
            tuple(item for item in parts.items() if item[0] in each.axes),
        )
        for each in of_kind(passes, DistributePass)
    ]
    values: dict[str, object] = {
        "mesh": "known" if of_kind(passes, KnownMeshesPass) else "whole",
        "pad": pads[0].to if pads else UNPADDED,
        "stream": bool(of_kind(passes, StreamPass)),
        "dim": format_dims(dims),
        **(_placed(placed[0]) if placed else {}),
        "strategy": fused[0].strategy,
        "chunks": fused[0].chunks,
        "loops": fused[0].loops,
        "factors": tiled[0].factors,
    }
    if kinds := _kinds(passes):
        found = dict.fromkeys(str(kind) for body in kinds for kind in body)
        values["bindings"] = list(found)
        values["mixed"] = any(len(body) > 1 for body in kinds)
    fields = {key: value for key, value in values.items() if value is not None}
    # On one line, as all of them come from the line of the attribute.
    text = yaml.safe_dump(fields, sort_keys=False, default_flow_style=True, width=inf)
    return Source(text, file.name)


def _placed(place: PlaceCollectivesPass) -> dict[str, object]:
    """Return the kinds and levels of collectives, as constraints."""
    if place.each is None:
        return {"kind": place.kind, "at": place.at}
    kinds, levels = zip(*parse_each(place.each), strict=True)
    return {
        "kind": list(dict.fromkeys(kinds)),
        "at": list(dict.fromkeys(levels)),
        "each": True,
    }


def _parts_of(passes: Sequence[ModulePass]) -> Parts:
    """Return the axes of which the passes select instances."""
    selected = of_kind(passes, SelectInstancesPass)
    return {axis: n for each in selected for axis, n in each.parts.items()}


def _kinds(passes: Sequence[ModulePass]) -> list[Kinds]:
    """Return the distinct bindings of bodies; none if all are sequential."""
    found: dict[Kinds, None] = {}
    for bind in of_kind(passes, BindPass):
        kind = next(kind for kind in KINDS if str(kind) == bind.kind)
        found |= dict.fromkeys([(kind,), *parse_bodies(bind.bodies or "").values()])
    return [] if set(found) <= {SEQUENTIAL} else list(found)
