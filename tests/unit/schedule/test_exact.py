"""Exact search: as good as brute force; bounds hold for all completions."""

from collections.abc import Iterator
from functools import cache
from itertools import count, islice
from math import inf
from pathlib import Path

import numpy as np
import plain_yaml
import pytest
import yaml
from accelerators import EDGE
from brute_force import least_costs
from covering import EVERY_CASE, one_of
from tile_trees import fused, only_function

from comet.cost.accelerator.model import price_many
from comet.cost.estimate import ModelName as Model
from comet.dialects.arch import attached_system
from comet.dialects.schedule.attributes import BindingKind
from comet.passes.schedule.bind import bind_bodies, bodies_of, can_bind
from comet.passes.schedule.tile import exact, factor_space
from comet.passes.schedule.tile.accelerator import search
from comet.passes.schedule.tile.exact import LOWER_BOUND, Exact
from comet.passes.schedule.tile.factor_space import (
    EQUAL_ORDERS,
    FactorSpace,
    Parts,
    divisors,
)
from comet.passes.schedule.tile.template import Factor, Template, make_template
from comet.passes.search import Goal, Objective

MODELS: tuple[Model, ...] = ("paper", "ideal")
OBJECTIVES: tuple[Objective, ...] = ("latency", "energy", "edp")
Tree = tuple[str, str, tuple[int, ...]] | tuple[str, str, tuple[int, ...], BindingKind]
TREES: tuple[Tree, ...] = (
    ("gemm", "full", (12, 6, 64)),
    ("gemm_softmax", "full", (6, 4, 64)),
    ("gemm_softmax", "partial", (4, 6, 48)),
    ("gemm_softmax", "isolate_contractions", (6, 2, 32)),
    ("gemm_layernorm", "full", (4, 4, 32)),
    ("gemm_softmax", "none", (4, 2, 32)),
    ("gemm_softmax", "full", (6, 4, 64), BindingKind.PIPELINE),
    ("gemm_softmax", "partial", (4, 6, 48), BindingKind.PIPELINE),
    ("gemm_softmax", "isolate_contractions", (6, 2, 32), BindingKind.PIPELINE),
)
SPACES = 11 if EVERY_CASE else 2
"""Random spaces of a tree, for each model."""
FEW = {
    strategy: SPACES if EVERY_CASE else 1
    for strategy in ("none", "partial", "isolate_contractions")
}
"""The same for strategies whose trees have many loops."""
PLANS = 20 if EVERY_CASE else 6
"""The plans of a part that are priced."""


def with_a_model(first: int, step: int = 1) -> list[tuple[Tree, Model]]:
    """
    Return every `step`-th tree from `first` on with one of the models in turn.

    All of them, with both models, for `EVERY_CASE`.
    """
    return [
        (tree, model)
        for index, tree in enumerate(TREES if EVERY_CASE else TREES[first::step])
        for number, model in enumerate(MODELS)
        if EVERY_CASE or (index + first) % 2 == number
    ]


def part_name(part: Tree | Model) -> str:
    """Return the name of a tree or of a model."""
    if isinstance(part, str):
        return part
    return "-".join((*part[:2], *map(str, part[3:])))


@cache
def template_of(
    op: str,
    strategy: str,
    sizes: tuple[int, ...],
    kind: BindingKind = BindingKind.SEQUENTIAL,
) -> Template:
    """Return a template whose bodies are bound by a kind where they can be."""
    module = fused(strategy, op=op, sizes=sizes)
    func = only_function(module)
    kinds = {n: (kind,) for n, block in bodies_of(func) if can_bind(block, (kind,))}
    bind_bodies(func, kinds, BindingKind.SEQUENTIAL)
    return make_template(func, attached_system(module))


def random_space(template: Template, random: np.random.Generator) -> FactorSpace:
    """Return a space in which all but three loops have random factors."""
    space = FactorSpace.of(template)
    loops = [(key, dim) for key in space.keys for dim in template.loops[key]]
    picked = random.permutation(len(loops))[:3]
    open_ = {loops[int(index)] for index in picked}
    fixed: dict[Factor, int] = {}
    for loop in loops:
        if loop not in open_:
            small = divisors(template.extent[loop])[:2]
            fixed[loop] = int(small[-1] if random.random() < 0.2 else 1)
    return space.fixing(fixed)


