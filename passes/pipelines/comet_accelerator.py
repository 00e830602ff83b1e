"""The `comet-accelerator` pipeline: named ops to the ops that mirror COMET files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from typing import Literal, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import region_dce
from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import CostError
from comet.cost.from_ir.bounds import program_bound
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
from comet.passes.graph.stream import StreamPass
from comet.passes.pipeline import Pipeline, run_settled
from comet.passes.schedule.bind import BindPass
from comet.passes.schedule.fuse import FusePass
from comet.passes.schedule.fuse.accelerator.auto import (
    different_strategies,
    open_strategies,
)
from comet.passes.schedule.fuse.strategy import CHUNKS, STRATEGY, Strategy
from comet.passes.schedule.plan_string import check_dims, parse_plan
from comet.passes.schedule.tile import TilePass
from comet.passes.search import Candidate, Cost, Found, Goal, cheapest, refuse, session
from comet.passes.sharding.dim_axes import (
    DimAxes,
    assign_axes,
    dims_in,
    parse_dims,
)
from comet.passes.sharding.distribute import DistributePass
from comet.passes.sharding.distribute.auto import SHARDED_DIMS, candidates
from comet.passes.sharding.insert_collectives import InsertCollectivesPass
from comet.passes.sharding.place_collectives import PlaceCollectivesPass
from comet.passes.sharding.place_collectives.levels import explicit_level

STREAM = "comet.stream"
"""The attribute of a mapping that says whether the cheaper way was the streamed one."""

AUTO = ("auto",)

Dims: TypeAlias = tuple[DimAxes, ...]


@dataclass(frozen=True)
class ShardingConfig:
    """Whether statistics are streamed, and what clusters and cores share."""

    stream: bool
    dims: Dims
    notes: Mapping[str, Attribute]
    """What of it no option says, as attributes of the functions."""

    @property
    def label(self) -> str:
        """The config as options."""
        stream = "true" if self.stream else "false"
        return f"stream={stream} dim={','.join(each.dim for each in self.dims)}"


@dataclass(frozen=True)
class Trial:
    """Passes that have made a mapping, with the choices that they made."""

    passes: tuple[ModulePass, ...]
    notes: Mapping[str, Attribute]
    """These choices, as attributes of the functions."""


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
    `auto` takes the columns of the first product or the result's other dimensions,
    whichever is cheaper, as does none at all where `op`, `at`, `kind`, `strategy` and
    `factors` are left open too. Otherwise it is the columns, and what all results of a
    fold have where something is streamed.
    """

    op: str | None = None
    """
    The ops that the clusters share, such as contract; the cores of one cluster share
    the others, as those of each do if unset. With `kind=gather` that cluster is one.
    """

    stream: bool | Literal["auto"] = "auto"
    """
    Whether to run `stream`; `auto` compiles what it changes both ways, and keeps the
    cheaper one.
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

    strategy: Literal["none", "isolate_contractions", "partial", "full", "auto"] = (
        "auto"
    )
    """See `fuse`."""

    chunks: Literal["shared", "root", "auto"] = "auto"
    """See `fuse`."""

    factors: str = "auto"
    """See `tile`."""

    bind: Literal["sequential", "pipeline", "parallel", "auto"] = "sequential"
    """See `bind`."""

    model: Literal["tool", "paper", "ideal"] = "paper"
    """See `annotate-cost`; all choices are made by it."""

    objective: Literal["latency", "energy", "edp"] = "latency"
    """See `fuse`."""

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
        configs = list(self.configs(ctx, module))
        if len(configs) == 1:
            (config,) = configs
            passes, notes = self.passes_for(module, config), config.notes
        else:
            trial = self.cheapest(ctx, module, configs)
            passes, notes = trial.passes, trial.notes
        for func in compute_functions(module):
            func.attributes.update(notes)
        yield from passes

    def check_names(self, module: ModuleOp, system: SystemOp) -> None:
        """
        Check the levels and dimensions that options name, before any search.

        Raises PassFailedException for one that `module` or `system` does not have.
        """
        if self.at is not None and system.axes:
            mesh = MeshOp(system.system_name, system.axes, system.axis_levels)
            explicit_level(mesh, self.at)
        if self.factors != "auto":
            check_dims(parse_plan(self.factors), sorted(dims_in(module)))

    def configs(self, ctx: Context, module: ModuleOp) -> Iterator[ShardingConfig]:
        """Yield what options leave open, at least one config; changes nothing."""
        forms = tuple(self.forms(ctx, module))
        for stream, form in forms:
            open_dims = self.open_dims(form)
            for dims in open_dims:
                notes: dict[str, Attribute] = {}
                if len(forms) > 1:
                    notes[STREAM] = BoolAttr.from_bool(stream)
                if len(open_dims) > 1:
                    notes[SHARDED_DIMS] = StringAttr(
                        ",".join(each.dim for each in dims)
                    )
                yield ShardingConfig(stream, dims, notes)

    def forms(self, ctx: Context, module: ModuleOp) -> Iterator[tuple[bool, ModuleOp]]:
        """Yield the module as it is, and streamed where `stream` changes it."""
        if self.stream is not True:
            yield False, module
        if self.stream is not False:
            streamed = module.clone()
            StreamPass().apply(ctx, streamed)
            same = streamed.is_structurally_equivalent(module)
            if self.stream is True or not same:
                yield True, streamed

    def open_dims(self, module: ModuleOp) -> Sequence[Dims]:
        """Return the dimensions that may be sharded, at least one choice of them."""
        if self.dim is not None and self.dim != AUTO:
            return (parse_dims(self.dim),)
        found = [tuple(map(DimAxes, names)) for names in candidates(module)] or [()]
        return found[:1] if self.dim is None and self.is_pinned() else found

    def cheapest(
        self, ctx: Context, module: ModuleOp, configs: Sequence[ShardingConfig]
    ) -> Trial:
        """
        Return the passes that make the cheapest mapping.

        What may cost the least is tried first. Raises PassFailedException with the
        reason of the last config if none has a mapping.
        """
        goal = Goal(self.model, self.objective)
        groups = [list(self.candidates(ctx, module, config)) for config in configs]
        rounds = chain.from_iterable(zip_longest(*groups))
        candidates = [candidate for candidate in rounds if candidate is not None]
        candidates.sort(key=lambda candidate: goal.order(candidate.bound))
        return cheapest("mapping", place_of(module), candidates, goal).made

    def candidates(
        self, ctx: Context, module: ModuleOp, config: ShardingConfig
    ) -> Iterator[Candidate[Trial]]:
        """Yield the ways to fuse what a config makes of `module`, with its bound."""
        copy = module.clone()
        system = attached_system(copy)
        spread = self.spread(copy, system, config.dims, stream=config.stream)
        try:
            with session() as current, current.trying(f"sharding {config.label}", None):
                passes = run_settled(spread, ctx, copy)
            bound = self.bound(copy, system)
        except (PassFailedException, CostError) as error:
            yield Candidate(config.label, partial(refuse, error))
            return
        func = next(compute_functions(copy))
        choices = open_strategies(func, self.strategy, self.chunks)
        for name, way in different_strategies(func, system, choices):
            label = f"{config.label} strategy={name}"
            if isinstance(way, PassFailedException):
                yield Candidate(label, partial(refuse, way), bound)
            else:
                notes = {**config.notes, **dict(self.fusion_notes(way, choices))}
                price = partial(self.mapped, ctx, copy, Trial(passes, notes), way)
                yield Candidate(label, price, bound)

    def fusion_notes(
        self, way: Strategy, choices: Sequence[Strategy]
    ) -> Iterator[tuple[str, Attribute]]:
        """Yield what of a way to fuse no option says, as `fuse` would note it."""
        if len(choices) > 1:
            yield STRATEGY, StringAttr(way.name)
        if len({choice.chunks for choice in choices}) > 1:
            yield CHUNKS, StringAttr(way.chunks)

    def bound(self, module: ModuleOp, system: SystemOp) -> Cost:
        """Return what every mapping of a sharded module costs at least."""
        found: list[tuple[float, float]] = []
        for func in compute_functions(module):
            region_dce(func.body)
            found.append(program_bound(func, system, self.model))
        latencies, energies = zip(*found, strict=True)
        return Cost(max(latencies), max(energies))

    def mapped(
        self, ctx: Context, module: ModuleOp, sharded: Trial, way: Strategy
    ) -> Found[Trial]:
        """Map a copy of a sharded module, and return what did so and what it costs."""
        copy = module.clone()
        passes = (*sharded.passes, *run_settled(self.map(way), ctx, copy))
        (mapping,) = (op for op in copy.body.block.ops if isinstance(op, MappingOp))
        figures = estimate_of(mapping)
        assert figures is not None
        cost = Cost(figures.latency, figures.energy or 0.0)
        return Found(Trial(passes, sharded.notes), cost, figures.limit)

    def passes_for(
        self, module: ModuleOp, config: ShardingConfig
    ) -> tuple[ModulePass, ...]:
        """Return the passes after `decompose`."""
        system, stream = attached_system(module), config.stream
        spread = self.spread(module, system, config.dims, stream=stream)
        return (*spread, *self.map())

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
        yield PlaceCollectivesPass(
            at=at, kind=self.kind, model=self.model, objective=self.objective
        )

    def map(self, way: Strategy | None = None) -> Iterator[ModulePass]:
        """Yield the passes that make a mapping of what is sharded, fused in a way."""
        model, objective = self.model, self.objective
        yield FusePass(
            strategy=self.strategy if way is None else way.name,
            chunks=self.chunks if way is None else way.chunks,
            model=model,
            objective=objective,
        )
        yield TilePass(factors=self.factors, model=model, objective=objective)
        yield BindPass(kind=self.bind, model=model, objective=objective)
        yield AnnotateCostPass(model=self.model)
        yield LowerToCometPass()

    def is_pinned(self) -> bool:
        """Return whether options that depend on what is sharded are given."""
        unset = self.op is None and self.at is None
        open_ = self.kind == self.strategy == self.factors == "auto"
        return not (unset and open_)


def place_of(module: ModuleOp) -> str:
    """Name the functions of a module."""
    return ", ".join(f"@{func.sym_name.data}" for func in compute_functions(module))
