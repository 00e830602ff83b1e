"""
The structures of the mappings of a program: how it is streamed, sharded, and fused.

A structure is a tile tree without factors. The factors and the loop orders of its
template are still open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import attached_system
from comet.dialects.collective.mesh import MeshOp
from comet.dialects.errors import OpError
from comet.passes.analysis.functions import compute_functions, function_names
from comet.passes.annotate_cost import AnnotateCostPass
from comet.passes.comet.lower_to_comet.build import check_expressible
from comet.passes.comet.lower_to_comet.collectives import check_collectives
from comet.passes.dataflow.outline_mappings.plan import Graph
from comet.passes.explore.choices import Bindings, Placements
from comet.passes.explore.config import ShardingConfig
from comet.passes.explore.constrained import ConstrainedPipeline
from comet.passes.explore.constraints import ALL, Constraints, about_constraint
from comet.passes.explore.forms import Elementary, Form, elementary, forms_of
from comet.passes.explore.quick import (
    AUTO_DIM,
    UNPADDED,
    AcceleratorPipeline,
    priced,
)
from comet.passes.explore.shardings import Shardings
from comet.passes.explore.structure import REJECTED, Structure
from comet.passes.graph.pad import padded_copy
from comet.passes.pipeline import AUTO, run_settled
from comet.passes.schedule.fuse.accelerator.auto import (
    different_strategies,
)
from comet.passes.schedule.fuse.accelerator.bound import FusionBounds
from comet.passes.schedule.plan_string import check_dims
from comet.passes.search import (
    Candidate,
    Cost,
    Found,
    Goal,
    cheapest,
    higher,
    session,
)
from comet.passes.sharding.dim_axes import Dims, assign_axes, dims_in

T = TypeVar("T")


@dataclass(frozen=True)
class Group:
    """The structures that share a form of the program, or also a sharding."""

    label: str
    bound: Cost
    """A lower bound for all their mappings."""


def never(_: Group) -> bool:
    """Return False, which closes no group."""
    return False


@dataclass
class StructureSpace:
    """All structures of a module that constraints leave open."""

    ctx: Context
    module: ModuleOp
    """The module with named ops, its hardware attached."""
    goal: Goal
    constraints: Constraints = field(default_factory=Constraints)
    start: tuple[ModulePass, ...] = ()
    """The passes of a mapping to start from instead, if there are any."""
    allow_artifacts: bool = False
    """Whether mappings count whose latency under `tool` is below their roofline."""
    name: str = "explore"
    """The pass, or the tool, that errors name."""
    rejected: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """The structures without a mapping, and the reasons."""
    contradicted: dict[str, str] = field(default_factory=dict[str, str], init=False)
    """The constraints that leave no structure somewhere, and the reasons."""

    def __post_init__(self) -> None:
        """Raise PassFailedException unless the module is one function, one mapping."""
        if (count := len(list(compute_functions(self.module)))) != 1:
            raise PassFailedException(
                f"{self.name}: the module has {count} functions; search one at a time"
            )
        self._programs = [*elementary(self.ctx, self.module, self.constraints)]
        module = self._programs[0].module
        (func,) = compute_functions(module)
        self._check_names(module)
        graph = Graph(func)
        check_expressible(func)
        if not graph.is_one_mapping:
            raise OpError(
                func,
                f"{self.name}: @{func.sym_name.data} is no single mapping, as it sees "
                "values under other names, in part or joined, or has a dimension with "
                "two extents; compile it with comet-accelerator{search=exact}, which "
                "searches each mapping of a chain",
            )

    def _check_names(self, module: ModuleOp) -> None:
        """Raise ConstraintError for levels, axes, dimensions or extents not there."""
        limits, system = self.constraints, attached_system(module)
        with about_constraint("at"):
            for level in (limits.at or ()) if limits.at != (ALL,) else ():
                replace(self._pipeline, at=level).check_names(module, system)
        with about_constraint("dim"):
            for dims in limits.dim or ():
                whole = [replace(entry, parts=()) for entry in dims]
                mesh = MeshOp(system.system_name, system.axes)
                assign_axes(self.name, module, mesh, whole, uneven=True)
        with about_constraint("pad"):
            if limits.pad not in (AUTO, UNPADDED):
                padded_copy(module, limits.pad)
        with about_constraint("factors"):
            check_dims(limits.factors, sorted(dims_in(module)))

    @cached_property
    def _pipeline(self) -> ConstrainedPipeline:
        limits = self.constraints
        return ConstrainedPipeline(
            dim=AUTO_DIM,
            at=None if limits.at in (None, (ALL,)) else limits.at[0],
            kind=limits.kinds[0],
            loops=AUTO,
            pad=limits.pad,
            partials="reduce",
            model=self.goal.model,
            objective=self.goal.objective,
            allow_artifacts=self.allow_artifacts,
            limits=limits,
        )

    def default(self) -> Found[tuple[ModulePass, ...]] | None:
        """
        Return the passes and the cost of the mapping to start from.

        It is `start`, or that of `comet-accelerator` among the choices that constraints
        leave, or None if they leave none. Raises PassFailedException or CostError if
        there is no mapping.
        """
        if self.start:
            copy, annotate = self.module.clone(), AnnotateCostPass(self.goal.model)
            passes = tuple(
                annotate if isinstance(pass_, AnnotateCostPass) else pass_
                for pass_ in self.start
            )
            return priced(run_settled(passes, self.ctx, copy), copy)
        quick = self._pipeline
        if not self._forms:
            return None
        if self.constraints.loops is None:
            quick = replace(quick, loops="shared")
        programs = reversed(self._programs)  # that of comet-accelerator is the first
        tried = [(each.label, partial(self._quickly, quick, each)) for each in programs]
        with session() as current, current.allowing_artifacts(self.allow_artifacts):
            if len(tried) == 1:
                return tried[0][1]()
            candidates = [Candidate(label.strip(), price) for label, price in tried]
            return cheapest("mesh", function_names(self.module), candidates, self.goal)

    def _quickly(
        self, quick: AcceleratorPipeline, program: Elementary
    ) -> Found[tuple[ModulePass, ...]]:
        """Return what `default` does, for one choice of instances."""
        copy = program.module.clone()
        found = quick.found(self.ctx, copy, [*quick.configs(self.ctx, copy)])
        passes = (*program.passes, *found.result.passes)
        return Found(passes, found.cost, found.limit)

    def bound(self) -> float:
        """Return a lower bound of the objective for all structures."""
        bounds = (self.goal.order(self._bound_of(form))[0] for form in self._forms)
        return min(bounds, default=0.0)

    def structures(
        self, is_closed: Callable[[Group], bool] = never
    ) -> Iterator[Structure]:
        """
        Yield every structure once; add those that passes reject to `rejected`.

        Constraints that leave no structure somewhere are added to `contradicted`.

        The form of the program with the lowest bound comes first. The structures of a
        group for which `is_closed` is true are left out.
        """
        if not self._forms:  # without streaming there is always a form
            self.contradicted["stream"] = "nothing in the program streams"
        bounds = [self._bound_of(form) for form in self._forms]
        forms = zip(bounds, self._forms, strict=True)
        shardings = Shardings(self.constraints, self._pipeline)
        ordered = sorted(forms, key=lambda item: self.goal.order(item[0])[0])
        for bound, form in ordered:
            if not is_closed(Group(form.label, bound)):
                for dims in shardings.of(form.module):
                    yield from self._sharded(form, dims, is_closed)

    def _bound_of(self, form: Form) -> Cost:
        copy = form.module.clone()
        return self._pipeline.bound(copy, attached_system(copy))

    @cached_property
    def _forms(self) -> tuple[Form, ...]:
        """The forms of the module that are open."""
        return tuple(
            form
            for program in self._programs
            for form in forms_of(program, self.ctx, self._pipeline)
        )

    def _sharded(
        self,
        form: Form,
        dims: Dims,
        is_closed: Callable[[Group], bool],
    ) -> Iterator[Structure]:
        """
        Yield the structures of a sharding: kinds of collectives, then strategies.

        `form` is padded, so the sharding divides its extents.
        """
        config = ShardingConfig(form.pad, form.stream, dims, {})
        sharding = form.program.label + config.label
        module, system = form.module, attached_system(form.module)
        copy, seen = form.program.module.clone(), list[ModuleOp]()
        try:
            *after, _ = self._pipeline.sharding_passes(module, system, config)
            passes = (*form.program.passes, *run_settled(after, self.ctx, copy))
        except REJECTED as error:
            self.rejected[sharding] = str(error)
            return
        for text, chosen in Placements(self.constraints, self.goal).options(copy):
            label, placed = sharding + text, copy.clone()
            try:
                last = run_settled(chosen, self.ctx, placed)
                if not any(map(placed.is_structurally_equivalent, seen)):
                    seen.append(placed.clone())
                    check_collectives(placed)
                    yield from self._fused(label, placed, (*passes, *last), is_closed)
            except REJECTED as error:
                self.rejected[label] = str(error)

    def _fused(
        self,
        label: str,
        copy: ModuleOp,
        passes: tuple[ModulePass, ...],
        is_closed: Callable[[Group], bool],
    ) -> Iterator[Structure]:
        """Yield the structures of a sharded module, one for each strategy."""
        system = attached_system(copy)
        sequential = Bindings(self.constraints).is_sequential
        bound = self._pipeline.bound(copy, system, sharded=True, sequential=sequential)
        if is_closed(Group(label, bound)):
            return
        (func,) = compute_functions(copy)
        if not (strategies := self._pipeline.strategies(func)):
            self.contradicted.setdefault(
                "chunks", f"nothing in {label} folds chunks, so none come from the root"
            )
        bounds = FusionBounds(func, system, self.goal.model, sequential)
        for name, strategy, plan in different_strategies(func, system, strategies):
            full = f"{label} strategy={name}"
            if isinstance(plan, PassFailedException):
                self.rejected[full] = str(plan)
                continue
            floor = higher(bound, bounds.of(plan))
            structure = Structure(full, copy, passes, strategy, floor)
            yield from self._bound(structure)

    def _bound(self, structure: Structure) -> Iterator[Structure]:
        """Yield a structure with each choice of bindings."""
        choice = Bindings(self.constraints)
        if choice.is_sequential:
            yield structure
            return
        fused = structure.tree()
        options = choice.options(fused)
        if (first := next(options, None)) is None:
            self.contradicted.setdefault(
                "bindings", f"none is legal for a node of {structure.label}"
            )
            return
        for text, after in chain((first,), options):
            label = structure.label + text
            yield replace(structure, label=label, after=after, fused=fused)
