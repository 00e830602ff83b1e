"""`use-exp2`: exponentials as powers of two, with the factor where it costs least."""

from itertools import product
from math import inf
from random import Random

import numpy as np
import pytest
from covering import one_of
from graph_text import Program
from programs import ODD_SIZES, graph_text
from sample_blocks import tiny_texts
from semantics import assert_same_meaning, parse_module, run_passes
from triton_modules import hardware
from xdsl.dialects.builtin import ModuleOp, f32, f64

from comet.dialects.compound import MapKind, MapOp
from comet.dialects.compound.dims import extents_of, names_of
from comet.dialects.compound.map import (
    constant_of,
    lowest_finite,
    neutral_operand,
)
from comet.interpreter import run
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.minimum_cut import minimum_cut
from comet.passes.graph.use_exp2 import LEAST
from comet.passes.graph.use_exp2.plan import SCALING, plan_exp2

GPU = hardware("h200x1.yaml")
COSTS = {"exp": 8.0, "exp2": 7.0}
SIZES = {"M": 3, "N": 5, "D": 4}
LOWEST = lowest_finite(f64)


def with_exp2(module: ModuleOp, exp: str = "auto") -> ModuleOp:
    return run_passes(module, f"{GPU},use-exp2{{exp={exp}}}")


def kinds(module: ModuleOp) -> list[str]:
    """Return the kinds of all maps of the functions that are no references."""
    functions = list(compute_functions(module))
    ops = [op for func in functions for op in func.walk() if isinstance(op, MapOp)]
    return [str(op.kind.data) for op in ops]


def operations(module: ModuleOp) -> float:
    """Return what all maps and maxima of a function cost, in additions."""
    (func,) = compute_functions(module)
    ops = [op for op in func.walk() if isinstance(op, MapOp)]
    sizes = [np.prod(list(extents_of(op.result).values())) for op in ops]
    costs = [COSTS.get(str(op.kind.data), 1.0) for op in ops]
    return float(np.dot(sizes, costs))


def random_program(seed: int) -> str:
    """Return elementwise ops, reductions and exponentials of each other, at random."""
    random, p = Random(seed), Program(SIZES)
    values = [p.argument("x", "MN"), p.argument("y", "MN"), p.argument("r", "M")]
    values += [p.fill("half", 0.5), p.fill("minus", -2.0)]
    binary = ("add", "sub", "mult", "max", "min")
    for number in range(14):
        name, value = f"t{number}", random.choice(values)
        match random.choice(("binary", "binary", "exp", "neg", "max", "add", "div")):
            case "binary":
                kind, other = random.choice(binary), random.choice(values)
                values.append(p.map(name, kind, value, other))
            case "exp":
                # exp(tanh x) is finite, however many follow each other.
                small = p.map(f"{name}_small", "tanh", value)
                scaled = p.map(f"{name}_s", "mult", small, random.choice(values[3:5]))
                values.append(p.map(name, "exp", random.choice((small, scaled))))
            case "neg":
                values.append(p.map(name, "neg", value))
            case "div":
                values.append(p.map(name, "div", value, values[3]))
            case kind if p.dims(value) == ("M", "N"):
                values.append(p.reduce(name, kind, value, "M"))
            case _:
                continue
    sum_of_all = values[0]
    for number, value in enumerate(values[1:]):
        sum_of_all = p.map(f"s{number}", "add", sum_of_all, value)
    return p.returning(sum_of_all)


@one_of(3)
@pytest.mark.parametrize("exp", ["auto", "exp2"])
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_keep_their_meaning(seed: int, exp: str):
    before = parse_module(random_program(seed))
    assert_same_meaning(before, with_exp2(before, exp), "main", seed=seed)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_saved_is_what_the_function_computes_less(seed: int):
    before = parse_module(random_program(seed))
    (func,) = compute_functions(before)
    saved = plan_exp2(func, COSTS).saved
    # Products of one value by one factor are made once, however many ops read them.
    assert 0 <= saved <= operations(before) - operations(with_exp2(before))


