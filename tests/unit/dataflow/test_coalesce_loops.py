"""`coalesce-loops`: sums over several dimensions, in one loop."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest
from covering import EVERY_CASE, covering, one_of
from gpu_graphs import H200
from gpu_ranks import H200X8
from graph_text import NOTHING, Program
from rank_runs import outcomes
from semantics import assert_same_meaning, parse_module, run_passes
from triton_modules import check_all, compile_all, emitted
from xdsl.dialects.builtin import ModuleOp

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize
from comet.cost.gpu.registers import LaunchNumbers
from comet.cost.gpu.tiling import kernel_work
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.schedule import SpatialOp, TemporalOp


def projection(
    sizes: dict[str, int], element: str = "f16", sharded: Mapping[str, str] = NOTHING
) -> str:
    """Return what attention is multiplied by: a sum over K, R and G."""
    p = Program(sizes, element, "f32", sharded)
    values, weight = p.argument("values", "KRMG"), p.argument("weight", "KRGD")
    return p.returning(p.contract("y", values, weight, "MD"), function="projection")


def coalesced(text: str, factors: str) -> tuple[ModuleOp, ModuleOp]:
    """Return a launch plan with a nest of loops, and the same with one loop."""
    start = run_passes(
        parse_module(text), f'{H200},decompose,fuse,tile{{factors="{factors}"}}'
    )
    before = run_passes(start, "outline-kernels")
    return before, run_passes(before, "coalesce-loops")


def loops_of(module: ModuleOp) -> list[int]:
    """Return the number of loops of each node that has several iterations."""
    nodes = (op for op in module.walk() if isinstance(op, TemporalOp))
    return [len(op.loops) for op in nodes if op.trip_count > 1]


@one_of(2)
@pytest.mark.parametrize(
    ("sizes", "factors"),
    [
        ((3, 2, 37, 40, 21), "y_f16: M=2 D=1; y_k: K=3; y_r: R=2; y_g: G=3"),
        ((2, 1, 16, 70, 33), "y_f16: M=1 D=2; y_k: K=2; y_r: R=1; y_g: G=3"),
        ((5, 3, 1, 17, 5), "y_f16: M=1 D=1; y_k: K=5; y_r: R=3; y_g: G=1"),
    ],
)
def test_the_meaning_stays(sizes: tuple[int, ...], factors: str, tmp_path: Path):
    text = projection(dict(zip("KRMGD", sizes, strict=True)))
    before, after = coalesced(text, factors)
    assert loops_of(after) == [3]
    assert len(loops_of(before)) > 1
    assert_same_meaning(before, after, "projection")
    module = emitted(text, f'{H200},triton-distributed{{factors="{factors}"}}')
    (report,) = check_all({"projection": module}, tmp_path).values()
    assert report["ok"], report


@one_of(8)
@pytest.mark.parametrize(
    ("dim", "pattern"),
    covering(product("KRG", ("bsp", "wait", "push", "pull", "fused"))),
)
def test_ranks_that_share_heads_sum_them(dim: str, pattern: str, tmp_path: Path):
    """A loop over ranks stays around the others, between which nothing waits."""
    sizes = {"K": 4, "R": 2, "M": 21, "G": 40, "D": 17}
    sharded = {"values": dim, "weight": dim}
    text = projection(sizes, sharded=sharded)
    options = f"ranks=2 pattern={pattern}"
    module = emitted(text, f"{H200X8},triton-distributed{{{options}}}")
    found = outcomes({"projection": module}, tmp_path, seeds=2 if EVERY_CASE else 1)
    assert found == {"projection": "right"}


@one_of(2)
@pytest.mark.parametrize("dim", "KR")
def test_shards_of_heads_may_end_earlier(dim: str, tmp_path: Path):
    """The last rank has fewer heads, and its loop has as many iterations."""
    text = projection({"K": 5, "R": 3, "M": 5, "G": 40, "D": 17})
    module = emitted(text, f"{H200X8},triton-distributed{{ranks=2 dim={dim}}}")
    assert "in one loop" in module
    found = outcomes({"projection": module}, tmp_path, seeds=2 if EVERY_CASE else 1)
    assert found == {"projection": "right"}


@pytest.mark.parametrize("dim", "KG")
def test_a_loop_over_sources_is_no_part_of_a_nest(dim: str):
    """Each program visits the tiles of its own rank first, with a loop over ranks."""
    text = projection(
        {"K": 4, "R": 2, "M": 21, "G": 40, "D": 17}, sharded={"values": dim}
    )
    options = "ranks=2 pattern=bsp sources=each"
    module = run_passes(
        parse_module(text), f"{H200X8},triton-distributed{{{options} to=dataflow}}"
    )
    nodes = [op for op in module.walk() if isinstance(op, TemporalOp)]
    over_ranks = [op for op in nodes if [loop.dim for loop in op.loops].count(dim) > 1]
    assert over_ranks
    assert not any(op.coalesce for op in over_ranks)


def test_it_is_one_loop_of_triton(tmp_path: Path):
    text = projection({"K": 8, "R": 4, "M": 64, "G": 128, "D": 64})
    factors = "y_f16: M=1 D=1 warps=4 stages=3; y_k: K=8; y_r: R=4; y_g: G=2"
    module = emitted(text, f'{H200},triton-distributed{{factors="{factors}"}}')
    loops = [line.strip() for line in module.splitlines() if " in range(" in line]
    assert loops == ["for i in range(end):"]
    (facts,) = compile_all({"projection": module}, tmp_path, "sm_90")
    assert facts["spills"] == 0


def test_the_pipeline_is_filled_once():
    """The price of a nest is that of the loop that it becomes."""
    text = projection({"K": 8, "R": 4, "M": 64, "G": 128, "D": 64})
    factors = "y_f16: M=1 D=1 warps=4 stages=3; y_k: K=8; y_r: R=4; y_g: G=2"
    numbers = LaunchNumbers(warps=4, stages=3)
    blocks = {"K": 1, "R": 1, "M": 64, "G": 64, "D": 64}
    for module in coalesced(text, factors):
        (grid,) = (op for op in module.walk() if isinstance(op, SpatialOp))
        gpu = device_of(attached_system(module))
        summary = summarize(grid, gpu_levels(attached_system(module)), gpu)
        assert kernel_work(summary, blocks, numbers, gpu).loops.pipelines == 1
        assert kernel_work(summary, blocks, numbers, gpu).loops.rounds == 8 * 4 * 2
