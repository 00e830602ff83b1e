"""Other factors for the temporal nodes of a problem."""

import pytest
from tile_trees import fused, only_function

from comet.cost.accelerator.factors import with_factors
from comet.cost.accelerator.problem import Leaf, Problem, Tile, walk
from comet.cost.estimate import CostError
from comet.dialects.arch import attached_system
from comet.passes.schedule.tile.template import make_template


def problem_of(strategy: str) -> Problem:
    module = fused(strategy, sizes=(12, 8, 64))
    return make_template(only_function(module), attached_system(module)).problem


def leaf(problem: Problem, name: str) -> Leaf:
    leaves = [node for node in walk(problem.root) if isinstance(node, Leaf)]
    (found,) = [node for node in leaves if node.operation == name]
    return found


def leaf_tile(problem: Problem, name: str) -> Tile:
    tiles = [n for n in walk(problem.root) if isinstance(n, Tile) and n.is_leaf]
    (found,) = [tile for tile in tiles if tile.leaf.operation == name]
    return found


def test_entries_get_the_factors_of_their_operation():
    problem = problem_of("none")
    root = problem.root
    rows = {
        (root.index, "GEMM"): (("M", 2), ("K", 4)),
        (root.index, "EXP"): (("M", 3),),
    }
    factors = {
        (entry.tensor, entry.tag): {d: f for d, f in entry.factors[0].items() if f > 1}
        for entry in with_factors(problem, rows).root.entries
    }
    assert {f for (_, tag), f in _frozen(factors) if tag == "GEMM"} == {
        (("K", 4), ("M", 2))
    }
    assert {f for (_, tag), f in _frozen(factors) if tag == "EXP"} == {(("M", 3),)}
    assert {f for (_, tag), f in _frozen(factors) if tag == "DIV"} == {()}


def _frozen(
    factors: dict[tuple[str, str], dict[str, int]],
) -> list[tuple[tuple[str, str], tuple[tuple[str, int], ...]]]:
    return [(name, tuple(sorted(rows.items()))) for name, rows in factors.items()]


def test_dimensions_that_an_operation_lacks_do_not_count():
    problem = problem_of("full")
    rows = {(problem.root.index, "EXP"): (("K", 4),)}
    after = with_factors(problem, rows)
    assert leaf(after, "EXP").primitive == leaf(problem, "EXP").primitive


def test_leaves_take_what_is_left():
    problem = problem_of("full")
    tile = leaf_tile(problem, "GEMM")
    rows = {
        (problem.root.index, "GEMM"): (("M", 3),),
        (tile.index, "GEMM"): (("K", 4), ("M", 2)),
    }
    before = leaf(problem, "GEMM")
    after = leaf(with_factors(problem, rows), "GEMM")
    sizes, shared = dict(before.primitive), dict(after.primitive)
    assert shared == {**sizes, "M": sizes["M"] // 6, "K": sizes["K"] // 4}
    for tensor, steps in after.steps.items():
        assert steps["M"] == before.steps[tensor]["M"] // 6


def test_rows_decide_the_order():
    problem = problem_of("full")
    tile = leaf_tile(problem, "GEMM")
    for dims in (("K", "M"), ("M", "K")):
        rows = {(tile.index, "GEMM"): tuple((dim, 2) for dim in dims)}
        order = leaf_tile(with_factors(problem, rows), "GEMM").order
        assert order[:2] == dims[::-1]
        assert sorted(order) == sorted(tile.order)


def test_nests_of_one_node_share_an_order():
    problem = problem_of("none")
    root = problem.root.index
    rows = {
        (root, "GEMM"): (("N", 2), ("K", 2)),
        (root, "EXP"): (("M", 2), ("N", 2)),
    }
    order = with_factors(problem, rows).root.order
    assert order == ("K", "N", "M")


def test_loops_of_one_iteration_may_be_in_any_order():
    problem = problem_of("none")
    root = problem.root.index
    rows = {
        (root, "GEMM"): (("N", 2), ("M", 2)),
        (root, "EXP"): (("M", 2), ("N", 1)),
    }
    assert with_factors(problem, rows).root.order[:2] == ("M", "N")


def test_different_orders_below_one_node_are_an_error():
    problem = problem_of("none")
    root = problem.root.index
    rows = {
        (root, "GEMM"): (("N", 2), ("M", 2)),
        (root, "EXP"): (("M", 2), ("N", 2)),
    }
    message = "loop over .* in different orders, .*; order their loops alike"
    with pytest.raises(CostError, match=message):
        with_factors(problem, rows)