@one_of(2)
@pytest.mark.parametrize(("tree", "model"), with_a_model(0, 3), ids=part_name)
def test_as_good_as_brute_force(tree: Tree, model: Model):
    random, legal = np.random.default_rng(7), 0
    for _ in range(FEW.get(tree[1], SPACES - (len(tree) > 3))):
        space = random_space(template_of(*tree), random)
        least = least_costs(space, model, OBJECTIVES)
        for objective, expected in zip(OBJECTIVES, least, strict=True):
            found = Exact(space, Goal(model, objective))
            found.run()
            assert found.ceiling == pytest.approx(expected, rel=1e-12), objective
            assert found.lower_bound <= found.ceiling
            assert (found.best is None) == (expected == inf)
            legal += expected < inf
    assert legal


def plans_in(space: FactorSpace, part: Parts) -> Iterator[Parts]:
    """Yield the plans of one part."""
    if space.is_plan(part):
        yield part
        return
    for child in space.cut(part):
        for index in range(child.count):
            yield from plans_in(space, child.where(np.array([index])))


@one_of(2)
@pytest.mark.parametrize(("tree", "model"), with_a_model(1, 3), ids=part_name)
def test_no_completion_is_below_its_bounds(tree: Tree, model: Model):
    random, template = np.random.default_rng(3), template_of(*tree)
    for _ in range(FEW.get(tree[1], SPACES - 1)):
        space = random_space(template, random)
        part = space.whole
        bounds: list[tuple[float, float]] = []
        while not space.is_plan(part):
            goals = Goal(model, "latency"), Goal(model, "energy")
            least = [float(Exact(space, goal).bounds(part)[0]) for goal in goals]
            bounds.append((least[0], least[1]))
            children = list(space.cut(part))
            if not children:
                break
            child = children[random.integers(len(children))]
            part = child.where(np.array([random.integers(child.count)]))
            for plan in islice(plans_in(space, part), PLANS):
                prices = price_many(space.mappings(plan), template.hardware, model)
                for latency, energy in bounds:
                    assert prices.latency.min() >= latency * (1 - 1e-12)
                    assert prices.energy.min() >= energy * (1 - 1e-12)


def test_a_stall_may_hide_first_reads_that_reuse_saves(tmp_path: Path):
    """
    A core waits for rows, while it reads weights that the root's loop reuses.

    Only the loops of the core are open; its first read of weights, 8192 cycles, is
    saved although the wait hides it.
    """
    fields = plain_yaml.load(EDGE.read_text())
    rows, weights = fields["Hierarchy"][0]["connects"][0]["fills"]
    for slow in (rows, weights["fills"][0]):
        slow["attributes"]["bw"] = 1
    path = tmp_path / "edge.yaml"
    path.write_text(yaml.safe_dump(fields))
    module = fused(op="gemm", sizes=(64, 256, 256), hardware=f'"{path}"')
    template = make_template(only_function(module), attached_system(module))
    fixed = {(key, dim): 1 for key, dims in template.loops.items() for dim in dims}
    dram, shared, _ = template.loops
    space = FactorSpace.of(template).fixing(fixed | {(dram, "M"): 2, (shared, "M"): 32})
    part, bounds = space.whole, list[float]()
    while not space.is_plan(part):
        bounds.append(float(Exact(space, Goal()).bounds(part)[0]))
        (part,) = space.cut(part)
    (price,) = price_many(space.mappings(part), template.hardware, "paper").latency
    assert 0.7 * price < max(bounds) <= price


@one_of(2)
@pytest.mark.parametrize(("tree", "model"), with_a_model(0), ids=part_name)
def test_the_bound_of_a_plan_is_its_price(tree: Tree, model: Model):
    """Nothing is open in it: a bound that is larger, or smaller, is wrong here."""
    template, random = template_of(*tree), np.random.default_rng(5)
    spaces = (random_space(template, random) for _ in range(9))
    found = ((space, plan) for space in spaces for plan in plans_in(space, space.whole))
    space, plan = next(found)
    price = price_many(space.mappings(plan), template.hardware, model)
    costs = price.latency, price.energy
    for objective, cost in zip(OBJECTIVES, costs, strict=False):
        bound = Exact(space, Goal(model, objective)).bounds(plan)
        assert list(bound) == pytest.approx(cost.tolist(), rel=1e-12), objective


