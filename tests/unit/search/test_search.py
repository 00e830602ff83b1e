"""The search driver: ties, refusals, bounds, and what is noted of them."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from math import inf
from pathlib import Path

import pytest
from covering import covering, one_of
from programs import graph_text
from semantics import parse_module, run_passes
from tile_trees import fused, only_function
from xdsl.transforms.dead_code_elimination import region_dce
from xdsl.utils.exceptions import PassFailedException

from comet.cost.accelerator.model import price
from comet.cost.estimate import CostError, ModelName
from comet.cost.from_ir.bounds import function_bound
from comet.dialects.arch import attached_system
from comet.dialects.comet import MappingOp
from comet.dialects.cost import Figures, estimate_of
from comet.passes.schedule.fuse.accelerator.bound import FusionBounds
from comet.passes.schedule.fuse.accelerator.plan import Fusible
from comet.passes.schedule.fuse.strategy import Name, Strategy
from comet.passes.schedule.tile.accelerator import ToolSearch, search
from comet.passes.schedule.tile.finest import finest
from comet.passes.schedule.tile.template import make_template
from comet.passes.search import (
    FREE,
    Candidate,
    Cost,
    Found,
    Goal,
    Objective,
    cheapest,
    descend,
    ranked,
    session,
    vary,
)
from comet.passes.search.groups import Group, best_first

HARDWARE = Path(__file__).parents[3] / "samples" / "hardware"
SOFTMAX = graph_text("gemm_softmax", (64, 16, 256))


def priced(label: str, latency: float, energy: float = 0.0) -> Candidate[str]:
    def price() -> Found[str]:
        return Found(label, Cost(latency, energy), "compute")

    return Candidate(label, price)


def refused(label: str, reason: str) -> Candidate[str]:
    def price() -> Found[str]:
        raise PassFailedException(reason)

    return Candidate(label, price)


def test_groups_are_made_when_none_has_a_lower_bound():
    made: list[str] = []

    def group(label: str, bound: float, *costs: float) -> Group[str]:
        def make() -> list[Candidate[str]]:
            made.append(label)
            return [
                replace(priced(f"{label}{cost}", cost), bound=Cost(bound + 1))
                for cost in costs
            ]

        return Group(label, Cost(bound), 0, make)

    groups = [group("c", 40, 50), group("a", 10, 30), group("b", 20, 25, 60)]
    candidates = best_first(groups, Goal())
    with session() as searched:
        assert cheapest("mapping", "@f", candidates).result == "b25"
    assert made == ["a", "b"]
    rows = [(row.label, row.limit) for row in searched.choices[0].rows]
    assert [label for label, _ in rows] == ["a30", "b25", "b60", "c"]
    assert rows[-1][1].startswith("costs at least 40 cycles, more than the 25 of")


@pytest.mark.parametrize(
    ("bound", "least", "missed"),
    [(100, 70, True), (100, 90, False), (100, 0, False), (60, 70, False)],
)
def test_what_would_do_far_less_is_missed_if_rejected(
    bound: float, least: float, missed: bool
):
    taken = replace(priced("a", 150), bound=Cost(bound))
    other = replace(refused("b", "no room"), bound=Cost(least))
    with session() as searched:
        cheapest("mapping", "@f", [taken, other])
    said = (
        "mapping for @f: a costs 150 cycles; b might cost as little as 70, and is "
        "rejected: no room"
    )
    assert searched.warnings == ((said,) if missed else ())


def test_what_is_too_dear_is_not_missed():
    candidates = [priced("a", 150), replace(priced("b", 1), bound=Cost(200))]
    with session() as searched:
        cheapest("mapping", "@f", candidates)
    assert searched.choices[0].rows[1].cost is None
    assert searched.warnings == ()


def test_of_equals_the_first_is_taken():
    candidates = [priced("a", 3, 2), priced("b", 2, 2), priced("c", 2, 2)]
    assert cheapest("choice", "@f", candidates).result == "b"


def test_a_rank_decides_instead_of_the_cost():
    def candidate(label: str, latency: float, rank: float) -> Candidate[str]:
        return Candidate(label, lambda: Found(label, Cost(latency), rank=rank))

    candidates = [candidate("a", 1, 3), candidate("b", 2, 2), candidate("c", 3, 2)]
    assert cheapest("choice", "@f", candidates).result == "b"
    assert [found.result for found in ranked("choice", "@f", candidates)] == [*"abc"]


def test_what_is_not_refused_is_ranked():
    candidates = [priced("a", 3), refused("b", "no room"), priced("c", 2)]
    with session() as searched:
        found = ranked("choice", "@f", candidates)
    assert [each.result for each in found] == ["c", "a"]
    (choice,) = searched.choices
    assert choice.chosen is None
    assert [row.limit for row in choice.rows] == ["compute", "no room", "compute"]


@pytest.mark.parametrize(
    ("objective", "expected"), [("latency", "a"), ("energy", "b"), ("edp", "c")]
)
def test_the_objective_decides(objective: Objective, expected: str):
    candidates = [priced("a", 1, 100), priced("b", 60, 1), priced("c", 5, 5)]
    found = cheapest("choice", "@f", candidates, Goal(objective=objective))
    assert found.result == expected


def test_each_candidate_is_noted():
    with session() as current:
        cheapest("choice", "@f", [refused("a", "too large"), priced("b", 1)])
    (choice,) = current.choices
    assert [(row.label, row.cost, row.limit) for row in choice.rows] == [
        ("a", None, "too large"),
        ("b", Cost(1), "compute"),
    ]
    assert choice.chosen == 1


def test_the_reason_of_the_last_refusal_is_raised():
    with pytest.raises(PassFailedException, match="too small"):
        cheapest("choice", "@f", [refused("a", "too large"), refused("b", "too small")])


def test_what_cannot_be_cheaper_is_not_realized():
    def fail() -> Found[str]:
        raise AssertionError("realized")

    candidates = [priced("a", 10), Candidate("b", fail, Cost(11))]
    assert cheapest("choice", "@f", candidates).result == "a"


def test_the_next_is_taken_where_the_cheapest_does_not_stand():
    def confirm(made: str) -> Found[str] | None:
        if made == "a":
            raise PassFailedException("cannot be lowered")
        return Found("b in parts", Cost(5), "launches") if made == "b" else None

    candidates = [priced("a", 1), priced("b", 2), priced("c", 4), priced("d", 6)]
    with session() as current:
        found = cheapest("choice", "@f", candidates, confirm=confirm)
    assert found.result == "c"
    rows = current.choices[0].rows
    assert [row.cost and row.cost.latency for row in rows] == [None, 5, 4, 6]
    assert rows[0].limit == "cannot be lowered"


def test_variations_start_from_the_cheapest_and_are_priced_once():
    asked: list[tuple[int, int]] = []

    def price(point: tuple[int, int]) -> float:
        asked.append(point)
        x, y = point
        return abs(x - 3) + abs(y - 2) if x != 4 else inf

    def along_x(point: tuple[int, int]) -> list[tuple[int, int]]:
        return [(x, point[1]) for x in range(5)]

    def along_y(point: tuple[int, int]) -> list[tuple[int, int]]:
        return [(point[0], y) for y in range(5)]

    starts, variations = [(0, 0), (4, 4), (9, 0)], [along_x, along_y]
    tried = vary(starts, variations, price, 30, lambda point: 0)
    assert min(tried, key=price) == (3, 2)
    assert tried == tuple(asked[: len(tried)])
    assert len(set(tried)) == len(tried)
    assert 1 < len(vary([(0, 0)], variations, price, 3, lambda point: 0)) <= 4
    asked.clear()
    bounded = vary(starts, variations, price, 30, lambda point: abs(point[0] - 3))
    assert bounded == tried
    assert asked
    assert len(asked) < len(tried)


def test_an_outer_candidate_bounds_an_inner_choice():
    inner = [priced("slow", 30), priced("fast", 20)]
    bounded = [Candidate(each.label, each.price, Cost(15)) for each in inner]
    nested: Callable[[], Found[str]] = partial(cheapest, "inner", "@f", bounded)
    with session() as current:
        found = cheapest("outer", "@f", [priced("a", 10), Candidate("b", nested, FREE)])
    assert found.result == "a"
    assert current.choices[0].within == ("outer b",)
    assert [row.cost for row in current.choices[0].rows] == [None, None]


@one_of(2)
@pytest.mark.parametrize(
    ("strategy", "shared", "model"),
    covering(product(("full", "partial", "none"), ("N", "M"), ("paper", "ideal")), 1),
)
def test_no_mapping_is_below_the_bound_of_its_sharding(
    strategy: Name, shared: str, model: ModelName
):
    hardware = f'attach-hardware{{path="{HARDWARE}/edge.yaml"}}'
    stream = "stream," if shared == "M" else ""
    passes = (
        f"decompose{{accumulator=input}},{stream}"
        f"distribute{{dim={shared} axes=cx,cy,kx,ky}},insert-collectives,"
        f"place-collectives{{at=GB kind=auto model={model}}}"
    )
    module = run_passes(parse_module(SOFTMAX), f"{hardware},{passes}")
    func, system = only_function(module), attached_system(module)
    region_dce(func.body)
    least = function_bound(func, system, model)
    plan = Fusible.of(func, system).plan(Strategy(strategy))
    fused = FusionBounds(func, system, model).of(plan)
    options = f"dim={shared} strategy={strategy} model={model} chunks=shared"
    found = figures(f"{options} stream={'true' if stream else 'false'}")
    assert found.energy is not None
    assert 0 < least[0] <= fused.latency <= found.latency
    assert 0 < least[1] <= fused.energy <= found.energy
    assert (least[1] < fused.energy) == (strategy == "none")


def figures(options: str) -> Figures:
    hardware = f'attach-hardware{{path="{HARDWARE}/edge.yaml"}}'
    module = run_passes(
        parse_module(SOFTMAX), f"{hardware},comet-accelerator{{{options}}}"
    )
    (mapping,) = (op for op in module.walk() if isinstance(op, MappingOp))
    found = estimate_of(mapping)
    assert found is not None
    return found


def test_energy_and_latency_are_traded():
    fast, frugal, both = (
        figures(f"objective={objective} strategy=full pad=none stream=false")
        for objective in ("latency", "energy", "edp")
    )
    assert fast.energy is not None
    assert frugal.energy is not None
    assert both.energy is not None
    assert fast.latency <= min(frugal.latency, both.latency)
    assert frugal.energy <= min(fast.energy, both.energy)
    assert both.latency * both.energy <= fast.latency * fast.energy


def test_the_tool_decides_under_its_own_model():
    module = fused("full", sizes=(24, 16, 64))
    template = make_template(only_function(module), attached_system(module))
    ours, theirs = search(template), search(template, Goal("tool"))
    assert theirs.estimate.model == "tool"
    under_tool = price(template.problem_for(ours.plan), template.hardware, "tool")
    assert theirs.estimate.latency <= 1.1 * under_tool.latency
    start = price(template.problem_for(finest(template)), template.hardware, "tool")
    assert theirs.estimate.latency < start.latency


def test_the_tool_starts_from_tiles_that_it_can_count():
    """The finest tiles make 33 million iterations; `tool` prices 10 million."""
    module = fused("full", op="gemm", sizes=(512, 128, 8192))
    template = make_template(only_function(module), attached_system(module))
    with pytest.raises(CostError, match="33"):
        price(template.problem_for(finest(template)), template.hardware, "tool")
    assert search(template, Goal("tool")).estimate.model == "tool"


def test_the_tool_refines_no_plan_that_is_far_above_another_candidate():
    module = fused("full", sizes=(24, 16, 64))
    template = make_template(only_function(module), attached_system(module))
    space = ToolSearch(template, Goal("tool"))
    plan = space.start()
    assert space.estimates.keys() == {tuple(plan.result.plan.items())}
    with session() as current, current.trying("x", Cost(plan.cost.latency / 1.4)):
        assert space.neighbours([plan]) == [None]
        assert not space.sample(plan)
    assert len(space.estimates) == 1
    with session() as current, current.trying("x", Cost(plan.cost.latency / 1.3)):
        assert len(space.neighbours([plan])) == 1
    assert len(space.estimates) > 1


@pytest.mark.parametrize("option", ["objective=energy", "model=tool"])
def test_gpus_have_neither_energies_nor_the_tool(option: str):
    hardware = f'attach-hardware{{path="{HARDWARE}/h200x1.yaml"}}'
    pipeline = f"{hardware},decompose,fuse{{strategy=auto {option}}}"
    with pytest.raises(PassFailedException, match=option):
        run_passes(parse_module(SOFTMAX), pipeline)


def test_the_pipeline_for_gpus_has_no_energies_either():
    hardware = f'attach-hardware{{path="{HARDWARE}/h200x1.yaml"}}'
    pipeline = f"{hardware},triton-distributed{{objective=edp}}"
    with pytest.raises(PassFailedException, match="do not have; use objective=latency"):
        run_passes(parse_module(SOFTMAX), pipeline)


@pytest.mark.parametrize("end", ["time", "interrupt"])
def test_a_choice_that_has_to_end_takes_the_best_known_candidate(end: str):
    def late() -> Found[str]:
        if end == "interrupt":
            raise KeyboardInterrupt
        raise AssertionError("the time is up")

    first = Candidate("first", priced("first", 2.0).price, Cost(1.5))
    late_one = Candidate("late", late, Cost(0.5))
    every = [first, late_one, priced("last", 1.0)]
    with session() as current:
        deadline = inf if end == "interrupt" else -1.0
        with suppress(KeyboardInterrupt), current.until(deadline):
            assert cheapest("choice", "@f", every).result == "first"
        assert cheapest("choice", "@f", [every[0], every[2]]).result == "last"


def test_an_interrupt_is_passed_on_if_no_candidate_is_known_or_nobody_asked():
    def interrupted() -> Found[str]:
        raise KeyboardInterrupt

    late = Candidate("late", interrupted)
    with session() as current, pytest.raises(KeyboardInterrupt), current.until(inf):
        cheapest("choice", "@f", [late, priced("last", 1.0)])
    with pytest.raises(KeyboardInterrupt):
        cheapest("choice", "@f", [priced("first", 1.0), late])
    with session() as current, pytest.raises(KeyboardInterrupt), current.until(inf):
        assert cheapest("choice", "@f", [priced("first", 1.0), late]).result == "first"


def test_descents_go_down_together_and_one_of_equal_cost_is_dropped():
    """The valley at 100 is deeper than that at 0, where two starts meet."""
    asked: list[list[int]] = []

    def at(x: int) -> Found[int]:
        return Found(x, Cost(abs(x) + 10.0 if x < 50 else abs(x - 100) * 1.0, 0.0))

    class Line:
        def bound(self) -> Cost:
            return FREE

        def start(self) -> Found[int]:
            return at(49)

        def sample(self, current: Found[int]) -> Sequence[Found[int]]:
            return at(3), at(-4), at(102)

        def neighbours(
            self, currents: Sequence[Found[int]]
        ) -> Sequence[Found[int] | None]:
            asked.append([each.result for each in currents])
            return [
                next((new for new in near if new.cost.latency < old.cost.latency), None)
                for old in currents
                for near in [[at(old.result - 1), at(old.result + 1)]]
            ]

    assert descend("x", "@f", Line()).result == 100
    assert asked == [[3, -4, 102], [2, -3, 101], [1, 100], [0]]
