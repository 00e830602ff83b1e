"""The `comet-accelerator` pipeline: named ops to the ops that mirror COMET files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Literal, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.comet import MappingOp
from comet.dialects.cost import estimate_of
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.hardware_kind import require_accelerator
from comet.passes.analysis.memory_chain import memory_chain
from comet.passes.annotate_cost import AnnotateCostPass
from comet.passes.comet.lower_to_comet import LowerToCometPass
from comet.passes.graph.decompose import DecomposePass
from comet.passes.graph.stream import StreamPass, plan_folds
from comet.passes.graph.stream.forms import AttentionForm
from comet.passes.pipeline import Pipeline, run_settled
from comet.passes.schedule.bind import BindPass
from comet.passes.schedule.fuse import FusePass
from comet.passes.schedule.fuse.notes import CHUNKS, STRATEGY
from comet.passes.schedule.plan_string import FOLD, check_plan, parse_plan
from comet.passes.schedule.tile import TilePass
from comet.passes.sharding.dim_axes import (
    DimAxes,
    assign_axes,
    dims_in,
    parse_dims,
)
from comet.passes.sharding.distribute import DistributePass
from comet.passes.sharding.distribute.auto import (
    SHARED_DIMS,
    STRATEGIES,
    candidates,
    cheapest_dims,
)
from comet.passes.sharding.insert_collectives import InsertCollectivesPass
from comet.passes.sharding.place_collectives import PlaceCollectivesPass
from comet.passes.sharding.place_collectives.levels import explicit_level

STREAM = "comet.stream"
"""The attribute of a mapping that says whether the cheaper way was the streamed one."""

SHARED = ("N",)
"""The dimension that is shared if none is named."""

SHARED_BY_FOLDS = ("B", "H", "M")
"""Those that are shared if none is named and N is streamed."""

AUTO = ("auto",)

Dims: TypeAlias = tuple[DimAxes, ...]


@dataclass(frozen=True)
class Way:
    """One way to compile what `decompose` has made."""

    passes: tuple[ModulePass, ...]
    notes: Mapping[str, Attribute]
    """What a search has decided, for the attributes of the functions."""


@dataclass(frozen=True)
class CometAcceleratorPass(Pipeline):
    """
    Compile a named compound op for a spatial accelerator.

    Before: named or elementary ops, with the hardware attached. After: the `comet`
    dialect, ready for `-t comet`. Every part is a pass of its own.
    """

    name = "comet-accelerator"

    dim: tuple[str, ...] | None = None
    """
    The dimensions that clusters and cores share, as in H,M, each of which takes as many
    of the outermost axes left as divide it; or with axes, as in "M:cx,cy;N:kx,ky".
    `auto` takes N or the result's other dimensions, whichever is cheaper, as does none
    at all where `op`, `at`, `kind`, `strategy` and `factors` are left open too.
    Otherwise it is N, and B, H and M where N is streamed.
    """

    op: str | None = None
    """
    The ops that the clusters share, such as contract; the cores of one cluster share
    the others, as those of each do if unset. With `kind=gather` that cluster is one.
    """

    stream: bool | Literal["auto"] = "auto"
    """
    Whether to run `stream`; `auto` compiles attention both ways, keeps the one that
    `model` finds cheaper, and streams nothing else.
    """

    at: str | None = None
    """The level of the explicit collectives; the shared buffer's if unset."""

    kind: Literal[
        "allreduce",
        "reduce_scatter_all_gather",
        "reduce_broadcast",
        "gather",
        "auto",
    ] = "auto"
    """See `place-collectives`."""

    strategy: Literal["none", "apart", "partial", "full", "auto"] = "auto"
    """See `fuse`."""

    chunks: Literal["shared", "root", "auto"] = "auto"
    """See `fuse`."""

    factors: str = "auto"
    """See `tile`."""

    bind: Literal["sequential", "pipeline", "parallel", "auto"] = "sequential"
    """See `bind`."""

    model: Literal["tool", "paper", "ideal"] = "paper"
    """See `annotate-cost`."""

    def __post_init__(self) -> None:
        """Check the options that are text, as the passes that they are for do."""
        _ = tuple(self.map())
        if self.dim is not None and self.dim != AUTO:
            _ = parse_dims(self.dim)

    def parts(self, ctx: Context, module: ModuleOp) -> Iterator[ModulePass]:
        """Yield the passes of the pipeline for `module`, in order."""
        require_accelerator(self.name, attached_system(module))
        yield DecomposePass(accumulator="input")
        self.check_names(module, attached_system(module))
        if self.stream == "auto" and has_attention(module):
            way = self.cheaper(ctx, module)
        else:
            way = self.way(ctx, module, stream=self.stream is True)
        for func in compute_functions(module):
            func.attributes.update(way.notes)
        yield from way.passes

    def check_names(self, module: ModuleOp, system: SystemOp) -> None:
        """
        Check the levels and dimensions that options name, before any search.

        Raises PassFailedException for one that `module` or `system` does not have.
        """
        if self.at is not None and system.axes:
            mesh = MeshOp(system.system_name, system.axes, system.axis_levels)
            explicit_level(mesh, self.at)
        if self.factors != "auto":
            levels = [level.level_name for level in system.levels]
            dims = tuple(sorted(dims_in(module)))
            check_plan(parse_plan(self.factors), (*levels, FOLD), dims)

    def cheaper(self, ctx: Context, module: ModuleOp) -> Way:
        """
        Return the cheaper way to compile `module`: with `stream` or without.

        Raises PassFailedException with the reason of the latter if neither has a
        mapping.
        """
        tried: list[tuple[tuple[float, float], Way]] = []
        failure: PassFailedException | None = None
        for stream in (True, False):
            trial = module.clone()
            try:
                way = self.way(ctx, trial, stream=stream)
                passes = run_settled(way.passes, ctx, trial)
            except PassFailedException as error:
                failure = error
                continue
            notes = {STREAM: BoolAttr.from_bool(stream), **way.notes}
            tried.append((figures_of(trial), Way(passes, notes | fusion_of(trial))))
        if not tried:
            raise failure or PassFailedException(f"{self.name}: there is no mapping")
        return min(tried, key=lambda each: each[0])[1]

    def way(self, ctx: Context, module: ModuleOp, *, stream: bool) -> Way:
        """Return the passes after `decompose`; changes nothing."""
        dims = self.shared(ctx, module, stream=stream)
        notes: dict[str, Attribute] = {}
        if dims and self.stated(module, stream=stream) is None:
            notes[SHARED_DIMS] = StringAttr(",".join(each.dim for each in dims))
        spread = self.spread(module, attached_system(module), dims, stream=stream)
        return Way((*spread, *self.map()), notes)

    def spread(
        self, module: ModuleOp, system: SystemOp, dims: Dims, *, stream: bool
    ) -> Iterator[ModulePass]:
        """Yield the passes after `decompose` that share `dims` between instances."""
        if stream:
            yield StreamPass()
        mesh = MeshOp(system.system_name, system.axes)
        for dim, axes in assign_axes(self.name, module, mesh, dims):
            yield DistributePass(dim=dim, axes=axes, op=self.op)
            cores = tuple(a for a in axes if a in memory_chain(system).core_axes)
            if self.op is not None and cores:
                yield DistributePass(dim=dim, axes=cores, skip=self.op)
        yield InsertCollectivesPass()
        at = self.at if self.at is not None else memory_chain(system).shared
        yield PlaceCollectivesPass(at=at, kind=self.kind)

    def map(self) -> Iterator[ModulePass]:
        """Yield the passes that make a mapping of what is shared."""
        yield FusePass(strategy=self.strategy, chunks=self.chunks)
        yield TilePass(factors=self.factors)
        yield BindPass(kind=self.bind)
        yield AnnotateCostPass(model=self.model)
        yield LowerToCometPass()

    def shared(self, ctx: Context, module: ModuleOp, *, stream: bool) -> Dims:
        """Return the dimensions to share: the stated ones, or else the cheapest."""
        stated = self.stated(module, stream=stream)
        return self.cheapest(ctx, module) if stated is None else stated

    def stated(self, module: ModuleOp, *, stream: bool) -> Dims | None:
        """Return the dimensions that options say, None if the cost decides."""
        if self.dim is not None and self.dim != AUTO:
            return parse_dims(self.dim)
        known = dims_in(module)
        if stream:
            return as_dims(dim for dim in SHARED_BY_FOLDS if dim in known)
        if self.dim is None and self.is_pinned():
            return as_dims(dim for dim in SHARED if dim in known)
        return None

    def is_pinned(self) -> bool:
        """Return whether options that depend on what is shared are given."""
        unset = self.op is None and self.at is None
        open_ = self.kind == self.strategy == self.factors == "auto"
        return not (unset and open_)

    def cheapest(self, ctx: Context, module: ModuleOp) -> Dims:
        """Return the dimensions whose sharing costs least, none if there are none."""
        system, known = attached_system(module), dims_in(module)
        choices = [
            dims for dims in candidates(module) if all(dim in known for dim in dims)
        ]
        if not choices:
            return ()
        best = cheapest_dims(
            ctx,
            module,
            choices,
            lambda dims: self.spread(module, system, as_dims(dims), stream=False),
            STRATEGIES if self.strategy == "auto" else (self.strategy,),
        )
        return as_dims(best)


def as_dims(names: Iterable[str]) -> Dims:
    """Return dimensions that take the outermost axes left, in their order."""
    return tuple(map(DimAxes, names))


def has_attention(module: ModuleOp) -> bool:
    """Return whether `stream` would find softmax times a matrix in `module`."""
    found = [fold for f in compute_functions(module) for fold in plan_folds(f, "N")]
    return any(isinstance(fold.form, AttentionForm) for fold in found)


def figures_of(module: ModuleOp) -> tuple[float, float]:
    """Return latency and energy of the mapping in `module`; infinite if not priced."""
    mappings = (op for op in module.body.block.ops if isinstance(op, MappingOp))
    figures = next((estimate_of(mapping) for mapping in mappings), None)
    if figures is None:
        return inf, inf
    return figures.latency, inf if figures.energy is None else figures.energy


def fusion_of(module: ModuleOp) -> dict[str, Attribute]:
    """Return what a search in `fuse` has noted, as the mapping in `module` has it."""
    return {
        name: op.attributes[name]
        for op in module.ops
        if isinstance(op, MappingOp)
        for name in (STRATEGY, CHUNKS)
        if name in op.attributes
    }
