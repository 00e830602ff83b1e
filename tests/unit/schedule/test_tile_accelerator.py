"""The search for factors: legal, repeatable, no worse than simple plans."""

from collections.abc import Callable
from dataclasses import astuple
from functools import cache, partial

import numpy as np
import pytest
from accelerators import attached
from covering import EVERY_CASE, exhaustive, one_of
from programs import graph_text
from semantics import assert_same_meaning, parse_module, run_passes
from tile_trees import fused, only_function
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException, VerifyException

from comet.cost.accelerator.factors import with_factors
from comet.cost.accelerator.flow import TileExtents
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.legality import check_factors
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.model import (
    Prices,
    is_legal,
    price,
    price_many,
    room_many,
)
from comet.cost.accelerator.problem import Problem
from comet.cost.estimate import ModelName
from comet.cost.from_ir.mapping import estimate_module
from comet.dialects.arch import attached_system
from comet.dialects.schedule.analysis import assign_combiners
from comet.dialects.schedule.attributes import Combiner, LoopAttr
from comet.passes.annotate_cost.accelerator import lowered_copy
from comet.passes.schedule.plan_string import cuttable, format_plan
from comet.passes.schedule.retile import set_loops
from comet.passes.schedule.tile.accelerator import TilePlan, TileSearch, search
from comet.passes.schedule.tile.candidates import Candidates
from comet.passes.schedule.tile.finest import finest
from comet.passes.schedule.tile.formulas import Formulas
from comet.passes.schedule.tile.moves import neighbours, some_divisors
from comet.passes.schedule.tile.template import (
    Factor,
    Key,
    Template,
    factors_of,
    make_template,
    select,
)
from comet.passes.search import LATENCY

STRATEGIES = ("none", "isolate_contractions", "partial", "full")
SMALL = ((1, 1, 16), (7, 1, 16), (13, 11, 48), (1, 1, 16))
MODELS: tuple[ModelName, ...] = ("paper", "ideal")


@cache
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
    assert some_divisors(extent) == expected


def test_many_divisors_are_thinned_out():
    found = some_divisors(5040)
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


@cache
def searched(strategy: str) -> TilePlan:
    """Return the plan of the search, which other tests share."""
    return search(template_of(strategy))


def chain_template(strategy: str, count: int = 5) -> Template:
    """Return the tile tree of `count` products, each normalized, of the one before."""
    left, right, scale = "tensor<8x8xf16>", "tensor<8x8xf16>", "tensor<8xf16>"
    types = f"({left}, {right}, {scale}) -> {left}"
    args = [f"%b{i}: {right}, %g{i}: {scale}" for i in range(count)]
    ops = [
        f"%y{i + 1} = compound.gemm_rmsnorm %y{i}, %b{i}, %g{i} epsilon 1.0 : {types}"
        for i in range(count)
    ]
    lines = (
        f"func.func @f(%y0: {left}, {', '.join(args)}) -> {left} {{",
        *ops,
        f"func.return %y{count} : {left}\n}}",
    )
    module = run_passes(
        parse_module("\n".join(lines)),
        'attach-hardware{path="samples/hardware/edge.yaml"},'
        f"decompose{{accumulator=input}},fuse{{strategy={strategy}}}",
    )
    return make_template(only_function(module), attached_system(module))


def test_loops_of_equal_parts_change_together():
    template = chain_template("full")
    contract = ("OB", "contract")
    leaders = {dim: template.leaders[contract, dim][1] for dim in ("M", "K", "N", "N4")}
    assert leaders == {dim: dim for dim in leaders}
    assert {template.leaders[contract, dim][1] for dim in ("N1", "N2", "N3")} == {"N"}
    columns = neighbours(template, finest(template))
    assert (columns[contract, "N"] == columns[contract, "N2"]).all()
    assert (columns[contract, "N"] != columns[contract, "N4"]).any()


@exhaustive
def test_equal_nests_have_equal_factors():
    template = chain_template("isolate_contractions")
    assert search(template).entries()
    contract, maps = ("OB", "5/contract"), ("OB", "6/map")
    assert template.leaders[contract, "N1"] == (("OB", "1/contract"), "K")
    assert template.leaders[contract, "N2"] == (("OB", "1/contract"), "N")
    assert template.leaders[maps, "N2"] == (("OB", "2/map"), "N")


def test_a_program_without_equal_parts_has_no_loops_that_change_together():
    for strategy in STRATEGIES:
        leaders = template_of(strategy).leaders
        assert all(factor == leader for factor, leader in leaders.items())


