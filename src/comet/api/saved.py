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
from comet.passes.explore.mapping_options import MappingOptions, mapping_options
from comet.passes.pipeline import of_kind
from comet.passes.schedule.bind import (
    KINDS,
    SEQUENTIAL,
    BindPass,
    Kinds,
    parse_bodies,
)
from comet.passes.sharding.dim_axes import format_dims
from comet.tools.diagnostics import UsageError
from comet.universe import installed

PIPELINE = "comet.pipeline"
"""The attribute of a module with the passes that mapped it, as a text for `-p`."""

MAPPING_PASSES = (
    "known-meshes",
    "decompose",
    "expand-maps",
    "expand-vectors",
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
    found = mapping_options(passes)
    if len(found.fused) != 1 or len(found.tiled) != 1:
        raise UsageError(
            f"{file.name}: '{PIPELINE}' maps nothing; it needs one 'fuse' and one "
            "'tile', as comet-explore --output writes it"
        )
    (fuse,), (tile,) = found.fused, found.tiled
    values: dict[str, object] = {
        "mesh": found.mesh,
        "pad": found.pad,
        "stream": found.stream,
        "dim": format_dims(found.dim),
        **_placed(found),
        "strategy": fuse.strategy,
        "chunks": fuse.chunks,
        "loops": fuse.loops,
        "factors": tile.factors,
        **_bindings(passes),
    }
    # On one line, as all of them come from the line of the attribute.
    text = yaml.safe_dump(values, sort_keys=False, default_flow_style=True, width=inf)
    return Source(text, file.name)


def _placed(found: MappingOptions) -> dict[str, object]:
    """Return the kinds and levels of collectives, as constraints."""
    if found.each:
        kinds, levels = map(dict.fromkeys, zip(*found.placed, strict=True))
        return {"kind": list(kinds), "at": list(levels), "each": True}
    pairs = [(("kind", kind), ("at", level)) for kind, level in found.placed]
    return {key: value for pair in pairs for key, value in pair if value is not None}


def _bindings(passes: Sequence[ModulePass]) -> dict[str, object]:
    """Return how bodies are bound, as constraints; none if all are sequential."""
    bodies: dict[Kinds, None] = {}
    for bind in of_kind(passes, BindPass):
        kind = next(kind for kind in KINDS if str(kind) == bind.kind)
        bodies |= dict.fromkeys([(kind,), *parse_bodies(bind.bodies or "").values()])
    if set(bodies) <= {SEQUENTIAL}:
        return {}
    kinds = dict.fromkeys(str(kind) for body in bodies for kind in body)
    return {"bindings": list(kinds), "mixed": any(len(body) > 1 for body in bodies)}
