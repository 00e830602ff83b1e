"""The search for factors: legal, repeatable, no worse than simple plans."""

import numpy as np
import pytest
from semantics import run_passes
from tile_trees import fused, only_function
from xdsl.utils.exceptions import PassFailedException

from comet.cost.accelerator.factors import with_factors
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.legality import check_tool
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.model import price, price_many
from comet.cost.accelerator.problem import Problem
from comet.dialects.arch import attached_system
from comet.passes.annotate_cost.accelerator import lowered_estimate
from comet.passes.schedule.plan_string import format_plan
from comet.passes.schedule.tile.accelerator import (
    divisors,
    factors_of,
    finest,
    neighbours,
    search,
)
from comet.passes.schedule.tile.template import Candidates, Template, make_template

STRATEGIES = ("none", "isolate_contractions", "partial", "full")


def template_of(
    strategy: str = "full", sizes: tuple[int, ...] = (12, 8, 64)
) -> Template:
    module = fused(strategy, sizes=sizes)
    return make_template(only_function(module), attached_system(module))


@pytest.mark.parametrize(
    ("extent", "expected"),
    [(1, (1,)), (7, (1, 7)), (12, (1, 2, 3, 4, 6, 12)), (13, (1, 13))],
)
def test_divisors(extent: int, expected: tuple[int, ...]):
    assert divisors(extent) == expected


def test_many_divisors_are_thinned_out():
    found = divisors(5040)
    assert (found[0], found[-1], len(found)) == (1, 5040, 12)
    assert all(5040 % divisor == 0 for divisor in found)


def test_the_finest_tiles_cut_as_far_out_as_they_can():
    plan = finest(template_of("full"))
    assert factors_of(plan)[("DRAM", None), "M"] == 12
    assert factors_of(plan)[("OB", "contract"), "K"] == 8
    assert factors_of(plan)[("OB", "contract"), "M"] == 1


def test_row_reductions_are_not_cut_outside_of_what_they_feed():
    assert template_of("full").loops["DRAM", None] == ("M",)
    assert template_of("none").loops["DRAM", "contract"] == ("M", "K", "N")


def test_a_neighbour_is_tried_once_and_differs():
    template = template_of("none")
    plan = finest(template)
    columns = neighbours(template, plan)
    tried = np.stack([*columns.values()], axis=1)
    assert len(np.unique(tried, axis=0)) == len(tried)
    changed = (tried != np.array([*factors_of(plan).values()])).sum(axis=1)
    assert set(changed) == {1, 2}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_estimate_is_that_of_the_lowered_tree(strategy: str):
    module = fused(strategy, sizes=(12, 8, 64))
    func, system = only_function(module), attached_system(module)
    choice = search(make_template(func, system))
    tiled = run_passes(module, f'tile{{factors="{format_plan(choice.entries())}"}}')
    own = lowered_estimate(only_function(tiled), system, "paper", absorb=False)
    assert choice.estimate.latency == pytest.approx(own.latency)
    assert choice.estimate.energy == pytest.approx(own.energy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_batches_price_as_single_mappings_do(strategy: str):
    template = template_of(strategy)
    plan = finest(template)
    random = np.random.default_rng(1)
    trials = {f: random.choice(divisors(n), 40) for f, n in factors_of(plan).items()}
    legal = Candidates(template, trials).divide()
    assert legal.any()
    values = {factor: array[legal] for factor, array in trials.items()}
    mappings = Candidates(template, values).mappings(plan)
    prices = price_many(mappings, template.hardware)
    for index, latency in enumerate(prices.latency):
        rows = {
            key: tuple((dim, int(values[key, dim][index])) for dim, _ in rows)
            for key, rows in plan.items()
        }
        single = price(template.problem_for(rows), template.hardware)
        assert float(latency) == pytest.approx(single.latency)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_choice_beats_the_finest_tiles_and_none_at_all(strategy: str):
    template = template_of(strategy)
    chosen = search(template)
    assert chosen.entries()
    for problem in (template.problem_for(finest(template)), template.problem):
        single = price(problem, template.hardware)
        assert chosen.estimate.latency <= single.latency
    assert search(template).entries() == chosen.entries()


@pytest.mark.parametrize("sizes", [(1, 1, 16), (7, 1, 16), (13, 11, 48)])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_size_has_a_mapping(strategy: str, sizes: tuple[int, int, int]):
    assert search(template_of(strategy, sizes)).estimate.latency > 0


def test_large_sizes_fit_unfused():
    template = template_of("none", (4096, 4096, 4096))
    with pytest.raises(PassFailedException, match="level GB needs"):
        search(template_of("full", (4096, 4096, 4096)))
    plan = finest(template)
    single = price(template.problem_for(plan), template.hardware)
    assert single.latency > 0


def test_without_factors_nothing_changes():
    template = template_of()
    same = with_factors(template.problem, {})
    assert price(same, template.hardware) == price(template.problem, template.hardware)
    assert price_many(Mappings(same), template.hardware).latency.ndim == 0


def test_a_search_prices_no_plan_twice(monkeypatch: pytest.MonkeyPatch):
    module = fused("none")
    template = make_template(only_function(module), attached_system(module))
    priced: list[str] = []

    def noted(problem: Problem, hardware: Hardware) -> None:
        priced.append(str(problem))
        check_tool(problem, hardware)

    monkeypatch.setattr("comet.passes.schedule.tile.accelerator.check_tool", noted)
    search(template)
    assert len(priced) == len(set(priced))
