"""`order-operands`: the gradients of weights, in one accumulator."""

from pathlib import Path

import pytest
from covering import one_of
from gpu_graphs import H200
from graph_text import Program
from semantics import assert_same_meaning, parse_module, run_passes
from triton_modules import check_all, compile_all, emitted

FACTORS = "dw_bf16: D=2 F=2 warps=4 stages=3; dw_m: M=4"
TILED = f'{H200},decompose,fuse,tile{{factors="{FACTORS}"}}'


def gradient(sizes: dict[str, int], element: str = "bf16") -> str:
    """Return X^T dY, whose right operand has the rows of the result."""
    p = Program(sizes, element, "f32")
    return p.returning(
        p.contract("dw", p.argument("dy", "MF"), p.argument("x", "MD"), "DF"),
        function="gradient",
    )


@one_of(2)
@pytest.mark.parametrize("extents", [(37, 21, 29), (64, 32, 32), (5, 1, 70)])
def test_the_meaning_stays(extents: tuple[int, int, int], tmp_path: Path):
    text = gradient(dict(zip("MDF", extents, strict=True)))
    before = run_passes(parse_module(text), f"{H200},decompose,fuse,tile")
    after = run_passes(before, "order-operands")
    assert_same_meaning(before, after, "gradient")
    module = emitted(text, f"{H200},triton-distributed")
    (report,) = check_all({"gradient": module}, tmp_path).values()
    assert report["ok"], report


def test_there_is_one_accumulator(tmp_path: Path):
    """128 x 128 elements in 128 threads are 128 registers, and twice as many 256."""
    text = gradient({"M": 256, "D": 256, "F": 256})
    sources = {
        name: emitted(
            text,
            f"{TILED},outline-kernels,materialize-copies,hoist-copies,{passes}"
            "pad-blocks,map-grid,mask-copies,lower-to-triton",
        )
        for name, passes in (("ordered", "order-operands,"), ("as_it_is", ""))
    }
    ordered, as_it_is = (
        facts["registers"] for facts in compile_all(sources, tmp_path, "sm_90")
    )
    assert isinstance(ordered, int)
    assert isinstance(as_it_is, int)
    assert ordered < 200 < as_it_is
