"""
`place-collectives`: SPMD level -> SPMD level, with every collective placed.

Needs the SPMD regions of `insert-collectives`; functions without one stay as they are.
A reduction over axes of several memory levels becomes one reduction per level, the
innermost first. The results of reductions below the level `at` go one level up, and
`fuse` makes these reductions combiners of nodes. All other collectives stay explicit
ops, at the level `at`; all-reduces among them get the chosen kind. Rejects a level that
the mesh does not have, and a kind for which a value is too small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import CostError
from comet.cost.from_ir.collective import Pricer, pricer_for
from comet.dialects.arch import find_system
from comet.dialects.collective import (
    AllGatherOp,
    AllReduceOp,
    GatherOp,
    ReduceScatterOp,
    RootReduceOp,
)
from comet.dialects.collective.base import Algorithm, CollectiveOp
from comet.dialects.collective.mesh import lookup_mesh
from comet.dialects.collective.spmd import SpmdOp, region_states
from comet.dialects.collective.state import States
from comet.dialects.compound.dims import extents_of
from comet.dialects.errors import OpError
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass
from comet.passes.pipeline import ChoosingPass
from comet.passes.search.goal import ChoosesByGoal, ModelOption, ObjectiveOption
from comet.passes.sharding.place_collectives.kinds import (
    Implementation,
    Kind,
    cheapest_form,
    form_of,
    form_of_op,
    form_to_root,
    gather_to_root,
    ops_of_form,
    root_suffices,
    write_price,
)
from comet.passes.sharding.place_collectives.levels import (
    LevelStep,
    plan_steps,
    split_by_level,
)
from comet.passes.sharding.place_collectives.separate_names import separate_names


@dataclass(frozen=True)
class PlaceCollectivesPass(ChoosingPass, FunctionPass, ChoosesByGoal):
    """Choose level, kind and algorithm of every collective."""

    name = "place-collectives"

    LEVELS = (IRLevel.ELEMENTARY, IRLevel.SPMD)

    at: str | None = None
    """The level of the explicit collectives; the outermost of the mesh if unset."""
    kind: Literal[Kind, "auto"] = "allreduce"
    """The form of explicit all-reduces; auto asks the cost model."""
    each: str | None = None
    """
    The kind and the level of each collective of a region, in their order, in place of
    `kind` and `at`, as in "allreduce GB; reduce_broadcast OB".
    """
    algorithm: Literal[
        "ring",
        "tree",
        "recursive_doubling",
        "halving_doubling",
        "direct",
        "one_shot",
        "mesh2d",
        "hierarchical",
        "auto",
    ] = "auto"
    """
    How explicit collectives that know this algorithm are carried out; auto asks the
    cost model, and leaves it to the COMET files, which name none.
    """

    model: ModelOption = "paper"

    objective: ObjectiveOption = "latency"

    def __post_init__(self) -> None:
        """Check the text of the kinds and levels."""
        if self.each is not None:
            parse_each(self.each)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        if (system := find_system(module)) is not None:
            self.goal.check(self.name, on_gpu=system.gpu is not None)
        for region in [op for op in function.walk() if isinstance(op, SpmdOp)]:
            place(region, self)

    def settled(self, module: ModuleOp) -> Self:
        """Return the pass with the kind that all collectives have, if it is one."""
        if self.kind != "auto" or self.each is not None:
            return self
        explicit = [
            type(op)
            for func in compute_functions(module)
            for op in func.walk()
            if isinstance(op, CollectiveOp) and op.is_explicit
        ]
        kinds = {KIND_OF[type_] for type_ in explicit if type_ in KIND_OF}
        if len(kinds) > 1 or (GatherOp in explicit and AllGatherOp in explicit):
            return self
        return replace(self, kind=kinds.pop() if kinds else "allreduce")


KIND_OF: Mapping[type[CollectiveOp], Kind] = {
    AllReduceOp: "allreduce",
    ReduceScatterOp: "reduce_scatter_all_gather",
    RootReduceOp: "reduce_broadcast",
    GatherOp: "gather",
}
"""The kind that an explicit collective shows; an all-gather shows none."""


@dataclass(frozen=True)
class Placement:
    """How one explicit collective is carried out."""

    op: CollectiveOp
    form: Implementation
    scatter_dim: str | None = None
    """The dimension to scatter, where there is one that no axis splits."""


def place(region: SpmdOp, options: PlaceCollectivesPass) -> None:
    """Place the collectives of a region."""
    options_of: dict[CollectiveOp, PlaceCollectivesPass] = {}
    for collective, steps, op_options in plan_levels(region, options):
        mesh = lookup_mesh(region, region.mesh)
        for step in split_by_level(collective, steps, mesh):
            options_of[step] = op_options
    for choice in plan_choices(region, options_of):
        apply_choice(choice)
    separate_gathered_dims(region)


def plan_levels(
    region: SpmdOp, options: PlaceCollectivesPass
) -> list[tuple[CollectiveOp, tuple[LevelStep, ...], PlaceCollectivesPass]]:
    """
    Return the steps, by level, of every collective in a region, and its options.

    Raises PassFailedException if no axis of the mesh is at the level `at`, and if
    `each` is about another number of collectives.
    """
    hierarchical = options.algorithm == "hierarchical"
    mesh = lookup_mesh(region, region.mesh)
    ops = [op for op in region.body.block.ops if isinstance(op, CollectiveOp)]
    per_op = [options] * len(ops) if options.each is None else options_of_each(options)
    if len(per_op) != len(ops):
        raise PassFailedException(
            f"place-collectives: 'each' places {len(per_op)} collectives, and the "
            f"region has {len(ops)}; give a kind and a level for each"
        )
    return [
        (op, plan_steps(op, mesh, entry.at, hierarchical=hierarchical), entry)
        for op, entry in zip(ops, per_op, strict=True)
    ]


def parse_each(text: str) -> list[tuple[Kind | Literal["auto"], str]]:
    """Parse the option `each`; raises PassFailedException for another form."""
    kinds: dict[str, Kind | Literal["auto"]] = {kind: kind for kind in get_args(Kind)}
    kinds["auto"] = "auto"
    found: list[tuple[Kind | Literal["auto"], str]] = []
    for entry in text.split(";"):
        words = entry.split()
        if len(words) != 2 or words[0] not in kinds:
            raise PassFailedException(
                f"place-collectives: '{entry.strip()}' in 'each' is not of the form "
                f"KIND LEVEL with one of {', '.join(kinds)}"
            )
        found.append((kinds[words[0]], words[1]))
    return found


def options_of_each(options: PlaceCollectivesPass) -> list[PlaceCollectivesPass]:
    """Return the options of each collective, as if it were the only one."""
    return [
        replace(options, each=None, kind=kind, at=at)
        for kind, at in parse_each(options.each or "")
    ]


def plan_choices(
    region: SpmdOp, options_of: Mapping[CollectiveOp, PlaceCollectivesPass]
) -> list[Placement]:
    """
    Choose form and algorithm of every explicit collective in a region, once placed.

    `options_of` has the options of each. Raises PassFailedException for a kind that
    needs a dimension to scatter where there is none, and for an algorithm that does not
    run there.
    """
    states = region_states(region)
    try:
        return [
            _choice(op, region, states, options_of[op])
            for op in region.body.block.ops
            if isinstance(op, CollectiveOp) and op.is_explicit
        ]
    except CostError as error:
        raise PassFailedException(f"place-collectives: {error}") from error


def _choice(
    op: CollectiveOp, region: SpmdOp, states: States, options: PlaceCollectivesPass
) -> Placement:
    algorithm = None if options.algorithm == "auto" else Algorithm(options.algorithm)
    pricer = pricer_for(op, algorithm, options.model)
    if isinstance(op, AllReduceOp):
        dim = _scatter_dim(op, set(states[op.input].sharded.values()))
        return Placement(op, _reduction(op, dim, options, pricer), dim)
    form = form_of_op(op, pricer)
    if options.kind not in ("gather", "auto") or not isinstance(op, AllGatherOp):
        return Placement(op, form)
    if not root_suffices(region, op):
        return Placement(op, form)
    rooted = form_to_root(op, pricer)
    if options.kind == "gather":
        return Placement(op, rooted)
    return Placement(op, cheapest_form(op, [form, rooted], options.goal))


def _scatter_dim(op: AllReduceOp, split: set[str]) -> str | None:
    """Return the longest dimension not in `split`, if it has an element per rank."""
    free = {dim: n for dim, n in extents_of(op.input).items() if dim not in split}
    longest = max(free, key=lambda dim: free[dim], default=None)
    return longest if longest and free[longest] >= op.group_size else None


def _reduction(
    op: AllReduceOp, dim: str | None, options: PlaceCollectivesPass, pricer: Pricer
) -> Implementation:
    """Return the form of an all-reduce, which may scatter `dim`."""
    kind = options.kind
    if kind == "reduce_scatter_all_gather" and dim is None:
        raise OpError(
            op,
            f"place-collectives: {op.input.type} has no dimension to scatter over "
            f"{op.group_size} instances; use kind=allreduce",
        )
    if kind != "auto":
        return form_of(kind, op.input, op.group_size, pricer)
    kinds: list[Kind] = ["allreduce", "reduce_broadcast"]
    if dim is not None:
        kinds.append("reduce_scatter_all_gather")
    forms = [form_of(kind, op.input, op.group_size, pricer) for kind in kinds]
    return cheapest_form(op, forms, options.goal)


def apply_choice(choice: Placement) -> None:
    """Give a collective its form, and write algorithms and estimates on its ops."""
    op, form = choice.op, choice.form
    ops: list[Operation] = [op]
    if isinstance(op, AllReduceOp) and form.kind != "allreduce":
        assert form.kind is not None
        ops = ops_of_form(op, form.kind, choice.scatter_dim)
    elif isinstance(op, AllGatherOp) and form.kind == "gather":
        ops = [gather_to_root(op)]
    collectives = [each for each in ops if isinstance(each, CollectiveOp)]
    for collective, price in zip(collectives, form.prices, strict=True):
        collective.from_level, collective.to_level = op.from_level, op.to_level
        write_price(collective, price)
    if ops != [op]:
        Rewriter.replace_op(op, ops, ops[-1].results)


def separate_gathered_dims(region: SpmdOp) -> None:
    """
    Give each explicit gather its own name of the dimension, on accelerators.

    The shards of a reduce-scatter keep the name: only the collectives read them.
    """
    system = find_system(region)
    if system is not None and system.gpu is not None:
        return
    for op in region.body.block.ops:
        if isinstance(op, AllGatherOp | GatherOp) and op.is_explicit:
            if not isinstance(op.input.owner, ReduceScatterOp):
                separate_names(region, op)
