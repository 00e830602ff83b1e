"""Whether the passes of a mapping meet the constraints of a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import attached_system
from comet.dialects.collective.mesh import MeshOp
from comet.passes.comet.known_meshes import narrowed
from comet.passes.explore.constraints import ALL, Constraints
from comet.passes.explore.mapping_options import MappingOptions, mapping_options
from comet.passes.explore.quick import UNPADDED
from comet.passes.graph.pad.extents import parse_extents
from comet.passes.pipeline import AUTO, run_passes
from comet.passes.schedule.plan_string import parse_plan
from comet.passes.sharding.dim_axes import Dims, assign_axes, partial_axes
from comet.passes.sharding.distribute import DistributePass
from comet.passes.sharding.place_collectives import PlaceCollectivesPass
from comet.passes.sharding.select_instances import SelectInstancesPass


def unmet(
    passes: Sequence[ModulePass], limits: Constraints, ctx: Context, module: ModuleOp
) -> str | None:
    """
    Return the first key of constraints that a mapping does not meet; None if it does.

    `passes` map `module`, whose hardware is attached. Bindings are not looked at, as a
    search may start from others.
    """
    found = mapping_options(passes)
    kinds = None if AUTO in limits.kinds else limits.kinds
    levels = None if limits.at == (ALL,) else limits.at
    met = {
        "mesh": _uses(found, limits, module),
        "stream": _within([found.stream], limits.stream),
        "strategy": _within((each.strategy for each in found.fused), limits.strategy),
        "chunks": _within((each.chunks for each in found.fused), limits.chunks),
        "loops": _within((each.loops for each in found.fused), limits.loops),
        "pad": limits.pad == AUTO or _extents(found.pad) == _extents(limits.pad),
        "dim": limits.dim is None
        or _is_sharded(found, limits.dim, _before_sharding(passes, ctx, module)),
        "kind": _within((kind for kind, _ in found.placed), kinds),
        "at": _within((level for _, level in found.placed if level), levels),
        "factors": all(_has_factors(each.factors, limits) for each in found.tiled),
    }
    return next((key for key, holds in met.items() if not holds), None)


def _within(found: Iterable[object], allowed: Sequence[object] | None) -> bool:
    return allowed is None or all(value in allowed for value in found)


def _uses(found: MappingOptions, limits: Constraints, module: ModuleOp) -> bool:
    """Return whether a mapping uses the instances that the constraints leave."""
    return found.mesh in limits.mesh or not any(narrowed(attached_system(module)))


def _extents(pad: str) -> object:
    return None if pad == UNPADDED else parse_extents(pad)


def _before_sharding(
    passes: Sequence[ModulePass], ctx: Context, module: ModuleOp
) -> ModuleOp:
    """Return a copy of a module after the passes that come before its sharding."""
    sharding = SelectInstancesPass | DistributePass | PlaceCollectivesPass
    copy = module.clone()
    first = takewhile(lambda each: not isinstance(each, sharding), passes)
    run_passes(first, ctx, copy)
    return copy


def _is_sharded(
    found: MappingOptions, allowed: Iterable[Dims], module: ModuleOp
) -> bool:
    """Return whether a mapping shards `module` as one of the options does."""
    sharded = tuple((each.dim, each.axes) for each in found.dim)
    system = attached_system(module)
    mesh = MeshOp(system.system_name, system.axes)

    def shardings() -> Iterator[object]:
        for dims in allowed:
            with suppress(PassFailedException):
                yield (
                    assign_axes("explore", module, mesh, dims),
                    partial_axes(mesh, dims),
                )

    return (sharded, found.parts) in shardings()


def _has_factors(plan: str, limits: Constraints) -> bool:
    found = {entry.name: dict(entry.loops) for entry in parse_plan(plan)}
    return all(
        found.get(entry.name, {}).get(dim, 1) == factor
        for entry in limits.factors
        for dim, factor in entry.loops
    )
