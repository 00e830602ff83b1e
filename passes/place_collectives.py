"""
`place-collectives`: SPMD level -> SPMD level, with every collective placed.

Needs the SPMD regions of `insert-collectives`; functions without one stay as they are.
A reduction over axes of several memory levels becomes one per level, innermost first.
Those over axes below `at` bring their result one level up, where `fuse` makes them
combiners; all other collectives stay explicit, at `at`. Explicit all-reduces take the
chosen kind. Rejects a level that the mesh lacks, and a kind that a value is too small
for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.cost.estimate import CostError
from comet.dialects.arch import find_system
from comet.dialects.collective import AllReduceOp
from comet.dialects.collective_analysis import (
    States,
    result_states,
    state_of_sharding,
)
from comet.dialects.collective_base import (
    Algorithm,
    AlgorithmAttr,
    CollectiveOp,
    TokenType,
)
from comet.dialects.collective_mesh import MeshOp, lookup_mesh
from comet.dialects.collective_spmd import SpmdOp, YieldOp, sharding_of
from comet.dialects.compound_dims import extents_of
from comet.dialects.cost import annotate
from comet.passes.collective_kinds import (
    Form,
    Kind,
    cheapest_form,
    form_of,
    ops_of_form,
)
from comet.passes.collective_prices import (
    Payload,
    Price,
    Pricer,
    payload_of,
    pricer_for,
)
from comet.passes.levels import IRLevel, functions_at

GPU_LEVEL = "HBM"
"""Where the operands of collectives lie on a mesh that states no levels."""


@dataclass(frozen=True)
class PlaceCollectivesPass(ModulePass):
    """Choose level, kind and algorithm of every collective."""

    name = "place-collectives"

    at: str | None = None
    """The level of the explicit collectives; the outermost of the mesh if unset."""
    kind: Literal["allreduce", "reduce_scatter_all_gather", "gather", "auto"] = (
        "allreduce"
    )
    """What explicit all-reduces become; auto asks the cost model."""
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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Place the collectives of every function that is no reference."""
        for func in functions_at(op, self.name, IRLevel.ELEMENTARY, IRLevel.SPMD):
            for region in tuple(r for r in func.walk() if isinstance(r, SpmdOp)):
                for placement in plan_placements(region, self):
                    apply_placement(placement)


@dataclass(frozen=True)
class Step:
    """One collective over axes of one level."""

    axes: tuple[str, ...]
    from_level: str
    to_level: str

    @property
    def explicit(self) -> bool:
        """Whether the collective stays one, instead of becoming a combiner."""
        return self.from_level == self.to_level


@dataclass(frozen=True)
class Placement:
    """What becomes of one collective."""

    op: CollectiveOp
    steps: tuple[Step, ...]
    """In order; only an all-reduce has more than one."""
    forms: tuple[Form | None, ...]
    """The form of each explicit step; of other collectives the price alone counts."""
    scatter_dim: str | None
    """The dimension to scatter, where there is one that no axis splits."""


def plan_placements(region: SpmdOp, options: PlaceCollectivesPass) -> list[Placement]:
    """
    Choose level, kind and algorithm of every collective in a region.

    Raises PassFailedException for an unknown level, for a kind that needs a dimension
    to scatter where there is none, and for an algorithm that does not run there.
    """
    mesh = lookup_mesh(region, region.mesh.string_value())
    states = _states(region)
    try:
        return [
            _plan(op, mesh, states, options)
            for op in region.body.block.ops
            if isinstance(op, CollectiveOp)
        ]
    except CostError as error:
        raise PassFailedException(f"place-collectives: {error}") from error


def _states(region: SpmdOp) -> States:
    """Return the state of every value in a region that verifies."""
    states: States = {}
    shardings = map(sharding_of, region.in_shardings)
    for argument, sharding in zip(region.body.block.args, shardings, strict=True):
        states[argument] = state_of_sharding(sharding)
    for op in region.body.block.ops:
        if not isinstance(op, YieldOp):
            states |= result_states(op, states)
    return states


def _plan(
    op: CollectiveOp, mesh: MeshOp, states: States, options: PlaceCollectivesPass
) -> Placement:
    algorithm = None if options.algorithm == "auto" else Algorithm(options.algorithm)
    system = find_system(op)
    if not isinstance(op, AllReduceOp):
        at = _level(mesh, options.at)
        step = Step(op.axis_names, at, at)
        pricer = pricer_for(system, step.axes, at, algorithm)
        price = pricer.price(op.name.split(".")[-1], _whole(op))
        return Placement(op, (step,), (Form("allreduce", (price,)),), None)
    steps = plan_steps(op.axis_names, mesh, options.at)
    if algorithm is Algorithm.HIERARCHICAL:
        steps = _merged(steps, op.axis_names)
    ranks = max((mesh.size(s.axes) for s in steps if s.explicit), default=1)
    dim = _scatter_dim(op, ranks, set(states[op.input].sharded.values()))
    forms: list[Form | None] = []
    for step in steps:
        pricer = pricer_for(system, step.axes, step.to_level, algorithm)
        size = mesh.size(step.axes)
        form = _form(op, size, dim, options.kind, pricer) if step.explicit else None
        forms.append(form)
    return Placement(op, steps, tuple(forms), dim)


