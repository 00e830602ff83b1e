"""Programs for the rows that the last, shorter shard lacks: they touch no flag."""

from pathlib import Path

from covering import EVERY_CASE
from paths import ROOT
from rank_runs import outcomes
from triton_modules import emitted, hardware

SENT = (ROOT / "tests" / "data" / "short_shards.mlir").read_text()
"""
Each rank computes all of L, shard by shard: 4 rows for one rank, and 3 for the other.

One result is sent shard by shard, the other one to all ranks in blocks of one row.
"""

AWAITED = """
!a = tensor<13x8x17xf32, #compound.dims<M, K, N>>
!b = tensor<8x5x13xf32, #compound.dims<K, L, M>>
!m = tensor<8x5xf32, #compound.dims<K, L>>
func.func @main(%a: !a {collective.shard = {K = ["rank"]}},
                %b: !b {collective.shard = {M = ["rank"]}}) -> (!m, !a) {
  %m = compound.reduce max %b {collective.shard = {}} : !b -> !m
  %e = compound.map cos %a {collective.shard = {}} : !a -> !a
  func.return %m, %e : !m, !a
}
"""
"""Each rank reads all of K, shard by shard: 3 rows of two ranks, 2 of the last."""

START = "decompose,lower-views,propagate-shardings,insert-collectives,merge-collectives"
REST = "place-collectives,lower-reductions,lower-views"
END = "lower-channels,verify-sync,lower-to-triton"


def compiled(text: str, machine: str, ranks: int, fuse: str, channels: str) -> str:
    """Return an emitted module; `fuse` and `channels` are options of these passes."""
    start = f"{hardware(machine)},select-ranks{{ranks={ranks}}},{START},{REST}"
    fused = f"fuse{{{fuse}}},tile,outline-kernels,bsp-to-dataflow{{{channels}}}"
    return emitted(text, f"{start},{fused},{END}")


def test_a_block_that_is_not_there_is_not_signalled(tmp_path: Path):
    text = compiled(SENT, "mi300x8.yaml", 2, "between=spill", "pattern=pull")
    assert "if l < 7:" in text
    found = outcomes({"main": text}, tmp_path, seeds=2 if EVERY_CASE else 1)
    assert found == {"main": "right"}


def test_a_block_that_is_not_there_is_not_awaited(tmp_path: Path):
    channels = 'pattern=push blocks="K=2"'
    text = compiled(AWAITED, "h200x8.yaml", 3, "strategy=none", channels)
    assert "+ tl.minimum(k // 4, 1), epoch" in text
    found = outcomes({"main": text}, tmp_path, seeds=2 if EVERY_CASE else 1)
    assert found == {"main": "right"}
