"""Bounds of structures and their groups: no mapping is below, and they prune."""

from dataclasses import replace
from itertools import product

import pytest
from covering import EVERY_CASE, covering, exhaustive
from programs import graph_text
from semantics import comet_context, parse_module, run_passes

from comet.cost.estimate import ModelName
from comet.passes.explore.constraints import Constraints
from comet.passes.explore.search import Exploration
from comet.passes.explore.space import Group, StructureSpace
from comet.passes.explore.structure import REJECTED
from comet.passes.schedule.tile.exact import Exact
from comet.passes.search import Goal, Objective
from comet.passes.sharding.dim_axes import parse_dims

EDGE = 'attach-hardware{path="samples/hardware/edge.yaml"}'
MODELS: tuple[ModelName, ...] = ("paper", "ideal")
OBJECTIVES: tuple[Objective, ...] = ("latency", "energy")
OPS = {
    "gemm": (4, 4, 16),
    "gemm_softmax": (4, 4, 16),
    "gemm_layernorm": (16, 16, 64),
}
DIMS = ("N", "N:cx,cy;M:kx,ky", "M:cx,cy", "K:kx,ky")


def limits(*dims: str) -> Constraints:
    """Allow these shardings, and none."""
    sharded = (parse_dims(text.split(",")) for text in dims)
    return Constraints(pad="none", dim=((), *sharded))


def few_limits() -> Constraints:
    """Allow a few structures of a program that has many for each sharding."""
    if EVERY_CASE:
        return limits(*DIMS)
    return replace(
        limits(*DIMS[1::2]), strategy=("full", "partial"), kind=("allreduce",)
    )


def space_of(name: str, goal: Goal, given: Constraints) -> StructureSpace:
    module = run_passes(parse_module(graph_text(name, OPS[name])), EDGE)
    return StructureSpace(comet_context(), module, goal, given)


@pytest.mark.parametrize(
    ("name", "model", "objective"),
    covering(product(("gemm", "gemm_softmax"), MODELS, OBJECTIVES), 1),
)
def test_no_mapping_is_below_the_bounds(
    name: str, model: ModelName, objective: Objective
):
    """The best mapping of a structure is above its bound, and above its groups'."""
    groups: list[Group] = []

    def noted(group: Group) -> bool:
        groups.append(group)
        return False

    goal = Goal(model, objective)
    few = limits(*DIMS) if name == "gemm" else few_limits()
    space = space_of(name, goal, few)
    checked = 0
    for structure in space.structures(noted):
        around = [each for each in groups if structure.label.startswith(each.label)]
        assert len(around) >= 2  # the form, and the sharding
        try:
            exact = Exact(structure.factor_space(space.constraints), goal, patience=2e3)
        except REJECTED:
            continue
        exact.run()
        if exact.best is None:
            continue
        least, cost = exact.lower_bound, exact.best.cost
        for bound in (structure.bound, around[0].bound, around[-1].bound):
            assert 0 < bound.latency <= cost.latency * (1 + 1e-9)
            assert 0 < bound.energy <= cost.energy * (1 + 1e-9)
            assert exact.stopped or goal.order(bound)[0] <= least * (1 + 1e-9)
        checked += 1
    assert checked >= 4


@exhaustive
def test_groups_are_closed_by_one_bound():
    """What is left out by groups is not better: the answer without them is equal."""
    dims = (parse_dims(["N:cx", "cy;M:kx", "ky"]), ())
    few = replace(
        limits(), dim=dims, strategy=("full",), kind=("allreduce",), loops=("shared",)
    )

    class Each(Exploration):
        """A search that closes no group."""

        def closes(self, group: Group) -> bool:
            del group
            return False

    found = [
        each(space_of("gemm_layernorm", Goal(), few)) for each in (Exploration, Each)
    ]
    for each in found:
        each.run()
        assert each.proven
    grouped, alone = found
    assert grouped.objective == alone.objective
    assert any(item.structure is None for item in grouped.items)
    assert all(item.structure is not None for item in alone.items)
    assert len(grouped.items) < len(alone.items)