def _merged(steps: Sequence[Step], axes: Sequence[str]) -> tuple[Step, ...]:
    """Return the steps with the explicit ones as one, over axes of several levels."""
    places = [step for step in steps if step.explicit]
    together = tuple(axis for axis in axes if any(axis in s.axes for s in places))
    rest = [step for step in steps if not step.explicit]
    return (*rest, *(replace(step, axes=together) for step in places[:1]))


def _whole(op: CollectiveOp) -> Payload:
    """Return the larger of what goes into a collective and what comes out."""
    values = [v for v in (op.input, *op.results) if not isinstance(v.type, TokenType)]
    return max(map(payload_of, values), key=lambda payload: payload.elements)


def _level(mesh: MeshOp, at: str | None) -> str:
    """Return the level of the explicit collectives."""
    levels = list(dict.fromkeys(mesh.axis_levels.values())) or [GPU_LEVEL]
    if at is not None and at not in levels:
        raise PassFailedException(
            f"place-collectives: no axis of mesh @{mesh.sym_name.data} lies at level "
            f"{at}; its axes lie at {', '.join(levels)}"
        )
    return levels[0] if at is None else at


def plan_steps(
    axes: Sequence[str], mesh: MeshOp, at: str | None = None
) -> tuple[Step, ...]:
    """
    Split a reduction over `axes` into one per memory level, innermost first.

    Raises PassFailedException if no axis of the mesh lies at the level `at`.
    """
    explicit = _level(mesh, at)
    level_of = mesh.axis_levels or dict.fromkeys(mesh.axis_extents, GPU_LEVEL)
    levels = list(dict.fromkeys(level_of.values()))
    steps: list[Step] = []
    for depth, level in reversed(list(enumerate(levels))):
        if own := tuple(axis for axis in axes if level_of[axis] == level):
            below = depth > levels.index(explicit)
            between = (level, levels[depth - 1]) if below else (explicit, explicit)
            steps.append(Step(own, *between))
    return tuple(steps)


def _scatter_dim(op: AllReduceOp, ranks: int, split: set[str]) -> str | None:
    """Return the longest dimension not in `split`, if it has an element per rank."""
    free = {dim: n for dim, n in extents_of(op.input).items() if dim not in split}
    longest = max(free, key=lambda dim: free[dim], default=None)
    return longest if longest and free[longest] >= ranks else None


def _form(
    op: AllReduceOp,
    ranks: int,
    dim: str | None,
    kind: Kind | Literal["auto"],
    pricer: Pricer,
) -> Form:
    if kind == "reduce_scatter_all_gather" and dim is None:
        raise PassFailedException(
            f"place-collectives: {op.input.type} has no dimension to scatter over "
            f"{ranks} instances; use kind=allreduce"
        )
    if kind != "auto":
        return form_of(kind, op.input, ranks, pricer)
    kinds: list[Kind] = ["allreduce"]
    if dim is not None:
        kinds.append("reduce_scatter_all_gather")
    return cheapest_form([form_of(k, op.input, ranks, pricer) for k in kinds])


def apply_placement(placement: Placement) -> None:
    """Replace a collective by its placed steps."""
    op = placement.op
    if not isinstance(op, AllReduceOp):
        ((step, form),) = zip(placement.steps, placement.forms, strict=True)
        _set_place(op, step, form and form.prices[0])
        return
    value, hint = op.input, op.result.name_hint
    for step, form in zip(placement.steps, placement.forms, strict=True):
        made = AllReduceOp(op.kind.data, value, op.mesh.string_value(), step.axes)
        made.result.name_hint = hint
        Rewriter.insert_op(made, InsertPoint.before(op))
        value = _finish_step(made, step, form, placement.scatter_dim)
    Rewriter.replace_op(op, (), (value,))


def _finish_step(
    op: AllReduceOp, step: Step, form: Form | None, dim: str | None
) -> SSAValue:
    """Place one all-reduce, in the chosen form if it is explicit; return its result."""
    if form is None or form.kind == "allreduce":
        _set_place(op, step, form and form.prices[0])
        return op.result
    made = ops_of_form(op, form.kind, dim)
    Rewriter.insert_op(made, InsertPoint.before(op))
    for new in made:
        new.results[0].name_hint = op.result.name_hint
    collectives = [new for new in made if isinstance(new, CollectiveOp)]
    for new, price in zip(collectives, form.prices, strict=True):
        _set_place(new, step, price)
    Rewriter.erase_op(op)
    return made[-1].results[0]


def _set_place(op: CollectiveOp, step: Step, price: Price | None) -> None:
    op.from_level = StringAttr(step.from_level)
    op.to_level = StringAttr(step.to_level)
    if price is None:
        return
    if price.algorithm is not None:
        op.algorithm = AlgorithmAttr(price.algorithm)
    if price.figures is not None:
        annotate(op, price.figures)