@pytest.mark.parametrize("seed", range(12))
def test_only_results_and_constants_are_divided(seed: int):
    (func,) = compute_functions(parse_module(random_program(seed)))
    for use in plan_exp2(func, COSTS, every=True).divided:
        constant = constant_of(use.operation.operands[use.index])
        assert constant is not None or use.operation.name == "func.return"


def test_a_maximum_that_is_returned_is_divided():
    p = Program({"M": 3, "N": 50})
    scaled = p.map("scaled", "mult", p.argument("x", "MN"), p.fill("half", 0.5))
    top = p.reduce("top", "max", scaled, "M")
    p.map("e", "exp", p.map("s", "sub", scaled, top))
    module = parse_module(p.returning("e", "top"))
    (func,) = compute_functions(module)
    (divided,) = plan_exp2(func, COSTS).divided
    assert divided.operation.name == "func.return"
    assert_same_meaning(module, with_exp2(module), "main")


@one_of(4)
@pytest.mark.parametrize("sizes", ODD_SIZES)
@pytest.mark.parametrize("causal", ["", " causal"])
def test_all_exponentials_of_attention(causal: str, sizes: tuple[int, int, int]):
    m, d, n = sizes
    q, k = f"tensor<2x3x{m}x{d}xf32>", f"tensor<2x3x{n}x{d}xf32>"
    text = f"""
    func.func @main(%q: {q}, %k: {k}, %v: {k}) -> {q} {{
      %o = compound.attention %q, %k, %v{causal} : ({q}, {k}, {k}) -> {q}
      func.return %o : {q}
    }}"""
    elementary = run_passes(parse_module(text), "decompose,stream")
    after = with_exp2(elementary)
    assert "exp2" in kinds(after)
    assert "exp" not in kinds(after)
    assert len(kinds(after)) == len(kinds(elementary))
    assert_same_meaning(elementary, after, "main")


@one_of(4)
@pytest.mark.parametrize("name", tiny_texts())
def test_blocks_keep_their_meaning(name: str):
    before = run_passes(parse_module(tiny_texts()[name]), "stream")
    (func,) = compute_functions(before)
    for exp in ("auto", "exp2"):
        assert_same_meaning(before, with_exp2(before, exp), func.sym_name.data)


def test_nothing_is_multiplied_where_that_costs_as_much():
    # The scores of GEMM-softmax have no scale that the factor could be a part of.
    text = graph_text("gemm_softmax", (4, 8, 6))
    module = run_passes(parse_module(text), "decompose")
    (func,) = compute_functions(module)
    assert not plan_exp2(func, COSTS).exps
    assert plan_exp2(func, {"exp": 8.0, "exp2": 6.0}).exps
    after = with_exp2(module)
    assert kinds(after) == ["sub", "mult", "exp2", "div"]
    assert_same_meaning(module, after, func.sym_name.data)


@pytest.mark.parametrize("number", [-3e38, 3e38])
def test_an_exponential_of_a_product_beyond_all_numbers(number: float):
    p = Program({"M": 3})
    x = p.map("x", "add", p.argument("y", "M"), p.fill("n", number))
    inverse = p.map("inverse", "div", p.fill("one", 1.0), p.map("e", "exp", x))
    p.map("z", "div", p.fill("two", 1.0), p.map("c", "add", inverse, p.fill("d", 1.0)))
    module = parse_module(p.returning("z"))
    assert_same_meaning(module, with_exp2(module), "main")


def test_terms_of_ranks_are_no_place_for_the_factor():
    """They are multiplied where they have been added; verified behind each pass."""
    before = parse_module(graph_text("gemm_softmax", (16, 13, 32)))
    after = run_passes(
        before,
        f"{hardware('h200x8.yaml')},select-ranks{{ranks=4}},decompose,stream,"
        "distribute{dim=K axes=rank},insert-collectives,lower-reductions,"
        "use-exp2{exp=exp2}",
    )
    assert MapKind.EXP2 in kinds(after)
    assert_same_meaning(before, after, "main")


