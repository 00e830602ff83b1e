"""
Which dimensions `collapse-dims` collapses: those that make a GPU faster.

Kernels are priced with the launches that they may share, as in `fuse`: the best tiles
of a kernel alone may prevent a launch that several kernels share.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import (
    DEFAULT_LAUNCH,
    launch_numbers,
    summarize,
    tile_blocks,
)
from comet.cost.gpu.spent import Resource
from comet.cost.gpu.taxes import PlanTime
from comet.cost.gpu.tiling import price
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.compound import ContractOp, FillOp, IndexOp, View
from comet.dialects.compound.dims import names_of
from comet.dialects.compound.rename import viewed
from comet.dialects.compound.views import sources
from comet.dialects.cost import COST_NAME, estimate_of
from comet.dialects.description import Description
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.node import NodeOp
from comet.passes.analysis.functions import in_copy
from comet.passes.analysis.grid import grid_nodes
from comet.passes.dataflow.launches import (
    Dependences,
    LaunchPrices,
    LaunchTimes,
    TiledNode,
    bound_of_launches,
    extents_around,
    seconds_of_launches,
)
from comet.passes.schedule.collapse_dims.rewrite import collapse
from comet.passes.schedule.collapse_dims.runs import (
    Run,
    collapsed_name,
    collapsible_runs,
    larger_blocks,
    subruns,
)
from comet.passes.schedule.plan_string import BLOCK, PlanEntry
from comet.passes.schedule.tile import chosen_plan, tile_function
from comet.passes.schedule.tile.gpu import KernelTiling, best_tiling
from comet.passes.search import cheapest, timed
from comet.passes.search.goal import LATENCY


@dataclass(frozen=True, eq=False)
class Form:
    """A kernel with some collapsed runs of dimensions, and its best tiles."""

    runs: tuple[Run, ...]
    seconds: float
    """The seconds of a launch of its own."""
    divided: Mapping[Resource, float]
    """The same, by resource."""
    nodes: tuple[TiledNode, ...]
    """The work of its programs, empty if it may not share a launch."""

    @property
    def label(self) -> str:
        """The runs, as candidates of `--explain` are called."""
        return ", ".join(map(" ".join, self.runs)) or "as they are"


def all_runs(func: FuncOp) -> Mapping[str, tuple[Run, ...]]:
    """Return the runs of dimensions that can be collapsed, by kernel."""
    found = {node: collapsible_runs(node) for node in grid_nodes(func)}
    return {node.node_name or "": runs for node, runs in found.items() if runs}


def planned_runs(
    func: FuncOp, plan: Sequence[PlanEntry]
) -> Mapping[str, tuple[Run, ...]]:
    """Return the runs that a plan names as one dimension, by kernel."""
    named = {
        entry.name: {dim.removeprefix(BLOCK) for dim, _ in entry.loops}
        for entry in plan
    }
    found = {
        node.node_name or "": tuple(_planned_in(node, named))
        for node in grid_nodes(func)
    }
    return {name: runs for name, runs in found.items() if runs}


def _planned_in(node: SpatialOp, plan: Mapping[str, set[str]]) -> Iterator[Run]:
    """
    Yield the runs of a kernel that a plan names, from the dimensions of each node.

    Loops that the plan has as they are stay.
    """
    all_names = set[str]().union(*plan.values())
    loops = [op for op in node.walk() if isinstance(op, TemporalOp)]
    taken = {dim for op in loops if op.node_name in plan for dim in op.factors}
    for whole in collapsible_runs(node):
        in_grid = whole[0] in node.factors
        names = plan.get(node.node_name or "", set()) if in_grid else all_names
        for run in subruns(whole):
            if collapsed_name(run) in names and taken.isdisjoint(run):
                taken.update(run)
                yield run


def chosen_runs(func: FuncOp, system: SystemOp) -> Mapping[str, tuple[Run, ...]]:
    """Return the runs that are collapsed, by kernel."""
    nodes = grid_nodes(func)
    merged = set(_merged_later(nodes))
    groups = {node: () if node in merged else _groups(node) for node in nodes}
    if not any(groups.values()):
        return {}
    tilings = _Tilings(system)
    others = {
        node: [form for runs in groups[node] if (form := tilings.form(node, runs))]
        for node in nodes
    }
    prices = LaunchPrices[Form](LaunchTimes(device_of(system)), lambda form: form.nodes)
    needs = _dependences_of(nodes)
    chosen = dict(zip(nodes, _present(func, system), strict=True))
    for stage in needs.stages():
        chosen |= _FormSearch(stage, chosen, others, prices).fastest()
    return {
        node.node_name or "": form.runs for node, form in chosen.items() if form.runs
    }


def _groups(node: SpatialOp) -> tuple[tuple[Run, ...], ...]:
    """Return the sets of runs to try: all that may help together, and each alone."""
    runs = tuple(run for run in collapsible_runs(node) if larger_blocks(node, run))
    return tuple(dict.fromkeys((runs, *((run,) for run in runs)))) if runs else ()


def _merged_later(nodes: Sequence[SpatialOp]) -> Iterator[SpatialOp]:
    """
    Yield pairs of kernels that `merge-partials` may make one launch.

    The first one splits a reduction, and the second one merges the partial results.
    Both must have the same dimensions.
    """
    for reader in nodes:
        if any(isinstance(op, ContractOp) for op in reader.walk()):
            continue
        kept = {dim for value in reader.outs for dim in names_of(value)}
        for value in reader.ins:
            split = viewed(value).owner
            if not isinstance(split, SpatialOp):
                continue
            pairs = zip(names_of(viewed(value)), names_of(value), strict=False)
            if any(old in split.factors and new not in kept for old, new in pairs):
                yield from (reader, split)


ChosenForms: TypeAlias = Mapping[SpatialOp, Form]
"""A form of each kernel of a stage."""


@dataclass(frozen=True)
class _FormSearch:
    """The search for the forms of the kernels of a stage that make it fastest."""

    stage: Dependences[SpatialOp]
    present: ChosenForms
    others: Mapping[SpatialOp, Sequence[Form]]
    prices: LaunchPrices[Form]

    def fastest(self) -> ChosenForms:
        """
        Return a form of each kernel, so that the launches of the stage take least time.

        A coordinate descent: each kernel in turn gets the best of its forms. It starts
        once from the present forms, and once from the forms that are fastest in
        launches of their own.
        """
        present = {node: self.present[node] for node in self.stage.kernels}
        varied = [node for node in self.stage.kernels if self.others[node]]
        if not varied:
            return present
        alone = {
            node: min(self._forms(node), key=lambda form: form.seconds)
            for node in present
        }
        descents = (self._descended(start, varied) for start in (present, alone))
        best = min(descents, key=self._seconds)
        return {**best, **{node: self._recorded(node, best) for node in varied}}

    def _forms(self, node: SpatialOp) -> Sequence[Form]:
        return (self.present[node], *self.others[node])

    def _descended(
        self, forms: ChosenForms, varied: Sequence[SpatialOp]
    ) -> ChosenForms:
        """Return the forms after each varied kernel in turn got its best form."""
        for node in varied:
            tried = ({**forms, node: form} for form in self._forms(node))
            forms = min(tried, key=self._seconds)
        return forms

    def _recorded(self, node: SpatialOp, forms: ChosenForms) -> Form:
        """Return the best form of a kernel, and record the times with the others."""
        candidates = [
            timed(form.label, form, partial(self._time, {**forms, node: form}))
            for form in self._forms(node)
        ]
        return cheapest("dimensions", f"@{node.node_name}", candidates).result

    def _seconds(self, forms: ChosenForms) -> float:
        # Less than some nanoseconds is no reason for other dimensions.
        launched = self.stage.mapped(forms.__getitem__)
        return round(seconds_of_launches(launched, self.prices), 8)

    def _time(self, forms: ChosenForms) -> PlanTime:
        launched = self.stage.mapped(forms.__getitem__)
        return PlanTime(self._seconds(forms), bound_of_launches(launched, self.prices))


def _present(func: FuncOp, system: SystemOp) -> Iterator[Form]:
    """Yield the kernels of a function as they are, in order, with planned tiles."""
    copy, gpu, levels = in_copy(func), device_of(system), gpu_levels(system)
    tile_function(copy, chosen_plan(copy, system, LATENCY), system)
    for node in grid_nodes(copy):
        figures = estimate_of(node)
        assert figures is not None  # tiling a kernel estimates it
        tiled = TiledNode.of(node, levels, gpu)
        seconds = figures.latency * 1e-9 + gpu.times.launch
        numbers = launch_numbers(node.launch or DEFAULT_LAUNCH)
        summary = summarize(node, levels, gpu)
        divided = price(summary, tile_blocks(node), numbers, gpu).spent.divided(0)
        yield Form((), seconds, divided, () if tiled is None else (tiled,))


def _dependences_of(nodes: Sequence[SpatialOp]) -> Dependences[SpatialOp]:
    """Return the dependence graph of the kernels of a function."""
    inside = set(nodes)

    def read_by(node: SpatialOp) -> Iterator[SpatialOp]:
        for value in node.operands:
            for source in sources(value):
                if source.owner in inside:
                    assert isinstance(source.owner, SpatialOp)
                    yield source.owner

    return Dependences(tuple(nodes), {node: frozenset(read_by(node)) for node in nodes})


class _Tilings:
    """The best tiles of kernels on a machine; those of equal ones are found once."""

    def __init__(self, system: SystemOp):
        self._gpu, self._levels = device_of(system), gpu_levels(system)
        self._known: dict[Hashable, Form | None] = {}

    def form(self, node: SpatialOp, runs: tuple[Run, ...]) -> Form | None:
        """Return a kernel with collapsed runs, None if no tiles fit."""
        alone = _alone(node)
        for run in runs:
            collapse(alone, run)
        seen = Description(_is_view)
        seen.operations((alone,))
        key = runs, seen.so_far
        if key not in self._known:
            alone.name_attr = node.name_attr  # which the record of the choice says
            self._known[key] = self._tiled(alone, runs)
        return self._known[key]

    def _tiled(self, node: SpatialOp, runs: tuple[Run, ...]) -> Form | None:
        summary = summarize(node, self._levels, self._gpu)
        if (tiling := best_tiling(node, summary, self._gpu)) is None:
            return None
        numbers = launch_numbers(tiling.launch)
        tiled = TiledNode(summary, tiling.blocks, numbers, extents_around(node))
        return Form(runs, tiling.seconds, tiling.divided, (tiled,))


def fastest_tiling(node: SpatialOp, system: SystemOp) -> KernelTiling | None:
    """Return the fastest tiles of a kernel, None if none fit."""
    gpu = device_of(system)
    return best_tiling(node, summarize(node, gpu_levels(system), gpu), gpu)


def _is_view(op: Operation) -> bool:
    """Whether an op is a view that a kernel reads, or computes in place of loading."""
    return isinstance(op, View | IndexOp | FillOp)


def _alone(node: SpatialOp) -> SpatialOp:
    """Return a copy of a kernel in a block of its own, with the views that it reads."""
    block, copies = Block(), dict[SSAValue, SSAValue]()

    def add(value: SSAValue) -> None:
        if value in copies:
            return
        if not isinstance(op := value.owner, Operation) or not _is_view(op):
            copies[value] = block.insert_arg(value.type, len(block.args))
            return
        for operand in op.operands:
            add(operand)
        block.add_op(op.clone(copies))

    for value in node.operands:
        add(value)
    block.add_op(copy := node.clone(copies))
    copy.attributes.pop(COST_NAME, None)
    for op in copy.walk():
        if isinstance(op, NodeOp):
            op.name_attr = None
    return copy
