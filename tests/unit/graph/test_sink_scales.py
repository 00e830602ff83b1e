"""Scales that move behind products: what programs mean stays."""

from random import Random

import pytest
from graph_text import Program
from semantics import assert_same_meaning, parse_module, run_passes
from transformer_blocks import llama_block, rms_norm
from triton_modules import hardware
from xdsl.dialects.builtin import ModuleOp

from comet.dialects.arch import ArchError
from comet.dialects.compound import ContractOp, MapOp
from comet.dialects.schedule import TemporalOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.graph.sink_scales.plan import plan_scales

SIZES = {"M": 3, "N": 3, "D": 5, "E": 4}
H200 = hardware("h200x1.yaml")
WIDE = {"M": 128, "D": 4096, "F": 4096}
NARROW = {"M": 128, "D": 1024, "F": 1024}


def random_program(seed: int) -> str:
    """Return products of values that are multiplied and divided at random."""
    random, p = Random(seed), Program(SIZES)
    values = [p.argument("x", "MD"), p.argument("y", "MD")]
    near = [p.argument("r", "M"), p.argument("g", "D"), p.argument("c", "")]
    weights = [p.argument("w", "DE"), p.argument("u", "MN")]
    made: list[str] = []
    for number in range(14):
        name, value = f"t{number}", random.choice(values)
        match random.choice(("scale", "scale", "tanh", "square", "product")):
            case "scale":
                kind = random.choice(("mult", "div"))
                values.append(p.map(name, kind, value, random.choice(near)))
            case "square":
                values.append(p.map(name, "mult", value, random.choice(values)))
            case "tanh":
                values.append(p.map(name, "tanh", value))
            case _:
                weight, dims = random.choice(
                    ((weights[0], "ME"), (weights[1], "DN"), (values[0], ""))
                )
                made.append(p.contract(name, value, weight, dims))
    made.append(p.contract("last", values[-1], weights[0], "ME"))
    return p.returning(*made)


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_keep_their_meaning(seed: int):
    before = parse_module(random_program(seed))
    assert_same_meaning(before, run_passes(before, "sink-scales{scales=all}"), "main")


def test_random_programs_have_scales():
    programs = [parse_module(random_program(seed)) for seed in range(20)]
    assert sum(bool(scales(program)) for program in programs) > 10


def scales(module: ModuleOp, *, every: bool = True) -> list[tuple[str | None, ...]]:
    """Return the names of the factors of each value that may scale products."""
    (func,) = compute_functions(module)
    return [
        tuple(factor.value.name_hint for factor in sinking.factors)
        for sinking in plan_scales(func, every=every)
    ]


def normed(
    element: str, sizes: dict[str, int] = WIDE, *, returned: bool = False
) -> str:
    """Return a program of RMSNorm and a product, whose norm may be another result."""
    p = Program(sizes, element, "f32")
    h = rms_norm(p, p.argument("x", "MD"), "h")
    y = p.contract("y", h, p.argument("w", "DF"), "MF")
    return p.returning(y, h) if returned else p.returning(y)


def factors_of(result: ModuleOp) -> list[bool]:
    """Return for each product whether a multiplication alone reads it."""
    products = [op for op in result.walk() if isinstance(op, ContractOp)]
    return [
        [type(use.operation) for use in op.result.uses] == [MapOp] for op in products
    ]


def test_a_norm_of_few_rows_is_a_factor_of_the_product():
    before = parse_module(normed("bf16", NARROW))
    assert scales(before, every=False) == [("h_scale",)]
    after = run_passes(before, f"{H200},sink-scales")
    assert not scales(after)
    assert factors_of(after) == [True]


def test_products_add_up_their_statistic_in_their_own_loop():
    """Each of two kernels computes the norm, and none stores it."""
    p = Program({"M": 64, "D": 256, "F": 1024, "E": 1024}, "bf16", "f32")
    h = rms_norm(p, p.argument("x", "MD"), "h")
    y = p.contract("y", h, p.argument("w", "DF"), "MF")
    z = p.contract("z", h, p.argument("u", "DE"), "ME")
    fused = run_passes(
        parse_module(p.returning(y, z)),
        f"{H200},sink-scales,fuse{{strategy=priority narrow=none}}",
    )
    (func,) = compute_functions(fused)
    kernels = str(func.attributes["comet.kernels"])
    loops = [op for op in func.walk() if isinstance(op, TemporalOp)]
    assert kernels == '"y_bf16; z_bf16"'
    assert len(loops) == 2


def test_a_norm_of_many_rows_stays_where_each_product_would_do_it_again():
    before = parse_module(normed("bf16", {"M": 4096, "D": 4096, "F": 16384}))
    assert scales(before, every=False) == [("h_scale",)]
    after = run_passes(before, f"{H200},sink-scales")
    assert factors_of(after) == [False]


def test_a_norm_that_is_returned_is_stored_anyway():
    before = parse_module(normed("bf16", returned=True))
    assert scales(before, every=False) == [("h_scale",)]
    after = run_passes(before, f"{H200},sink-scales")
    assert factors_of(after) == [False]


def test_a_value_without_its_scale_may_overflow_f16():
    before = parse_module(normed("f16"))
    assert not scales(before, every=False)
    assert scales(before) == [("h_scale",)]


@pytest.mark.parametrize("element", ["f32", "bf16", "f16"])
def test_blocks_keep_their_meaning(element: str):
    before = parse_module(llama_block(element=element))
    after = run_passes(before, "sink-scales{scales=all}")
    assert len(scales(before)) > len(scales(after))
    assert_same_meaning(before, after, "main")


def test_auto_needs_prices():
    with pytest.raises(ArchError, match="attach-hardware"):
        run_passes(parse_module(normed("f32", SIZES | {"F": 4})), "sink-scales")
