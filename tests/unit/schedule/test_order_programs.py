"""Programs with the longest loops start first: results, prices and registers stay."""

from pathlib import Path

import pytest
from covering import exhaustive, one_of
from rank_runs import outcomes
from semantics import assert_same_meaning, parse_module, run_passes
from triton_modules import compile_all, emitted, hardware, wrong

from comet.dialects.cost import estimate_of
from comet.passes.analysis.functions import compute_functions

ONE_GPU, EIGHT = hardware("h200x1.yaml"), hardware("h200x8.yaml")
SWIZZLED = "o: H=2 M=4 warps=4 stages=2 group=2; m_n: N=4"
ROWS = f"o: B=3 {SWIZZLED[3:]}"


def causal(heads: int, rows: int, keys: int, depth: int = 16) -> str:
    """Return causal attention."""
    q, k = (f"tensor<1x{heads}x{count}x{depth}xf16>" for count in (rows, keys))
    return f"""
    func.func @main(%q: {q}, %k: {k}, %v: {k}) -> {q} {{
      %o = compound.attention %q, %k, %v causal : ({q}, {k}, {k}) -> {q}
      func.return %o : {q}
    }}"""


def on_one_gpu(text: str, options: str = "") -> str:
    return emitted(text, f"{ONE_GPU},triton-distributed{{order=longest {options}}}")


@exhaustive
def test_reversed_programs_mean_the_same(tmp_path: Path):
    """Where keys are split, the end of a loop is not known before it runs."""
    small = 'strategy=full factors="{}: B=1 H=2 M={} warps=4 stages=2; {}: N={}"'
    sources = {
        "whole": on_one_gpu(causal(2, 64, 64), small.format("o", 4, "m_n", 4)),
        "odd": on_one_gpu(causal(2, 37, 101), small.format("o", 3, "m_n", 4)),
        "swizzled": on_one_gpu(causal(2, 64, 64), f'factors="{SWIZZLED}"'),
    }
    batches = causal(2, 64, 64).replace("1x2x", "3x2x")
    sources["rows"] = on_one_gpu(batches, f'factors="{ROWS}"')
    assert [name for name in sources if "from_last_m" not in sources[name]] == []
    sources["split"] = on_one_gpu(causal(2, 100, 256), 'split="N=2" strategy=full')
    assert "from_last_m" not in sources["split"]
    swizzled = {name for name, text in sources.items() if "swizzle2d" in text}
    assert swizzled == {"swizzled", "rows"}
    assert not wrong(sources, tmp_path)


@pytest.mark.parametrize("dim", ["H", pytest.param("B", marks=exhaustive)])
def test_reversed_programs_of_ranks_mean_the_same(dim: str, tmp_path: Path):
    """All programs are on one axis of the launch grid."""
    text = causal(2, 100, 100).replace("1x2x", "2x2x")
    options = f"ranks=2 dim={dim} order=longest strategy=full"
    source = emitted(text, f"{EIGHT},triton-distributed{{{options}}}")
    assert "from_last_m" in source
    assert outcomes({"two": source}, tmp_path, seeds=1) == {"two": "right"}


def test_the_order_means_nothing_before_it_is_emitted():
    passes = f"{ONE_GPU},decompose{{accumulator=f32}},stream,fuse{{strategy=full}},tile"
    before = run_passes(parse_module(causal(2, 200, 200)), passes)
    after = run_passes(before.clone(), "order-programs{order=longest}")
    assert 'reversed ["M"]' in str(after)
    assert_same_meaning(before, after, "main")
    again = run_passes(after.clone(), "order-programs{order=index}")
    assert str(again) == str(after)


@one_of(2)
@pytest.mark.parametrize("heads", [8, 32])
def test_the_chosen_order_is_the_cheaper_one(heads: int):
    prices: dict[str, float] = {}
    for order in ("auto", "longest", "index"):
        options = f"order={order} strategy=full to=dataflow"
        text = causal(heads, 4096, 4096, 128)
        passes = f"{ONE_GPU},triton-distributed{{{options}}}"
        (function,) = compute_functions(run_passes(parse_module(text), passes))
        found = estimate_of(function)
        assert found is not None
        prices[order] = found.latency
    assert prices["auto"] == prices["longest"] < prices["index"]


@exhaustive
def test_reversed_programs_need_no_more_registers(tmp_path: Path):
    text = causal(16, 2048, 2048, 128)
    targets = ((ONE_GPU, "sm_90"), (hardware("mi300x8.yaml"), "gfx942"))
    for machine, target in targets:
        passes = f"{machine},triton-distributed{{strategy=full order="
        sources = {
            order: emitted(text, f"{passes}{order}}}") for order in ("index", "longest")
        }
        index, longest = compile_all(sources, tmp_path, target)
        assert longest["spills"] == index["spills"]