@one_of(2)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_loops_of_a_key_are_those_that_the_whole_tree_allows(strategy: str):
    template = chain_template(strategy, 3)
    legal: dict[Key, dict[str, bool]] = {}
    for node, key in template.keys.items():
        for dim in cuttable(node):
            set_loops(node, (LoopAttr(dim, 1),))
            try:
                assign_combiners(node.outermost)
                allowed = Combiner.FOLD not in node.combiners
            except VerifyException:
                allowed = False
            set_loops(node, ())
            known = legal.setdefault(key, {})
            known[dim] = known.get(dim, True) and allowed
    expected = {
        key: tuple(d for d, a in dims.items() if a) for key, dims in legal.items()
    }
    assert template.loops == expected


@pytest.mark.parametrize("strategy", STRATEGIES if EVERY_CASE else ("full",))
def test_the_estimate_is_that_of_the_lowered_tree(strategy: str):
    module = fused(strategy, sizes=(12, 8, 64))
    system, choice = attached_system(module), searched(strategy)
    tiled = run_passes(module, f'tile{{factors="{format_plan(choice.entries())}"}}')
    own = estimate_module(
        lowered_copy(only_function(tiled), system, absorb=False), "paper"
    )
    assert choice.estimate.latency == pytest.approx(own.latency)
    assert choice.estimate.energy == pytest.approx(own.energy)


SEPARATE = ("partial loops=separate", "full loops=separate")[0 if EVERY_CASE else 1 :]
STREAMED = f"""{attached(16)},decompose{{accumulator=input}},stream,
distribute{{dim=M axes=cx,cy,kx,ky}},insert-collectives,place-collectives,
fuse{{strategy=full}}""".replace("\n", "")
TREES: dict[str, Callable[[], ModuleOp]] = {
    "gemm": lambda: fused("full", op="gemm", sizes=(12, 8, 64)),
    **{
        each: partial(fused, each, sizes=(12, 8, 64))
        for each in (*STRATEGIES, *SEPARATE)
    },
    "streamed": lambda: run_passes(
        parse_module(graph_text("gemm_softmax", (32, 8, 12))), STREAMED
    ),
}


PLANS = 4 if EVERY_CASE else 1
"""The random plans of a tree that are lowered."""


@one_of(4)
@pytest.mark.parametrize("tree", TREES)
def test_any_plan_costs_what_the_lowered_tree_does(tree: str):
    """Also where partial sums are read back, and loops repeat ops without them."""
    module = TREES[tree]()
    system = attached_system(module)
    template = make_template(only_function(module), system)
    random = np.random.default_rng(3)
    plan = {
        key: tuple((dim, 1) for dim in random.permutation(dims))
        for key, dims in template.loops.items()
    }
    values = {
        f: random.choice(some_divisors(template.extent[f]), 4000)
        for f in factors_of(plan)
    }
    every = Candidates(template, values)
    legal = every.factors_divide() & every.tiles_are_matrices() & every.fits_levels()
    kept = {factor: array[legal][:PLANS] for factor, array in values.items()}
    mappings = Candidates(template, kept).mappings(plan)
    prices: dict[ModelName, Prices] = {
        model: price_many(mappings, template.hardware, model) for model in MODELS
    }
    assert legal.any()
    for index in range(len(legal[legal][:PLANS])):
        chosen = {
            key: tuple((dim, int(kept[key, dim][index])) for dim, _ in rows)
            for key, rows in plan.items()
        }
        text = format_plan(template.entries(chosen))
        tiled = run_passes(module, f'tile{{factors="{text}"}}')
        for model, price_of in prices.items():
            own = estimate_module(
                lowered_copy(only_function(tiled), system, absorb=False), model
            )
            assert float(price_of.latency[index]) == pytest.approx(own.latency), text
            assert float(price_of.energy[index]) == pytest.approx(own.energy), text


@one_of(2)
@pytest.mark.parametrize("strategy", STRATEGIES if EVERY_CASE else ("none", "full"))
def test_batches_price_as_single_mappings_do(strategy: str):
    template = template_of(strategy)
    plan = finest(template)
    random = np.random.default_rng(1)
    trials = {
        f: random.choice(some_divisors(n), 20) for f, n in factors_of(plan).items()
    }
    legal = Candidates(template, trials).factors_divide()
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


@one_of(2)
@pytest.mark.parametrize("strategy", STRATEGIES if EVERY_CASE else ("none", "full"))
def test_the_choice_beats_the_finest_tiles_and_none_at_all(strategy: str):
    template, chosen = template_of(strategy), searched(strategy)
    assert chosen.entries()
    for problem in (template.problem_for(finest(template)), template.problem):
        single = price(problem, template.hardware)
        assert chosen.estimate.latency <= single.latency
    assert search(template).entries() == chosen.entries()


@one_of(2)
@pytest.mark.parametrize(("strategy", "sizes"), [*zip(STRATEGIES, SMALL, strict=True)])
def test_every_size_has_a_mapping(strategy: str, sizes: tuple[int, int, int]):
    assert search(template_of(strategy, sizes)).estimate.latency > 0


