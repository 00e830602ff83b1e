"""
Tiles that Triton 3.6 compiles for sm_90 without a spill are admitted, and what it costs
to have more warps than rows of matrix instructions is in the price.
"""

from __future__ import annotations

import pytest
from register_table import Row, Table

from comet.cost.gpu.registers import LaunchNumbers, replication
from comet.cost.gpu.tiling import price

TABLE = Table("registers.csv", "h200x1")
HEADS = {"B": 1, "H": 1, "D": 128, "E": 128}


@pytest.mark.parametrize(
    ("op", "blocks", "numbers"),
    [
        ("attention", {**HEADS, "M": 128, "N": 128}, LaunchNumbers(8, 2)),
        ("attention_causal", {**HEADS, "M": 128, "N": 128}, LaunchNumbers(8, 2)),
        ("attention", {**HEADS, "M": 128, "N": 128}, LaunchNumbers(4, 2, True)),
        ("gemm", {"M": 128, "N": 256, "K": 64}, LaunchNumbers(8, 3)),
        ("gemm_softmax", {"M": 128, "N": 256, "K": 64}, LaunchNumbers(8, 3)),
        ("gemm_layernorm", {"M": 64, "N": 512, "K": 32}, LaunchNumbers(8, 2)),
    ],
)
def test_tiles_that_compile_without_a_spill_are_admitted(
    op: str, blocks: dict[str, int], numbers: LaunchNumbers
):
    assert TABLE.admits(op, Row(blocks, numbers, 0, 0))


def test_warps_beyond_the_rows_of_scores_compute_them_again():
    """Eight warps have 128 rows of 16; of 64 rows each score is computed twice."""
    summary, gpu = TABLE.kernel("attention")
    times: dict[tuple[int, int], float] = {}
    for rows in (64, 128):
        blocks = {**HEADS, "M": rows, "N": 64}
        for warps in (4, 8):
            held = replication(summary, blocks, warps, gpu)(("B", "H", "M", "N"))
            assert held == (2 if warps * 16 > rows else 1)
            found = price(summary, blocks, LaunchNumbers(warps, 3), gpu)
            times[rows, warps] = float(found.seconds)
    assert times[64, 8] > 1.3 * times[64, 4]
    assert times[64, 8] > 1.3 * times[128, 8]
