"""The `triton-distributed` pipeline: named ops to the Triton kernels of some GPUs."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Self

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from comet.cost.from_ir.gpus import device_of
from comet.cost.gpu.taxes import PlanTime
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.schedule import SpatialOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.hardware_kind import require_gpu
from comet.passes.analysis.levels import ORDER, IRLevel
from comet.passes.annotate_cost import AnnotateCostPass
from comet.passes.dataflow.bsp_to_dataflow import BspToDataflowPass
from comet.passes.dataflow.coalesce_loops import CoalesceLoopsPass
from comet.passes.dataflow.connect_programs import ConnectProgramsPass
from comet.passes.dataflow.lower_channels import LowerChannelsPass
from comet.passes.dataflow.merge_launches import MergeLaunchesPass
from comet.passes.dataflow.merge_partials import MergePartialsPass
from comet.passes.dataflow.outline_kernels import OutlineKernelsPass
from comet.passes.dataflow.persist_programs import PersistProgramsPass
from comet.passes.dataflow.place_waits import PlaceWaitsPass
from comet.passes.dataflow.share_tiles import ShareTilesPass
from comet.passes.dataflow.verify_sync import VerifySyncPass
from comet.passes.graph.decompose import DecomposePass
from comet.passes.graph.group_sums import GroupSumsPass
from comet.passes.graph.lower_views import LowerViewsPass
from comet.passes.graph.sink_renames import SinkRenamesPass
from comet.passes.graph.sink_scales import SinkScalesPass
from comet.passes.graph.split.choose import by_priority, choose_splits
from comet.passes.graph.stream import StreamPass
from comet.passes.graph.use_exp2 import UseExp2Pass
from comet.passes.graph.use_ge import UseGePass, plan_comparisons
from comet.passes.graph.use_reciprocals import UseReciprocalsPass
from comet.passes.pipeline import AUTO
from comet.passes.pipelines.triton_distributed.best_plans import (
    best_fusion,
    best_group,
    best_reductions,
    best_shardings,
    best_splits,
    time_of,
)
from comet.passes.pipelines.triton_distributed.options import (
    TritonOptions,
    parse_splits,
)
from comet.passes.pipelines.triton_distributed.over_ranks import (
    check_groups,
    distribute_over_programs,
    distribute_over_ranks,
    group_sizes,
)
from comet.passes.pipelines.triton_distributed.start import (
    NAME,
    check_elements,
    check_single,
    plan_start,
)
from comet.passes.schedule.collapse_dims import CollapseDimsPass
from comet.passes.schedule.fuse import FusePass
from comet.passes.schedule.hoist_copies import HoistCopiesPass
from comet.passes.schedule.materialize_copies import MaterializeCopiesPass
from comet.passes.schedule.order_programs import OrderProgramsPass
from comet.passes.schedule.split_epilogues import SplitEpiloguesPass
from comet.passes.schedule.tile import TilePass
from comet.passes.schedule.unmask_loops import UnmaskLoopsPass
from comet.passes.search.goal import Goal
from comet.passes.sharding.add_ctas import AddCtasPass
from comet.passes.sharding.dim_axes import check_dims
from comet.passes.sharding.insert_collectives import InsertCollectivesPass
from comet.passes.sharding.lower_reductions import LowerReductionsPass
from comet.passes.sharding.merge_collectives import MergeCollectivesPass
from comet.passes.sharding.place_collectives import PlaceCollectivesPass
from comet.passes.sharding.propagate_shardings import PropagateShardingsPass
from comet.passes.sharding.select_ranks import SelectRanksPass
from comet.passes.triton.bound_loops import BoundLoopsPass
from comet.passes.triton.deallocate_buffers import DeallocateBuffersPass
from comet.passes.triton.deduplicate_kernels import DeduplicateKernelsPass
from comet.passes.triton.lower_to_triton import LowerToTritonPass
from comet.passes.triton.map_grid import MapGridPass
from comet.passes.triton.mask_copies import MaskCopiesPass
from comet.passes.triton.order_operands import OrderOperandsPass
from comet.passes.triton.pad_blocks import PadBlocksPass
from comet.passes.triton.scale_maxima import ScaleMaximaPass
from comet.passes.triton.specialize_tiles import SpecializeTilesPass
from comet.passes.triton.specialize_warps import SPECIALIZED, SpecializeWarpsPass
from comet.passes.triton.stage_stores import StageStoresPass
from comet.passes.triton.use_descriptors import UseDescriptorsPass


@dataclass(frozen=True)
class TritonDistributedPass(TritonOptions):
    """
    Compile named compound ops to the kernels of one GPU, or of several.

    Before: named or elementary ops, with the hardware attached; functions at a lower
    level start there. After: the `tl` dialect and a launch plan, ready for `-t triton`,
    or with `to=dataflow` the `dataflow` dialect. Each of its passes can be
    run alone.
    """

    name = NAME

    def __post_init__(self) -> None:
        """Check the options, as the passes that take them do."""
        super().__post_init__()
        _ = (*self._to_kernels(IRLevel.ELEMENTARY), *self._to_channels())

    def passes(self, ctx: Context, module: ModuleOp) -> Generator[ModulePass]:
        """
        Yield the passes of the pipeline for `module`, in order.

        Raises PassFailedException if its functions are written for other ranks.
        """
        require_gpu(self.name, attached_system(module))
        Goal(objective=self.objective).check(self.name, on_gpu=True)
        if self.ctas == AUTO:
            best = self._in_groups(self._best_ctas(ctx, module))
            yield from best.passes(ctx, module)
            return
        level, is_sharded = plan_start(module, self.ranks)
        if self.to == "tl":
            check_single(module)
            check_elements(module)
        if elementary := level in (IRLevel.GRAPH, IRLevel.ELEMENTARY):
            yield from self._to_shards(ctx, module, is_sharded)
        elif level is IRLevel.SPMD:
            yield from self._to_streams()
        then: list[ModulePass] = []
        if self.instances > 1 and ORDER.index(level) <= ORDER.index(IRLevel.SPMD):
            then += self._to_exchanges(module, level)
        then += self._to_kernels(level)
        if elementary and self.group == 1:
            yield from self._split(ctx, module, then)
        for index, pass_ in enumerate(then):
            yield self._best(ctx, module, pass_, then[index + 1 :])
        if self.instances > 1:
            yield from self._to_channels()
        if level is IRLevel.DATAFLOW and self.instances == 1:
            yield VerifySyncPass()
        yield from self.to_target(module)

    def _best_ctas(self, ctx: Context, module: ModuleOp) -> int:
        """Return the number of programs in a group with the fastest launch plan."""

        def time(ctas: int) -> PlanTime:
            copy = module.clone()
            tried = self._in_groups(ctas)
            return time_of(ctx, copy, tried.passes(ctx, copy), tried.after_fusion)

        named = self.dim is not None
        sizes = (1, *group_sizes(ctx, module, self.dims, self.ranks, named=named))
        return best_group(module, sizes, time)

    def _in_groups(self, ctas: int) -> Self:
        """The pipeline with groups of `ctas` programs; 1 for no groups."""
        dim = None if ctas == self.ranks == 1 else self.dim
        return replace(self, ctas=ctas, dim=dim)

    def _best(
        self,
        ctx: Context,
        module: ModuleOp,
        pass_: ModulePass,
        rest: Sequence[ModulePass],
    ) -> ModulePass:
        """Return the pass with the fastest launch plan; on one rank the pass itself."""
        several = self.ranks > 1 and self.group == 1
        if isinstance(pass_, PlaceCollectivesPass) and several and self.kind == AUTO:
            time = partial(self._sketch._time, ctx, module, rest)
            return best_reductions(module, pass_, time)
        free = self.strategy == self.between == self.kernels == AUTO
        if isinstance(pass_, FusePass) and several and free:
            time = partial(self._sketch._time, ctx, module, rest)
            return best_fusion(module, pass_, time)
        return pass_

    @property
    def _sketch(self) -> Self:
        """The pipeline without a search for tiles: launch plans to compare quickly."""
        return replace(self, tiles="kept") if self.tiles is None else self

    @property
    def _by_bsp(self) -> Self:
        """The same with barriers, for comparisons of the kernels between exchanges."""
        if self.pattern != AUTO:
            return self
        free = dict.fromkeys(("blocks", "persistent", "tiles", "sources"))
        return replace(self, pattern="bsp", inputs="copied", **free)

    @property
    def after_fusion(self) -> Self:
        """The options that say which passes follow `fuse`; others are as by default."""
        return replace(self, dim=None, strategy=AUTO)

    def _time(
        self, ctx: Context, module: ModuleOp, then: Sequence[ModulePass], it: ModulePass
    ) -> PlanTime:
        """Return the time of the launch plan that the passes `it` and `then` make."""
        return self._time_of_plan(ctx, module, (it, *then))

    def _time_of_plan(
        self, ctx: Context, module: ModuleOp, passes: Iterable[ModulePass]
    ) -> PlanTime:
        """Return the time of the launch plan of several ranks that `passes` make."""
        copy = module.clone()
        rest = chain(passes, self._to_channels(), self.to_target(copy))
        return time_of(ctx, copy, rest, self.after_fusion)

    def _to_shards(
        self, ctx: Context, module: ModuleOp, is_sharded: bool
    ) -> Iterator[ModulePass]:
        """Yield the passes to elementary ops with shardings over ranks and programs."""
        if self.ranks > 1 and self.group > 1:
            check_groups(module)
        if self.instances > 1 or is_sharded:
            yield SelectRanksPass(self.ranks)
        yield from self._to_elementary(module)
        named = () if self.dim in (None, (AUTO,)) else self.dims
        check_dims(self.name, module, named)
        if self.group > 1:
            if is_sharded:
                yield PropagateShardingsPass()
            yield AddCtasPass(self.group)
            yield from distribute_over_programs(ctx, module, self.dims, self.ranks)
        elif self.chooses_shardings(stated=is_sharded):
            yield best_shardings(module, partial(self._time_in_shards, ctx))
        elif is_sharded:
            yield PropagateShardingsPass()
        elif self.ranks > 1:
            yield from distribute_over_ranks(module, self.dims)

    def _time_in_shards(self, ctx: Context, copy: ModuleOp) -> PlanTime:
        """Compile a copy of a module with shardings; return its launch plan's time."""
        strategy = "priority" if self.strategy == AUTO else self.strategy
        tried = replace(self._sketch, dim=None, strategy=strategy)
        return time_of(ctx, copy, tried.passes(ctx, copy), tried.after_fusion)

    def _to_elementary(self, module: ModuleOp) -> Iterator[ModulePass]:
        """Yield the passes that lower the ops of `module` to elementary ops."""
        yield DecomposePass(accumulator="f32")
        if any(any(plan_comparisons(f)) for f in compute_functions(module)):
            yield UseGePass()
        yield LowerViewsPass()
        yield from self._to_streams()
        if self.scales == "all" or (self.scales == "auto" and self.instances == 1):
            yield SinkScalesPass(self.scales)

    def _to_streams(self) -> Iterator[ModulePass]:
        """Yield the passes that make folds of statistics, also in a written region."""
        yield SinkRenamesPass()
        if self.stream:
            yield StreamPass(counts=self.group == 1)

    def _split(
        self, ctx: Context, module: ModuleOp, then: Sequence[ModulePass]
    ) -> Iterable[ModulePass]:
        """
        Return the passes that split dimensions over programs, if there are any.

        `then` lowers the elementary ops of `module` to kernels.
        """
        if self.split == "none":
            return ()
        if self.split != "auto":
            return parse_splits(self.split)
        fuse = next(i for i, each in enumerate(then) if isinstance(each, FusePass))
        kernels, plans = then[: fuse + 1], then[fuse + 1 :]
        if self.instances == 1:
            return choose_splits(module, 1, kernels, plans)
        tried = self._by_bsp
        to_plans = (*plans, *tried._to_channels())
        splits = choose_splits(module, self.ranks, kernels, to_plans)
        rest = by_priority(then)
        return best_splits(
            module, splits, lambda s: tried._time_of_plan(ctx, module, (*s, *rest))
        )

    def _to_exchanges(self, module: ModuleOp, level: IRLevel) -> Iterator[ModulePass]:
        """Yield the passes to a region of local ops and collectives that move data."""
        shared = gpu_levels(attached_system(module)).shared
        if level is not IRLevel.SPMD:
            yield InsertCollectivesPass()
        yield MergeCollectivesPass()
        kind = "allreduce" if self.kind == AUTO else self.kind
        yield PlaceCollectivesPass(shared if self.group > 1 else None, kind)
        yield LowerReductionsPass(self.terms)

    def _to_kernels(self, level: IRLevel) -> Iterator[ModulePass]:
        """Yield the passes to a launch plan of tiled kernels."""
        if level is IRLevel.DATAFLOW:
            return
        if level is not IRLevel.SCHEDULE:
            yield LowerViewsPass()
            if self.exp != "exp":
                yield UseExp2Pass(self.exp)
            if self.reciprocals:
                yield UseReciprocalsPass()
            yield GroupSumsPass()
            yield FusePass(
                strategy=self.strategy,
                between=self.between,
                kernels=self.kernels,
                narrow=self.narrow,
                launches=self.launches,
                specialize=self.may_specialize,
            )
            if self.instances == 1:
                given = None if self.factors == AUTO else self.factors
                yield CollapseDimsPass(self.collapse, given)
        yield TilePass(factors=self.factors)
        if self.may_specialize:
            tiles = "auto" if self.factors == AUTO else "kept"
            yield SpecializeTilesPass("all" if self.specialize is True else AUTO, tiles)
        yield OutlineKernelsPass()
        if self.ctas == 1:
            if self.merge != "launch":
                yield MergePartialsPass(self.merge)
            yield MergeLaunchesPass(self.launches)

    def _to_channels(self) -> Iterator[ModulePass]:
        """Yield the passes that connect ranks, or programs of a group, by channels."""
        if self.group > 1:
            yield ConnectProgramsPass()
        else:
            free = self.pattern == self.factors == AUTO
            chosen = {None: AUTO if free else None, "kept": None}
            yield BspToDataflowPass(
                self.pattern,
                self.blocks,
                self.persistent,
                chosen.get(self.tiles, self.tiles),
                self.inputs,
                self.sources,
            )
        yield LowerChannelsPass()

    def _may_share(self, module: ModuleOp) -> bool:
        """Whether programs may have equal runs of the tiles of sequences."""
        if self.ctas != 1 or self.merge == "launch":
            return False
        lengths = device_of(attached_system(module)).mean_length
        return self.share != "none" if self.share != AUTO else lengths < 1

    def to_target(self, module: ModuleOp) -> Iterator[ModulePass]:
        """Yield the passes that price, verify and lower a launch plan to Triton."""
        specialized = any(
            isinstance(op, SpatialOp) and op.launch is not None and op.launch.specialize
            for op in module.walk()
        )
        if self._may_share(module):
            yield ShareTilesPass(self.share)
        yield OrderProgramsPass(self.order)
        if self.unmask != "none" and self.specialize is not True:
            yield UnmaskLoopsPass(self.unmask)
        if self.persist != "none" and (specialized or self.persist != SPECIALIZED):
            yield PersistProgramsPass(self.persist)
        if self.stores != "none":
            yield StageStoresPass(self.stores)
        yield CoalesceLoopsPass()
        yield AnnotateCostPass()
        if self.to == "tl":
            yield SplitEpiloguesPass()
            yield MaterializeCopiesPass()
            yield HoistCopiesPass()
            if self.ranks > 1:
                yield PlaceWaitsPass()
        if self.ranks > 1 or self.ctas != 1 or self.merge != "launch":
            yield VerifySyncPass()
        if self.to == "tl":
            yield from self._to_triton(specialized)

    def _to_triton(self, specialized: bool) -> Iterator[ModulePass]:
        """Yield the passes from verified kernels to `tl`; some may be `specialized`."""
        yield BoundLoopsPass()
        if self.maxima:
            yield ScaleMaximaPass()
        yield OrderOperandsPass()
        yield PadBlocksPass()
        yield MapGridPass()
        yield MaskCopiesPass()
        if self.copies == "descriptors":
            yield UseDescriptorsPass()
        elif specialized or self.stores != "none":
            yield UseDescriptorsPass(SPECIALIZED)
        if self.specialize is True:
            yield SpecializeWarpsPass()
        elif specialized:
            yield SpecializeWarpsPass(SPECIALIZED)
        yield LowerToTritonPass()
        yield DeduplicateKernelsPass()
        yield DeallocateBuffersPass()