def test_large_sizes_fit_unfused():
    template = template_of("none", (4096, 4096, 4096))
    with pytest.raises(PassFailedException, match="level GB needs"):
        search(template_of("full", (4096, 4096, 4096)))
    plan = finest(template)
    single = price(template.problem_for(plan), template.hardware)
    assert single.latency > 0


@pytest.mark.parametrize("strategy", ["full", "none"])
@pytest.mark.parametrize("model", MODELS)
def test_recorded_prices_are_those_of_the_model(strategy: str, model: ModelName):
    """To the last bit: where prices are equal, the rest decides."""
    template = template_of(strategy)
    plan, random = finest(template), np.random.default_rng(3)
    formulas = Formulas(template, model)
    for count in (1, 500):
        trials = {
            f: random.choice(some_divisors(n), count)
            for f, n in factors_of(plan).items()
        }
        candidates = Candidates(template, trials)
        mappings = candidates.mappings(plan)
        expected = price_many(mappings, template.hardware, model)
        for found, figure in zip(
            astuple(formulas.prices(plan, trials)), astuple(expected), strict=True
        ):
            assert np.array_equal(found, figure)
        legal = is_legal(mappings, template.hardware, live=True)
        legal = legal & candidates.fits_levels()
        found = formulas.are_legal(plan, trials, live=True)
        assert np.array_equal(found, np.broadcast_to(legal, count))
        tiles = candidates.factors_divide() & candidates.tiles_are_matrices()
        assert np.array_equal(formulas.are_tiles(trials), tiles)


def test_many_plans_are_legal_where_each_is():
    """Some are too large for a level, others have more iterations than 32 bits."""
    template = template_of("none", (4096, 4096, 4096))
    plan, one_by_one = finest(template), TileSearch(template, LATENCY)
    random = np.random.default_rng(2)
    trials = {
        f: random.choice(some_divisors(n), 20000) for f, n in factors_of(plan).items()
    }
    every = Candidates(template, trials)
    values = select(trials, every.factors_divide() & every.tiles_are_matrices())
    mappings = Candidates(template, values).mappings(plan)
    fit = room_many(mappings, template.hardware)
    formulas = Formulas(template, "paper")
    legal = formulas.are_legal(plan, values, live=True)
    assert template.agrees(plan)
    for kind, expected in ((legal, True), (~fit, False), (fit & ~legal, False)):
        found = np.flatnonzero(kind)[:10]
        assert found.size
        for index in found:
            single = {
                key: tuple((dim, int(values[key, dim][index])) for dim, _ in rows)
                for key, rows in plan.items()
            }
            assert one_by_one.is_legal(single) is expected


def test_without_factors_nothing_changes():
    template = template_of()
    same = with_factors(template.problem, {})
    assert price(same, template.hardware) == price(template.problem, template.hardware)
    assert price_many(Mappings(same), template.hardware).latency.ndim == 0


def test_a_search_prices_no_plan_twice(monkeypatch: pytest.MonkeyPatch):
    module = fused("none")
    template = make_template(only_function(module), attached_system(module))
    priced: list[str] = []

    def noted(problem: Problem, hardware: Hardware, *, counts: bool) -> TileExtents:
        priced.append(str(problem))
        return check_factors(problem, hardware, counts=counts)

    monkeypatch.setattr("comet.passes.schedule.tile.accelerator.check_factors", noted)
    search(template)
    assert len(priced) == len(set(priced))


def test_a_search_keeps_fixed_factors():
    template = template_of("none")
    key = "DRAM", "contract"
    first, second = (key, "M"), (key, "N")
    free = factors_of(searched("none").plan)
    fixed: dict[Factor, int] = {
        factor: 2 if free[factor] != 2 else 4 for factor in (first, second)
    }
    found = factors_of(search(template, fixed=fixed).plan)
    assert {factor: found[factor] for factor in fixed} == fixed
    with pytest.raises(PassFailedException, match="the fixed factors leave none for"):
        search(template, fixed={(key, "M"): 5})


def test_nodes_that_files_merge_start_with_one_order_of_loops():
    """Maps of one level have the loops N, M, and sums M, N."""
    text = """
      !M = tensor<8x16xf32, #compound.dims<M, N>>
      !N = tensor<16xf32, #compound.dims<N>>
      !s = tensor<f32, #compound.dims<>>
      func.func @main(%x: !M) -> !M {
        %a = compound.reduce add %x : !M -> !N
        %b = compound.map exp %a : !N -> !N
        %c = compound.map sub %x, %b : !M, !N -> !M
        %d = compound.reduce add %b : !N -> !s
        %y = compound.map sub %c, %d : !M, !s -> !M
        func.return %y : !M
      }"""
    edge = 'attach-hardware{path="samples/hardware/edge.yaml"}'
    passes = f"{edge},fuse{{strategy=none}},tile"
    before = parse_module(text)
    assert_same_meaning(before, run_passes(before, passes), "main")
    run_passes(before, f"{passes},lower-to-comet")
