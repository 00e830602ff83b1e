"""Long blocks of summed dimensions: which products get them, and what fusion makes."""

import re
from pathlib import Path

import pytest
from covering import some
from forgetting import forget_kernels
from gpu_graphs import H200
from gpu_ranks import H200X8
from named_ops import NAMED_OPS
from semantics import parse_module, run_passes
from triton_modules import emitted, wrong

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize
from comet.cost.gpu.summary import KernelSummary
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.cost import estimate_of
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.grid import grid_nodes
from comet.passes.schedule.fuse.gpu import trial
from comet.passes.schedule.tile.gpu.space import DOT_DEPTHS, LONG_DEPTH, may_be_long

GEMM = """
func.func @gemm(%a: tensor<{M}x{K}xbf16>{shard}, %b: tensor<{K}x{N}xbf16>)
    -> tensor<{M}x{N}xbf16> {{
  %c = compound.{op} %a, %b
      : (tensor<{M}x{K}xbf16>, tensor<{K}x{N}xbf16>) -> tensor<{M}x{N}xbf16>
  func.return %c : tensor<{M}x{N}xbf16>
}}
"""
GATED_MLP = """
func.func @mlp(%x: tensor<64x512xbf16>, %g: tensor<512x1024xbf16>,
    %u: tensor<512x1024xbf16>, %d: tensor<1024x256xbf16>) -> tensor<64x256xbf16> {
  %y = compound.gated_mlp %x, %g, %u, %d : (tensor<64x512xbf16>,
      tensor<512x1024xbf16>, tensor<512x1024xbf16>, tensor<1024x256xbf16>)
      -> tensor<64x256xbf16>
  func.return %y : tensor<64x256xbf16>
}
"""


def gemm(rows: int, terms: int, ranks: int = 1, columns: int = 4096) -> str:
    """Return a product of few rows, whose terms several ranks may hold in shards."""
    sharded = ' {collective.shard = {K = ["rank"]}}'
    op, shard = ("gemm", "") if ranks == 1 else ("ag_gemm", sharded)
    return GEMM.format(M=rows, N=columns, K=terms, op=op, shard=shard)


def planned(text: str, ranks: int = 1) -> tuple[str, float]:
    """Return the plan that is chosen without split-K, and the predicted time."""
    machine = H200 if ranks == 1 else H200X8
    module = run_passes(
        parse_module(text),
        f"{machine},triton-distributed{{ranks={ranks} to=dataflow split=none}}",
    )
    (function,) = compute_functions(module)
    estimate = estimate_of(function)
    assert estimate is not None
    return str(function.attributes["comet.plan"]), estimate.latency


def summary_of(text: str) -> KernelSummary:
    """Return the summary of the only kernel of a program."""
    module = run_passes(
        parse_module(text), f"{H200},decompose,stream,fuse{{strategy=full}}"
    )
    system = attached_system(module)
    (function,) = compute_functions(module)
    (node,) = grid_nodes(function)
    return summarize(node, gpu_levels(system), device_of(system))


@pytest.mark.parametrize("rows", [16, 64, 128])
def test_products_of_few_rows_have_long_blocks(rows: int):
    plan, _ = planned(gemm(rows, 4096))
    assert f"c_k: K={4096 // LONG_DEPTH}" in plan


def test_products_of_64_rows_use_the_instructions_of_warp_groups():
    """The tile has all rows: those of wgmma. With blocks of 64 terms it had 32."""
    plan, _ = planned(gemm(64, 4096))
    assert plan.startswith('"c: M=1 ')


def _never(summary: KernelSummary, dim: str) -> bool:
    return False


def test_fusion_is_no_slower_with_long_blocks(monkeypatch: pytest.MonkeyPatch):
    _, long = planned(gemm(64, 4096))
    forget_kernels(monkeypatch)
    monkeypatch.setattr(trial, "may_be_long", _never)
    plan, short = planned(gemm(64, 4096))
    assert f"K={4096 // DOT_DEPTHS[-1]}" in plan
    assert long < short


def test_long_blocks_cross_no_shards_of_two_ranks():
    plan, _ = planned(gemm(64, 8192, ranks=8), ranks=8)
    assert f"c_k: K={8192 // LONG_DEPTH}" in plan
    plan, _ = planned(gemm(64, 512, ranks=8), ranks=8)
    assert f"c_k: K={512 // DOT_DEPTHS[-1]}" in plan


def test_long_blocks_of_odd_sizes_are_right(tmp_path: Path):
    sources: dict[str, str] = {}
    for rows, terms in some(((20, 300), (5, 128), (64, 1111)), 2):
        text = gemm(rows, terms, columns=43)
        sources[f"{rows} {terms}"] = emitted(text, f"{H200},triton-distributed")
    for ranks, pattern in some(((2, "fused"), (4, "pull"), (3, "push")), 2):
        text = gemm(20, 132 * ranks, ranks, columns=43)
        options = f"{ranks=!s} {pattern=!s}"
        pipeline = f"{H200X8},triton-distributed{{{options}}}"
        sources[f"{ranks} {pattern}"] = emitted(text, pipeline)
    assert all(re.search(r"BLOCK_K\w*=128", text) for text in sources.values())
    assert wrong(sources, tmp_path) == []


def test_elements_of_large_heads_are_one_block(tmp_path: Path):
    """Otherwise the loop over keys is not pipelined, as one over elements is in it."""
    op = next(op for op in NAMED_OPS if op.title == "attention_causal")
    text = op.text({"B": 1, "H": 3, "M": 45, "N": 77, "D": 200, "E": 40})
    source = emitted(text, f"{H200},triton-distributed")
    assert "BLOCK_D=256" in source
    assert "for d in" not in source
    assert wrong({"heads": source}, tmp_path) == []


def test_loops_with_computed_operands_and_loops_inside_have_short_blocks():
    summary = summary_of(GATED_MLP)
    assert "K" in summary.nest.inner_dims
    assert not may_be_long(summary, "K")
    assert not may_be_long(summary, "N")
    assert may_be_long(summary_of(gemm(64, 512)), "K")
