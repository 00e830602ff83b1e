"""Search under `tool`, which has no bounds: every plan is priced, as by brute force."""

from functools import cache
from math import inf

import numpy as np
import pytest
from brute_force import least_costs
from covering import EVERY_CASE, one_of
from tile_trees import fused, only_function

from comet.dialects.arch import attached_system
from comet.passes.schedule.tile.enumerate_plans import Enumeration
from comet.passes.schedule.tile.factor_space import FactorSpace, divisors
from comet.passes.schedule.tile.template import (
    Factor,
    Template,
    factors_of,
    make_template,
)
from comet.passes.search import Cost, Goal, Objective, session

OBJECTIVES: tuple[Objective, ...] = ("latency", "energy", "edp")
TREES = (
    ("gemm", "full", (4, 4, 32)),
    ("gemm_softmax", "full", (2, 2, 32)),
    ("gemm_softmax", "partial", (2, 4, 32)),
    ("gemm_softmax", "isolate_contractions", (2, 1, 16)),
)
SPACES = 11 if EVERY_CASE else 2


@cache
def template_of(op: str, strategy: str, sizes: tuple[int, ...]) -> Template:
    module = fused(strategy, op=op, sizes=sizes)
    return make_template(only_function(module), attached_system(module))


def random_space(template: Template, random: np.random.Generator) -> FactorSpace:
    """Return a space in which all but three loops have one small factor."""
    space = FactorSpace.of(template)
    loops = [(key, dim) for key in space.keys for dim in template.loops[key]]
    open_ = {loops[int(index)] for index in random.permutation(len(loops))[:3]}
    fixed: dict[Factor, int] = {
        loop: int(divisors(template.extent[loop])[:2][-1])
        if random.random() < 0.2
        else 1
        for loop in loops
        if loop not in open_
    }
    return space.fixing(fixed)


@one_of(2)
@pytest.mark.parametrize("tree", TREES, ids=lambda tree: "-".join(tree[:2]))
def test_as_good_as_brute_force(tree: tuple[str, str, tuple[int, ...]]):
    random, legal = np.random.default_rng(5), 0
    for _ in range(SPACES):
        space = random_space(template_of(*tree), random)
        least = least_costs(space, "tool", OBJECTIVES)
        for objective, expected in zip(OBJECTIVES, least, strict=True):
            found = Enumeration(space, Goal("tool", objective))
            found.run()
            assert not found.stopped
            assert found.ceiling == expected, objective
            legal += expected < inf
    assert legal


def row_space() -> FactorSpace:
    """Return the loops over the columns of a product of one row, the others fixed."""
    space = FactorSpace.of(template_of("gemm", "full", (1, 128, 1024)))
    loops = [(key, dim) for key in space.keys for dim in space.template.loops[key]]
    return space.fixing({loop: 1 for loop in loops if loop[1] != "N"})


def enumerated(space: FactorSpace, *, allowed: bool) -> Enumeration:
    with session() as current, current.allowing_artifacts(allowed):
        search = Enumeration(space, Goal("tool"))
        search.run()
    return search


def test_artifacts_come_after_all_others():
    """The tool loses reads of the weights of one row."""
    space = row_space()
    preferred, first = (enumerated(space, allowed=each) for each in (False, True))
    assert preferred.best is not None
    assert first.best is not None
    estimate = first.best.result.estimate
    assert estimate.latency < estimate.roofline <= preferred.best.cost.latency
    assert not preferred.best.result.estimate.is_artifact
    assert preferred.evaluated == first.evaluated
    only = enumerated(space.fixing(factors_of(first.best.result.plan)), allowed=False)
    assert only.best is not None  # where there is nothing else
    assert only.best.cost.artifact
    assert only.ceiling == inf


def test_nothing_is_taken_that_is_no_better_than_what_is_known():
    space = row_space()
    search = Enumeration(space, Goal("tool"), ceiling=1.0, best_cost=Cost(1.0))
    search.run()
    assert search.best is None
    assert search.ceiling == 1.0
    assert search.evaluated


def test_what_is_unfinished_has_no_bound():
    space = FactorSpace.of(template_of(*TREES[0]))
    stopped = Enumeration(space, Goal("tool"), patience=20_000)
    stopped.run()
    assert stopped.stopped
    assert stopped.best is not None
    assert stopped.lower_bound == 0