def test_what_is_unfinished_has_a_lower_bound():
    space = FactorSpace.of(template_of(*TREES[0]))
    stopped = Exact(space, Goal(), deadline=0.0)
    stopped.run()
    whole = Exact(space, Goal())
    whole.run()
    assert stopped.stopped
    assert stopped.best is None
    assert not whole.stopped
    assert whole.best is not None
    assert 0 < stopped.lower_bound <= whole.ceiling
    assert whole.lower_bound == whole.ceiling


def test_what_is_late_cuts_nothing(monkeypatch: pytest.MonkeyPatch):
    """One cut of a large space may take longer than the whole time limit."""
    space = FactorSpace.of(template_of(*TREES[0]))
    monkeypatch.setattr(FactorSpace, "cut", pytest.fail)
    stopped = Exact(space, Goal(), deadline=0.0)
    stopped.run()
    assert stopped.stopped
    assert stopped.lower_bound == stopped.bounds(space.whole)[0]


def test_patience_is_work_and_not_time(monkeypatch: pytest.MonkeyPatch):
    """A search that does half of the work stops where it does on any machine."""
    space = FactorSpace.of(template_of(*TREES[0]))
    whole = Exact(space, Goal())
    whole.run()
    half = [Exact(space, Goal(), patience=whole.work // 2) for _ in range(2)]
    half[0].run()
    clock = count()  # each look at the clock takes a second
    monkeypatch.setattr(exact, "monotonic", clock.__next__)
    half[1].run()
    first, second = ((one.work, one.evaluated, one.lower_bound) for one in half)
    assert first == second
    for one in half:
        assert one.stopped
        assert one.work < whole.work
        assert 0 < one.lower_bound <= whole.ceiling


def test_a_tolerance_closes_what_is_little_better():
    space = FactorSpace.of(template_of(*TREES[1]))
    exact, near = Exact(space, Goal()), Exact(space, Goal(), tolerance=0.1)
    exact.run()
    near.run()
    assert near.lower_bound <= exact.ceiling <= near.ceiling
    assert near.lower_bound >= near.ceiling * 0.9


def test_no_worse_than_descent():
    for tree in TREES[1:3]:
        template = template_of(*tree)
        exact = Exact(FactorSpace.of(template), Goal())
        exact.run()
        assert exact.ceiling <= search(template).estimate.latency


def test_a_ceiling_that_nothing_is_below_leaves_no_plan():
    space = FactorSpace.of(template_of(*TREES[0]))
    exact = Exact(space, Goal(), ceiling=1.0)
    exact.run()
    assert exact.best is None
    assert exact.lower_bound == 1.0


def test_every_mapping_of_one_node_is_priced_or_pruned_for_a_reason():
    template = template_of(*TREES[0])
    for key in FactorSpace.of(template).keys:
        space = FactorSpace(template, (key,))
        search = Exact(space, Goal())
        search.run()
        assert search.evaluated + search.pruned.total() == space.size, key


def test_what_is_pruned_has_a_reason():
    bounded, tiny = (Exact(FactorSpace.of(template_of(*t)), Goal()) for t in TREES[:2])
    bounded.run()
    assert bounded.pruned[LOWER_BOUND]
    assert bounded.pruned[EQUAL_ORDERS]
    assert not bounded.nothing_fits
    tiny.ceiling = 1.0
    tiny.run()
    assert not tiny.nothing_fits  # it is the bound that closes it


def test_the_size_counts_every_choice():
    space = FactorSpace.of(template_of(*TREES[0]))
    loops = [(key, dim) for key in space.keys for dim in space.template.loops[key]]
    one = space.fixing(dict.fromkeys(loops, 1))
    assert one.size == 6**3  # three keys with three loops each, in any order
    loop, *others = loops
    choices = len(divisors(space.template.extent[loop]))
    fixed = dict.fromkeys(others, 1)
    assert space.fixing(fixed).size == 6**3 * choices
    assert space.size > 10**5


def test_the_size_is_counted_in_blocks(monkeypatch: pytest.MonkeyPatch):
    template = template_of(*TREES[0])
    size = FactorSpace.of(template).size
    monkeypatch.setattr(factor_space, "MANY", 7)
    assert FactorSpace.of(template).size == size
