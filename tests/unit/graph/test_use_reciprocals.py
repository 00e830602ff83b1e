"""`use-reciprocals`: one division by each number, and products by the reciprocal."""

from random import Random

import pytest
from covering import one_of
from graph_text import Program
from sample_blocks import tiny_texts
from semantics import assert_same_meaning, parse_module, run_passes
from xdsl.dialects.builtin import ModuleOp

from comet.dialects.compound import MapKind, MapOp
from comet.dialects.compound.dims import elements_of
from comet.passes.analysis.functions import compute_functions
from comet.passes.graph.use_reciprocals import LARGEST, plan_reciprocals

SIZES = {"M": 3, "N": 5}


def divisions(module: ModuleOp) -> int:
    """Return how many elements the functions that are no references divide."""
    ops = [op for func in compute_functions(module) for op in func.walk()]
    maps = [op for op in ops if isinstance(op, MapOp)]
    return sum(elements_of(op.result) for op in maps if op.kind.data is MapKind.DIV)


def random_program(seed: int) -> str:
    """Return quotients of each other, of roots and of constants, at random."""
    random, p = Random(seed), Program(SIZES)
    values = [p.argument("x", "MN"), p.argument("r", "M"), p.argument("c", "N")]
    values += [p.fill("three", 3.0), p.fill("minus", -0.5)]
    for number in range(10):
        name, value, other = f"t{number}", *random.choices(values, k=2)
        # tanh(x)^2 + 1/2 is at least 1/2: quotients by small numbers are large.
        small = p.map(f"{name}_small", "tanh", other)
        square = p.map(f"{name}_square", "mult", small, small)
        divisor = p.map(f"{name}_d", "sub", square, values[4])
        if random.choice((True, False)):
            divisor = p.map(f"{name}_root", "sqrt", divisor)
        divisor = random.choice((divisor, values[3]))
        values.append(p.map(name, "div", value, divisor))
    total = values[0]
    for number, value in enumerate(values[1:]):
        total = p.map(f"s{number}", "add", total, value)
    return p.returning(total)


@one_of(2)
@pytest.mark.parametrize("seed", range(8))
def test_random_programs_keep_their_meaning(seed: int):
    before = parse_module(random_program(seed))
    after = run_passes(before, "use-reciprocals")
    assert_same_meaning(before, after, "main", seed=seed)
    assert divisions(after) <= divisions(before)
    (func,) = compute_functions(after)
    assert plan_reciprocals(func) == ()


@one_of(2)
@pytest.mark.parametrize("name", tiny_texts())
def test_blocks_keep_their_meaning(name: str):
    before = run_passes(parse_module(tiny_texts()[name]), "stream")
    (func,) = compute_functions(before)
    after = run_passes(before, "use-reciprocals")
    assert_same_meaning(before, after, func.sym_name.data)
    assert divisions(after) <= divisions(before)


@pytest.mark.parametrize(
    ("number", "stays"), [(LARGEST, False), (2 * LARGEST, True), (0.5 / LARGEST, True)]
)
def test_a_constant_without_a_normal_reciprocal_stays(number: float, stays: bool):
    p = Program(SIZES)
    p.map("q", "div", p.argument("x", "MN"), p.fill("n", number))
    (func,) = compute_functions(parse_module(p.returning("q")))
    assert (plan_reciprocals(func) == ()) == stays


def test_a_root_with_other_readers_stays():
    p = Program(SIZES)
    v = p.argument("v", "M")
    root = p.map("root", "sqrt", p.map("square", "mult", v, v))
    p.map("q", "div", p.argument("x", "MN"), root)
    module = parse_module(p.returning("q", "root"))
    after = run_passes(module, "use-reciprocals")
    kinds = [str(op.kind.data) for op in after.walk() if isinstance(op, MapOp)]
    assert kinds == ["mult", "sqrt", "rsqrt", "mult"]
    assert_same_meaning(module, after, "main")
