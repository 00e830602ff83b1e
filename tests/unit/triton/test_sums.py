"""Sums of products have one accumulator in a kernel, whatever their loops are."""

import re
from pathlib import Path

import pytest
from covering import one_of, some
from graph_text import Program
from semantics import assert_same_meaning, parse_module, run_passes
from sum_programs import program
from triton_modules import compile_all, emitted, hardware, wrong

ONE = f"{hardware('h200x1.yaml')},triton-distributed"


@one_of(6)
@pytest.mark.parametrize("seed", range(12))
def test_kernels_of_sums_mean_the_same(seed: int):
    """As one kernel where it fits, with loops of several trips."""
    before = parse_module(program(seed))
    fused = f"group-sums,{hardware('h200x1.yaml')},fuse{{strategy=full}},tile"
    assert_same_meaning(before, run_passes(before, fused), "main", seed=seed)


def test_emitted_kernels_of_sums_are_right(tmp_path: Path):
    cases = [
        (seed, element, strategy)
        for seed in range(6)
        for element in ("f32", "bf16")
        for strategy in ("full", "auto")
    ]
    sources = {
        f"sum_{seed}_{element}_{strategy}": emitted(
            program(seed, element), f"{ONE}{{strategy={strategy}}}"
        )
        for seed, element, strategy in some(cases, 23)
    }
    assert not wrong(sources, tmp_path)


TWO_LOOPS = """
!A = tensor<256x256xbf16, #compound.dims<M, K>>
!B = tensor<128x256xbf16, #compound.dims<N, K>>
!C = tensor<256x512xbf16, #compound.dims<M, L>>
!D = tensor<128x512xbf16, #compound.dims<N, L>>
!W = tensor<256x128xf32, #compound.dims<M, N>>
!Y = tensor<256x128xbf16, #compound.dims<M, N>>
func.func @main(%a: !A, %b: !B, %c: !C, %d: !D, %e: !A, %f: !B) -> !Y {
  %p = compound.contract %a, %b : !A, !B -> !W
  %q = compound.contract %c, %d : !C, !D -> !W
  %r = compound.contract %e, %f : !A, !B -> !W
  %s = compound.map add %p, %q : !W, !W -> !W
  %t = compound.map add %s, %r : !W, !W -> !W
  %y = compound.cast %t : !W -> !Y
  func.return %y : !Y
}
"""
"""Two products over K and one over L."""


def test_loops_over_other_dimensions_continue_the_sum(tmp_path: Path):
    """The second loop starts from the accumulator of the first; nothing is added."""
    source = emitted(TWO_LOOPS, f'{ONE}{{kernels="y" split=none}}')
    kernel = source[source.index("@triton.jit") : source.index("def main(")]
    assert kernel.count("tl.zeros") == 1
    assert kernel.count("tl.dot(") == 3
    assert kernel.count("for ") == 2
    assert not re.search(r"= \w+ \+ \w+  # compound.map add", kernel)
    assert not wrong({"two_loops": source}, tmp_path)


def gradients() -> str:
    """Return X^T dY + Z^T dW, whose right operands have the rows of the result."""
    p = Program({"M": 256, "D": 256, "F": 256}, "bf16", "f32")
    terms = [
        p.contract(f"p{n}", p.argument(f"dy{n}", "MF"), p.argument(f"x{n}", "MD"), "DF")
        for n in range(2)
    ]
    return p.returning(p.map("dw", "add", *terms))


def test_transposed_products_of_a_sum_have_one_accumulator(tmp_path: Path):
    """128 x 128 numbers are 64 registers of 256 threads, and four times as many 256."""
    factors = "dw_bf16: D=2 F=2 warps=8 stages=3; dw_m: M=8"
    passes = (
        f"{hardware('h200x1.yaml')},decompose,fuse{{strategy=full}},"
        f'tile{{factors="{factors}"}},outline-kernels,materialize-copies,hoist-copies,'
        "order-operands,pad-blocks,map-grid,mask-copies,lower-to-triton"
    )
    (found,) = compile_all({"sum": emitted(gradients(), passes)}, tmp_path, "sm_90")
    assert found["spills"] == 0
    assert isinstance(found["registers"], int)
    assert found["registers"] < 160


TURNED = """
!B = tensor<4x16x16xf32, #compound.dims<G, P, K>>
!C = tensor<4x4096x16xf32, #compound.dims<G, L, K>>
!D = tensor<4x16x4096xf32, #compound.dims<G, P, L>>
!Y = tensor<4096x16xf32, #compound.dims<L, P>>
func.func @main(%b: !B, %c: !C) -> !Y {
  %p = compound.contract %b, %c : !B, !C -> !D
  %y = compound.reduce add %p : !D -> !Y
  func.return %y : !Y
}
"""
"""A sum of products over G whose axes are in another order than those of a product."""


def test_an_accumulator_has_the_order_of_its_terms(tmp_path: Path):
    """So each product is added in the loop, and the sum is turned when it is stored."""
    source = emitted(TURNED, f"{ONE}{{ranks=1}}")
    assert "y = tl.zeros((BLOCK_P, BLOCK_L)" in source
    assert source.count("tl.trans(y)") == 1
    assert not wrong({"turned": source}, tmp_path)
