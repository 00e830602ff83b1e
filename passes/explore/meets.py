"""Whether the passes of a mapping meet the constraints of a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import attached_system
from comet.dialects.collective.mesh import MeshOp
from comet.passes.comet.known_meshes import KnownMeshesPass, narrowed
from comet.passes.explore.constraints import ALL, Constraints
from comet.passes.explore.quick import UNPADDED
from comet.passes.graph.pad import PadPass
from comet.passes.graph.pad.extents import parse_extents
from comet.passes.graph.stream import StreamPass
from comet.passes.pipeline import AUTO, of_kind, run_passes
from comet.passes.schedule.fuse import FusePass
from comet.passes.schedule.plan_string import parse_plan
from comet.passes.schedule.tile import TilePass
from comet.passes.sharding.dim_axes import Dims, assign_axes, parts_of
from comet.passes.sharding.distribute import DistributePass
from comet.passes.sharding.place_collectives import PlaceCollectivesPass, parse_each
from comet.passes.sharding.select_instances import SelectInstancesPass


def unmet(
    passes: Sequence[ModulePass], limits: Constraints, ctx: Context, module: ModuleOp
) -> str | None:
    """
    Return the first key of constraints that a mapping does not meet; None if it does.

    `passes` map `module`, whose hardware is attached. Bindings are not looked at, as a
    search may start from others.
    """
    fused, tiled = of_kind(passes, FusePass), of_kind(passes, TilePass)
    streamed = bool(of_kind(passes, StreamPass))
    met = {
        "mesh": _uses(passes, limits, module),
        "stream": limits.stream is None or streamed in limits.stream,
        "strategy": _within((each.strategy for each in fused), limits.strategy),
        "chunks": _within((each.chunks for each in fused), limits.chunks),
        "loops": _within((each.loops for each in fused), limits.loops),
        "pad": _is_padded(passes, limits.pad),
        "dim": limits.dim is None or _is_sharded(passes, limits.dim, ctx, module),
        **_placed(passes, limits),
        "factors": all(_has_factors(each.factors, limits) for each in tiled),
    }
    return next((key for key, holds in met.items() if not holds), None)


def _within(found: Iterable[str], allowed: Sequence[str] | None) -> bool:
    return allowed is None or all(value in allowed for value in found)


def _uses(passes: Sequence[ModulePass], limits: Constraints, module: ModuleOp) -> bool:
    """Return whether the passes use the instances that the constraints leave."""
    mesh = "known" if of_kind(passes, KnownMeshesPass) else "whole"
    return mesh in limits.mesh or not any(narrowed(attached_system(module)))


def _is_padded(passes: Sequence[ModulePass], pad: str) -> bool:
    found = [parse_extents(each.to) for each in of_kind(passes, PadPass)]
    return pad == AUTO or found == ([] if pad == UNPADDED else [parse_extents(pad)])


def _is_sharded(
    passes: Sequence[ModulePass],
    allowed: Sequence[Dims],
    ctx: Context,
    module: ModuleOp,
) -> bool:
    """Return whether the passes shard dimensions as one of the options does."""
    found = tuple(
        (each.dim, tuple(each.axes)) for each in of_kind(passes, DistributePass)
    )
    parts = [each.parts for each in of_kind(passes, SelectInstancesPass)]
    later = SelectInstancesPass | DistributePass | PlaceCollectivesPass
    copy = module.clone()
    run_passes(takewhile(lambda each: not isinstance(each, later), passes), ctx, copy)
    system = attached_system(copy)

    def shardings() -> Iterator[object]:
        for dims in allowed:
            mesh = MeshOp(system.system_name, system.axes)
            try:
                used = parts_of(mesh, dims)
                yield assign_axes("explore", copy, mesh, dims), [used] if used else []
            except PassFailedException:
                continue

    return (found, parts) in shardings()


def _placed(passes: Sequence[ModulePass], limits: Constraints) -> dict[str, bool]:
    """Return whether the kinds and the levels of collectives are allowed."""
    pairs: list[tuple[str, str | None]] = []
    for each in of_kind(passes, PlaceCollectivesPass):
        pairs += parse_each(each.each) if each.each else [(each.kind, each.at)]
    kinds = None if AUTO in limits.kinds else limits.kinds
    levels = None if limits.at == (ALL,) else limits.at
    return {
        "kind": _within((kind for kind, _ in pairs), kinds),
        "at": _within((level for _, level in pairs if level), levels),
    }


def _has_factors(plan: str, limits: Constraints) -> bool:
    found = {entry.name: dict(entry.loops) for entry in parse_plan(plan)}
    return all(
        found.get(entry.name, {}).get(dim, 1) == factor
        for entry in limits.factors
        for dim, factor in entry.loops
    )