def test_the_smaller_factor_is_multiplied():
    p = Program({"M": 3, "N": 50})
    x, r = p.argument("x", "MN"), p.argument("r", "M")
    p.map("e", "exp", p.map("s", "mult", x, r))
    module = parse_module(p.returning("e"))
    after = with_exp2(module)
    (func,) = compute_functions(after)
    products = [
        tuple(extents_of(op.result))
        for op in func.walk()
        if isinstance(op, MapOp) and op.kind.data is MapKind.MULT
    ]
    assert products == [("M",), ("M", "N")]
    assert_same_meaning(module, after, "main")


@pytest.mark.parametrize("swapped", [False, True])
def test_of_equal_factors_the_one_with_a_constant_is_multiplied(swapped: bool):
    p = Program({"M": 3, "N": 50})
    x, r = p.argument("x", "MN"), p.argument("r", "MN")
    halved = p.map("halved", "mult", x, p.fill("half", 0.5))
    p.map("e", "exp", p.map("s", "mult", *((r, halved) if swapped else (halved, r))))
    module = parse_module(p.returning("e"))
    after = with_exp2(module)
    assert kinds(after) == ["mult", "mult", "exp2"]
    assert_same_meaning(module, after, "main")


def test_what_is_as_low_as_can_be_stays_so():
    p = Program({"M": 3, "N": 50, "H": 4})
    x, bias = p.argument("x", "HMN"), p.argument("bias", "MN")
    scaled = p.map("scaled", "mult", x, p.fill("half", 0.5))
    hidden = p.map("hidden", "max", scaled, p.fill("low", -3e38))
    p.map("e", "exp", p.map("s", "add", hidden, bias))
    (func,) = compute_functions(with_exp2(parse_module(p.returning("e"))))
    lowest, least = lowest_finite(f32), lowest_finite(f32) * LEAST
    ops = [op for op in func.walk() if isinstance(op, MapOp)]
    kept = [op for op in ops if op.kind.data is MapKind.MAX]
    # The bias times log2 e, and a constant that would be below all finite numbers.
    assert sorted(names_of(op.result) for op in kept) == [("H", "M", "N"), ("M", "N")]
    assert {constant_of(op.inputs[1]) for op in kept} == {lowest, least}
    # What keeps a product finite is no neutral operand that canonicalization drops.
    assert sum(neutral_operand(op) is None for op in kept) == 1


def masked_softmax(*, scaled_mask: bool = False) -> str:
    """Return a softmax of scores and a mask, which is an argument or a multiple."""
    p = Program({"M": 3, "N": 50, "H": 4}, "f64")
    x, mask = p.argument("x", "HMN"), p.argument("mask", "MN")
    scores = p.map("scores", "mult", x, p.fill("half", 0.5))
    if scaled_mask:
        mask = p.map("low", "mult", mask, p.fill("lowest", LOWEST))
    y = p.map("y", "add", scores, mask)
    s = p.map("s", "sub", y, p.reduce("top", "max", y, "N"))
    total = p.reduce("total", "add", p.map("e", "exp", s), "N")
    return p.returning(p.map("weights", "div", "e", total))


@pytest.mark.parametrize("scaled_mask", [False, True])
def test_a_mask_before_a_maximum_takes_no_factor(scaled_mask: bool):
    text = masked_softmax(scaled_mask=scaled_mask)
    for exp in ("auto", "exp2"):
        after = kinds(with_exp2(parse_module(text), exp))
        assert after[-5:] == ["add", "sub", "mult", "exp2", "div"]


