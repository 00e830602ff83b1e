"""
The passes of `comet-accelerator`, with the choices that a quick search makes.

Shardings, paddings, forms and strategies are candidates; `tile` finds the factors of
each by sampling and descent.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Literal, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.passes import ModulePass
from xdsl.transforms.dead_code_elimination import region_dce
from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import CostError
from comet.cost.from_ir.bounds import function_bound
from comet.dialects.arch import SystemOp, attached_system
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.comet import MappingOp
from comet.dialects.cost import estimate_of
from comet.dialects.errors import about
from comet.passes.analysis.functions import (
    compute_functions,
    function_names,
    operations,
)
from comet.passes.analysis.hardware_kind import require_accelerator
from comet.passes.analysis.memory_chain import memory_chain
from comet.passes.analysis.named_numbers import format_numbers
from comet.passes.annotate_cost import AnnotateCostPass
from comet.passes.annotate_cost.accelerator import total_figures
from comet.passes.comet.lower_to_comet import LowerToCometPass
from comet.passes.comet.lower_to_comet.build import check_expressible, only_function
from comet.passes.explore.config import ChosenPasses, ShardingConfig
from comet.passes.graph.decompose import DecomposePass
from comet.passes.graph.pad import PadPass, padded_copy
from comet.passes.graph.pad.extents import (
    parse_extents,
    suitable_extents,
)
from comet.passes.graph.stream import StreamPass
from comet.passes.pipeline import AUTO, Pipeline, run_settled
from comet.passes.schedule.bind import BindPass
from comet.passes.schedule.fuse import FusePass
from comet.passes.schedule.fuse.accelerator.auto import (
    different_strategies,
    notes_of,
    open_strategies,
)
from comet.passes.schedule.fuse.accelerator.bound import FusionBounds, cost_of_bound
from comet.passes.schedule.fuse.strategy import STRATEGY, Chunks, Loops, Strategy
from comet.passes.schedule.plan_string import (
    PLAN,
    check_dims,
    format_plan,
    parse_plan,
)
from comet.passes.schedule.tile import TilePass
from comet.passes.schedule.tile.accelerator import search
from comet.passes.schedule.tile.template import make_template
from comet.passes.search import (
    Candidate,
    Cost,
    Found,
    cheapest,
    cost_of,
    higher,
    is_above_ceiling,
    refuse,
    session,
)
from comet.passes.search.goal import (
    FREE,
    ChoosesByGoal,
    ModelOption,
    ObjectiveOption,
)
from comet.passes.search.groups import Group, best_first
from comet.passes.sharding.dim_axes import (
    DimAxes,
    Dims,
    assign_axes,
    dims_in,
    format_dims,
    parse_dims,
    partial_axes,
)
from comet.passes.sharding.distribute import DistributePass
from comet.passes.sharding.distribute.auto import (
    SHARDED_DIMS,
    candidates,
    shardings,
)
from comet.passes.sharding.insert_collectives import InsertCollectivesPass
from comet.passes.sharding.place_collectives import PlaceCollectivesPass
from comet.passes.sharding.place_collectives.kinds import Kind
from comet.passes.sharding.place_collectives.levels import explicit_level
from comet.passes.sharding.select_instances import SelectInstancesPass
from comet.passes.sharding.shardings import computes

PAD = "comet.pad"
"""The attribute of a mapping for the padded extents, if they were chosen."""

STREAM = "comet.stream"
"""The attribute of a mapping for whether it is streamed, if that was chosen."""

AUTO_DIM = (AUTO,)

UNPADDED = "none"
"""The option `pad` for the true extents."""

T = TypeVar("T")


@dataclass(frozen=True)
class AcceleratorPipeline(Pipeline, ChoosesByGoal):
    """The passes from named ops to COMET files; what options leave open is chosen."""

    name = "comet-accelerator"

    dim: tuple[str, ...] | None = None
    """
    The dimensions to shard over clusters and cores, as in H,M: each takes the remaining
    axes, outermost first, as far as they divide it; or with axes, as in
    "M:cx,cy;N:kx,ky"; none if it is empty. `auto` is the cheapest: the columns of
    the first product, the result's other dimensions, or none, over all axes or those of
    each level, or one of the two over each direction of the meshes. The default is
    `auto` if `op`, `at`, `kind`, `strategy` and `factors` are not set; otherwise the
    columns, or in streamed programs the dimensions that all results of a fold have.
    """

    op: str | None = None
    """
    The ops to shard over clusters and cores, such as contract; by default all. The
    others are sharded over the cores of each cluster, or of one with `kind=gather`.
    """

    stream: bool | Literal["auto"] = "auto"
    """
    Whether to run `stream`; `auto` compiles a program that it changes with and without
    it, and keeps the cheaper one.
    """

    pad: str = AUTO
    """
    The padded extents, as in "N=272,K=128", or `none`; `auto` compiles a program whose
    extents have few divisors with and without padding, and keeps the cheapest one,
    unless `factors` are set.
    """

    at: str | None = None
    """The level of the explicit collectives; by default that of the shared buffer."""

    kind: Literal[Kind, "auto"] = "auto"
    """See `place-collectives`."""

    partials: Literal["reduce"] | None = None
    """See `insert-collectives`; COMET files have no all-gather of partials."""

    strategy: Literal["none", "isolate_contractions", "partial", "full", "auto"] = (
        "auto"
    )
    """See `fuse`."""

    chunks: Literal[Chunks, "auto"] = "auto"
    """See `fuse`."""

    loops: Literal[Loops, "auto"] = "shared"
    """See `fuse`."""

    factors: str = "auto"
    """See `tile`."""

    bind: Literal["sequential", "pipeline", "parallel", "auto"] = "sequential"
    """See `bind`."""

    model: ModelOption = "paper"

    objective: ObjectiveOption = "latency"

    allow_artifacts: bool = False
    """
    Whether `model=tool` may prefer a mapping that takes less than its transfers of the
    root memory do, which is a defect of the COMET tool.
    """

    @property
    def is_sequential(self) -> bool:
        """Whether nodes run one after the other, so that a sum of times is a bound."""
        return self.bind == "sequential"

    def __post_init__(self) -> None:
        """Check the options that are text, like the passes that take them."""
        _ = tuple(self.mapping_passes())
        if self.dim is not None and self.dim != AUTO_DIM:
            _ = parse_dims(self.dim)
        if self.pad not in (AUTO, UNPADDED):
            _ = parse_extents(self.pad)

    def passes(self, ctx: Context, module: ModuleOp) -> Generator[ModulePass]:
        """Yield the passes of the pipeline for `module`, in order."""
        require_accelerator(self.name, attached_system(module))
        yield DecomposePass(accumulator="input")
        self.check_names(module, attached_system(module))
        func = only_function(module)
        check_expressible(func)
        allowed = self.allow_artifacts
        with about(func), session() as current, current.allowing_artifacts(allowed):
            trial = self.chosen(ctx, module, tuple(self.configs(ctx, module)))
            func.attributes.update(trial.notes)
            yield from trial.passes

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
        """Yield the configs that options leave open, at least one; changes nothing."""
        forms = [
            (pad, stream, form)
            for pad, padded in self.paddings(module)
            for stream, form in self.forms(ctx, padded)
        ]
        streams = {stream for _, stream, _ in forms}
        for pad, stream, form in forms:
            open_dims = self.open_dims(form)
            for dims in open_dims:
                notes: dict[str, Attribute] = {}
                if pad not in (None, self.pad):
                    notes[PAD] = StringAttr(pad)
                if len(streams) > 1:
                    notes[STREAM] = BoolAttr.from_bool(stream)
                if len(open_dims) > 1:
                    notes[SHARDED_DIMS] = StringAttr(format_dims(dims))
                yield ShardingConfig(pad, stream, dims, notes)

    def paddings(self, module: ModuleOp) -> Iterator[tuple[str | None, ModuleOp]]:
        """Yield the paddings that `pad` leaves open, each with the padded module."""
        if self.pad not in (AUTO, UNPADDED):
            yield self.pad, padded_copy(module, self.pad)
            return
        if self.pad == AUTO and self.factors == AUTO:
            system = attached_system(module)
            for extents in map(format_numbers, suitable_extents(module, system)):
                with suppress(PassFailedException):  # a fold cannot read padding
                    yield extents, padded_copy(module, extents)
        yield None, module

    def forms(self, ctx: Context, module: ModuleOp) -> Iterator[tuple[bool, ModuleOp]]:
        """Yield each open choice of `stream`, with the streamed module."""
        if self.stream is not True:
            yield False, module
        if self.stream is not False:
            streamed = module.clone()
            StreamPass().apply(ctx, streamed)
            same = streamed.is_structurally_equivalent(module)
            if self.stream is True or not same:
                yield True, streamed

    def open_dims(self, module: ModuleOp) -> Sequence[Dims]:
        """
        Return the choices of sharded dimensions, none among them, at least one.

        Choices are different: dimensions that no axes divide, or only axes of one
        instance, are not sharded at all.
        """
        if self.dim is not None and self.dim != AUTO_DIM:
            return (parse_dims(self.dim),)
        if self.dim is None and self.is_pinned():
            first = next(iter(candidates(module)), ())
            return (tuple(map(DimAxes, first)),)
        return shardings(self.name, module)

    def chosen(
        self, ctx: Context, module: ModuleOp, configs: Sequence[ShardingConfig]
    ) -> ChosenPasses:
        """
        Return the passes of the only config, or those of the cheapest one.

        Raises PassFailedException if none has a mapping, with the reason of a config
        that neither pads nor streams, if there is one.
        """
        if len(configs) == 1:
            (config,) = configs
            return ChosenPasses(self.passes_for(module, config), config.notes)
        try:
            return self.found(ctx, module, configs).result
        except PassFailedException:
            pad = configs[-1].pad
            written = [
                config for config in configs if config.pad == pad and not config.stream
            ]
            if len(written) in (0, len(configs)):
                raise
            return self.chosen(ctx, module, written)

    def found(
        self, ctx: Context, module: ModuleOp, configs: Sequence[ShardingConfig]
    ) -> Found[ChosenPasses]:
        """
        Return the passes that make the cheapest mapping, and its cost.

        The candidate with the lowest bound is tried first; of equal bounds, the one
        with the fewest operations on each instance. Raises PassFailedException with the
        reason of the last config if none has a mapping.
        """
        groups = [self.group(ctx, module, config) for config in configs]
        candidates, place = best_first(groups, self.goal), function_names(module)
        return cheapest("mapping", place, candidates, self.goal)

    def group(
        self, ctx: Context, module: ModuleOp, config: ShardingConfig
    ) -> Group[ChosenPasses]:
        """Return the candidates of a config, with the `floor` of their bound."""
        goal, copy = self.goal, module.clone()
        system, label = attached_system(copy), config.label
        sharding = self.sharding_passes(copy, system, config)
        try:
            with session() as current, current.trying(f"sharding {label}", None):
                passes = run_settled(sharding, ctx, copy)
            guided = replace(self, model=goal.guide)
            bound = guided.bound(
                copy, system, sharded=True, sequential=self.is_sequential
            )
        except (PassFailedException, CostError) as error:
            failed = Candidate[ChosenPasses](label, partial(refuse, error))
            return Group(label, failed.bound, 0, lambda: (failed,))
        trial = ChosenPasses(passes, config.notes)
        make = partial(self.candidates, ctx, copy, trial, f"{label} strategy=", bound)
        count = operations(next(compute_functions(copy)))
        return Group(label, goal.floor(bound), count, make)

    def candidates(
        self,
        ctx: Context,
        module: ModuleOp,
        sharded: ChosenPasses,
        label: str,
        bound: Cost,
    ) -> list[Candidate[ChosenPasses]]:
        """Return candidates for the fusion strategies; `label` begins their labels."""
        goal, system = self.goal, attached_system(module)
        func = next(compute_functions(module))
        found: list[Candidate[ChosenPasses]] = []
        choices = self.strategies(func)
        bounds = FusionBounds(func, system, goal.guide, self.is_sequential)
        for name, strategy, plan in different_strategies(func, system, choices):
            if isinstance(plan, PassFailedException):
                # Without nests, its bound would seem far below those of the others.
                price, floor = partial(refuse, plan), FREE
            else:
                notes = {**sharded.notes, **dict(self.fusion_notes(strategy, choices))}
                trial = ChosenPasses(sharded.passes, notes)
                price = partial(self.mapped, ctx, module, trial, strategy)
                floor = higher(bound, bounds.of(plan))
            found.append(Candidate(label + name, price, goal.floor(floor)))
        return found

    def strategies(self, func: FuncOp) -> Sequence[Strategy]:
        """Return the open fusion strategies of a sharded function."""
        return open_strategies(func, self.strategy, self.chunks, self.loops)

    def fusion_notes(
        self, strategy: Strategy, choices: Sequence[Strategy]
    ) -> Iterator[tuple[str, Attribute]]:
        """Yield a strategy's choices without an option, as the attributes of `fuse`."""
        if len(choices) > 1:
            yield STRATEGY, StringAttr(strategy.name)
        yield from notes_of(strategy, choices)

    def bound(
        self,
        module: ModuleOp,
        system: SystemOp,
        *,
        sharded: bool = False,
        sequential: bool = False,
    ) -> Cost:
        """Return a lower bound for every mapping of a module, as `function_bound`."""
        found: list[Cost] = []
        for func in compute_functions(module):
            region_dce(func.body)
            bound = function_bound(
                func, system, self.model, sharded=sharded, sequential=sequential
            )
            found.append(cost_of_bound(bound))
        return reduce(higher, found)

    def mapped(
        self, ctx: Context, module: ModuleOp, sharded: ChosenPasses, strategy: Strategy
    ) -> Found[ChosenPasses]:
        """
        Map a copy of a sharded module; return the passes and the cost.

        To save time, only the lowered mapping is priced, not the nodes of the tree, and
        a mapping that costs more than another candidate is not lowered.
        """
        copy = module.clone()
        fuse, tile, *first, annotate, lower = self.mapping_passes(strategy)
        fused = run_settled([fuse], ctx, copy)
        if self.is_sequential and self.factors == AUTO and self.model != "tool":
            (func,) = compute_functions(copy)
            tiled = search(make_template(func, attached_system(copy)), self.goal)
            plan, cost = format_plan(tiled.entries()), cost_of(tiled.estimate)
            if is_above_ceiling(cost, self.goal):
                rest = (TilePass(factors=plan), *first, annotate, lower)
                trial = ChosenPasses((*sharded.passes, *fused, *rest), sharded.notes)
                return Found(trial, cost, total_figures(tiled.estimate).limit)
            func.attributes[PLAN] = StringAttr(plan)
        *done, lower, annotate = run_settled((tile, *first, lower, annotate), ctx, copy)
        passes = (*sharded.passes, *fused, *done, annotate, lower)
        return priced(ChosenPasses(passes, sharded.notes), copy)

    def passes_for(
        self, module: ModuleOp, config: ShardingConfig
    ) -> tuple[ModulePass, ...]:
        """Return the passes after `decompose`."""
        if config.pad is not None:
            module = padded_copy(module, config.pad)
        sharding = self.sharding_passes(module, attached_system(module), config)
        return (*sharding, *self.mapping_passes())

    def sharding_passes(
        self, module: ModuleOp, system: SystemOp, config: ShardingConfig
    ) -> Iterator[ModulePass]:
        """Yield the passes after `decompose` that shard a module over instances."""
        if config.pad is not None:
            yield PadPass(config.pad)
        if config.stream:
            yield StreamPass()
        mesh = MeshOp(system.system_name, system.axes)
        # If all ops are views, nothing is sharded; the error of `fuse` names them.
        shared = assign_axes(self.name, module, mesh, config.dims)
        if parts := partial_axes(mesh, config.dims):
            yield SelectInstancesPass(format_numbers(parts))
        for dim, axes in shared if computes(module) else ():
            yield DistributePass(dim=dim, axes=axes, op=self.op)
            cores = tuple(a for a in axes if a in memory_chain(system).core_axes)
            if self.op is not None and cores:
                yield DistributePass(dim=dim, axes=cores, skip=self.op)
        yield InsertCollectivesPass(self.partials if config.stream else None)
        at = self.at if self.at is not None else memory_chain(system).shared
        yield PlaceCollectivesPass(
            at=at, kind=self.kind, model=self.model, objective=self.objective
        )

    def mapping_passes(self, strategy: Strategy | None = None) -> Iterator[ModulePass]:
        """Yield the passes that map a sharded module, with a strategy."""
        model, objective = self.model, self.objective
        yield FusePass(
            strategy=self.strategy if strategy is None else strategy.name,
            chunks=self.chunks if strategy is None else strategy.chunks,
            loops=self.loops if strategy is None else strategy.loops,
            model=model,
            objective=objective,
        )
        yield TilePass(factors=self.factors, model=model, objective=objective)
        yield BindPass(kind=self.bind, model=model, objective=objective)
        yield AnnotateCostPass(model=self.model)
        yield LowerToCometPass()

    def is_pinned(self) -> bool:
        """Return whether options that depend on the sharding are set."""
        unset = self.op is None and self.at is None
        open_ = self.kind == self.strategy == self.factors == "auto"
        return not (unset and open_)


def priced(result: T, module: ModuleOp) -> Found[T]:
    """Return `result` with the cost that the mapping of a module is annotated with."""
    (mapping,) = (op for op in module.body.block.ops if isinstance(op, MappingOp))
    figures = estimate_of(mapping)
    assert figures is not None
    return Found(result, cost_of(figures), figures.limit)
