"""What the model expects of today's choices, beside the goals."""

from __future__ import annotations

import pytest
from covering import exhaustive
from gpu_predicted import compiled, decode_rows, extents_of, rows, with_mean
from gpu_verdict import GOALS
from ladder_programs import predicted_times


@pytest.mark.parametrize(
    ("size", "extents"),
    [
        ("64x32x16", {"M": 64, "N": 32, "K": 16}),
        ("B4 H12 S65536", {"B": 4, "H": 12, "S": 65536}),
    ],
)
def test_sizes_are_read(size: str, extents: dict[str, int]):
    assert extents_of(size) == extents


def test_a_ratio_is_that_of_the_times():
    (goal,) = (goal for goal in GOALS if goal.kind == "gemm")
    ((ratio, row),) = rows(goal)
    seconds = predicted_times(compiled("gemm", "4096x4096x4096")).graph
    assert row[:3] == ["gemm", "4096x4096x4096", "eager"]
    assert ratio == pytest.approx(178.0 / (1e6 * seconds))


@exhaustive
def test_no_kernel_is_faster_than_its_bytes():
    ratio, row = next(decode_rows())
    assert ratio > 1
    assert row[5] == f"{ratio:.2f}"


def test_the_mean_is_geometric():
    *_, last = with_mean([(1.0, ["a"]), (4.0, ["b"])], "1.25")
    assert last == ["", "mean", "", "", "", "2.00", "1.25"]