@pytest.mark.parametrize("low", [-inf, LOWEST])
@pytest.mark.parametrize("passes", ["", "stream,"])
def test_a_row_that_a_mask_hides_wholly(low: float, passes: str):
    """Its weights are equal where the mask is finite, and NaN where it is not."""
    module = run_passes(parse_module(masked_softmax()), f"{passes}canonicalize")
    inputs = [np.ones((4, 3, 50)), np.zeros((3, 50))]
    inputs[1][1] = low
    for after in (module, with_exp2(module)):
        (result,) = run(after, "main", inputs)
        assert np.isnan(result[:, 1]).all() == (low == -inf)
        assert np.isfinite(result[:, ::2]).all()


def test_a_factor_before_a_maximum_is_scaled():
    p = Program({"M": 3, "N": 50})
    y = p.map("y", "mult", p.argument("x", "MN"), p.argument("r", "M"))
    s = p.map("s", "sub", y, p.reduce("top", "max", y, "N"))
    module = parse_module(p.returning(p.map("e", "exp", s)))
    after = with_exp2(module)
    assert kinds(after) == ["mult", "max", "mult", "sub", "exp2"]
    assert_same_meaning(module, after, "main")


def test_infinities_of_a_mask_stay():
    p = Program({"M": 3, "N": 50})
    scaled = p.map("scaled", "mult", p.argument("x", "MN"), p.fill("half", 0.5))
    hidden = p.map("hidden", "max", scaled, p.fill("low", -3e38))
    p.map("e", "exp", hidden)
    text = p.returning("e").replace("-3.0e+38", "-inf")
    (func,) = compute_functions(with_exp2(parse_module(text), "exp2"))
    ops = [op for op in func.walk() if isinstance(op, MapOp)]
    kept = [op.inputs[1] for op in ops if op.kind.data is MapKind.MAX]
    assert [constant_of(value) for value in kept] == [-inf]


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_exponentials_of_short_types_stay(element: str):
    p = Program({"M": 3}, element)
    p.map("e", "exp", p.map("s", "mult", p.argument("x", "M"), p.fill("half", 0.5)))
    module = parse_module(p.returning("e"))
    assert str(with_exp2(module, "exp2")) == str(run_passes(module, GPU))


def test_a_constant_that_is_too_large_is_no_place_for_the_factor():
    p = Program({"M": 3, "N": 50})
    mask = p.map("mask", "mult", p.argument("x", "N"), p.fill("low", -3e38))
    scaled = p.map("scaled", "mult", p.argument("y", "MN"), p.fill("half", 0.5))
    p.map("e", "exp", p.map("s", "add", scaled, mask))
    (func,) = compute_functions(parse_module(p.returning("e")))
    scaled_uses = plan_exp2(func, COSTS).multiplied
    scaled_values = [use.operation.operands[use.index] for use in scaled_uses]
    assert [constant_of(value) for value in scaled_values] == [None, 0.5]


@pytest.mark.parametrize("seed", range(20))
def test_a_minimum_cut_is_the_least_of_all(seed: int):
    random, nodes = Random(seed), "abcde"
    ends = [("s", n) for n in nodes] + [(n, "t") for n in nodes]
    ends += [(a, b) for a in nodes for b in nodes if a != b]
    edges = [(a, b, float(random.randint(1, 9))) for a, b in random.sample(ends, 14)]
    side, least = minimum_cut(edges, "s", "t")
    costs = {
        chosen: sum(cost for a, b, cost in edges if a in chosen and b not in chosen)
        for bits in product((False, True), repeat=len(nodes))
        for chosen in [
            frozenset("s") | {n for n, on in zip(nodes, bits, strict=True) if on}
        ]
    }
    assert least == min(costs.values()) == costs[side]
    assert len(side) == min(len(c) for c, cost in costs.items() if cost == least)


def test_an_edge_that_cannot_be_cut_is_not():
    edges = [("s", "a", 3.0), ("a", "b", inf), ("b", "t", 2.0)]
    assert minimum_cut(edges, "s", "t") == (frozenset({"s", "a", "b"}), 2.0)
    assert SCALING > COSTS["exp"] - COSTS["exp2"]
