"""A part of the matrix of workloads, patterns and ranks; `make matrix` runs it all."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from covering import EVERY_CASE, exhaustive, fraction, one_of
from rank_matrix import (
    PATTERNS,
    SIZES,
    WORKLOADS,
    Cell,
    Matrix,
    Runner,
    cells,
    summary,
    table,
    verdicts,
)
from xdsl.utils.exceptions import PassFailedException

STAGGERED = re.compile(r"\(rank \+ .+\) % WORLD")
PEER = re.compile(r"(?:source|dest)\w* = (.*)")
COUNTED = "epoch = next_epoch(counters_ptr)"
PICKED = [Cell(*pair, 3) for pair in fraction(WORKLOADS, [*PATTERNS], 8)]
"""Every workload with an eighth of the patterns; `make exhaustive`: all."""
CONCURRENT = [
    Cell("gemm_all_reduce", "persistent", 2),
    Cell("expert_gemm", "bsp", 2),
    *(
        [
            Cell("ag_gemm", "push", 2),
            Cell("gemm_all_reduce", "fused", 2),
            Cell("ag_gemm", "in_place", 2),
        ]
        if EVERY_CASE
        else ()
    ),
]
PULLED_INPUTS = {"ag_gemm", "ring_attention", "expert_gemm"}
"""Workloads of which inputs are gathered; kernels make what the others gather."""


@exhaustive
def test_three_ranks_are_right_without_a_reset():
    """No extent is a multiple of three; three epochs use every slot again."""
    matrix = Matrix(seeds=[1], epochs=3, sizes=("tiny",), processes=0)
    found = list(verdicts(matrix, PICKED))
    assert len(found) == len(PICKED)
    assert [text for verdict in found for text in verdict.wrong] == []
    for verdict in found:
        cell = verdict.cell
        applies = cell.pattern != "in_place" or cell.workload in PULLED_INPUTS
        assert verdict.right == int(applies)
        assert ("does not apply" in verdict.inapplicable) != applies


def begun_elsewhere(text: str) -> list[str]:
    """Return the orders of ranks in a module that do not begin with the own one."""
    orders = PEER.findall(text)
    assert orders
    return [order for order in orders if not STAGGERED.fullmatch(order)]


@one_of(3)
@pytest.mark.parametrize(
    "cell", [c for c in PICKED if c.pattern in ("wait", "pull", "push")], ids=str
)
def test_ranks_begin_with_themselves(cell: Cell):
    """Results do not depend on it: so the text is looked at."""
    text = cell.source(SIZES["tiny"])
    assert begun_elsewhere(text) == []
    assert begun_elsewhere(text.replace("(rank + ", "(")) != []


def test_ranks_that_are_concurrent_are_right():
    matrix = Matrix(seeds=[0], epochs=3, sizes=("tiny",), processes=1)
    found = list(verdicts(matrix, CONCURRENT, jobs=2))
    assert {verdict.cell for verdict in found} == {*CONCURRENT}
    assert [text for verdict in found for text in verdict.wrong] == []
    assert [verdict.right for verdict in found] == [2] * len(CONCURRENT)


def test_what_is_wrong_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A wrong program, and a compiler that refuses, are failures of the matrix."""
    right = Cell.source

    def broken(cell: Cell, extents: Mapping[str, int]) -> str:
        if cell.pattern == "bsp":
            raise PassFailedException("no tiles fit")
        if cell.pattern == "pull":
            return "import os; os._exit(3)"
        text = right(cell, extents)
        assert text.count(COUNTED) == 2
        return text.replace(COUNTED, "epoch = 1")

    monkeypatch.setattr(Cell, "source", broken)
    matrix = Matrix(seeds=[0], epochs=3, sizes=("tiny",), processes=0)
    chosen = cells(["ag_gemm"], ["bsp", "pull", "push"], [2])
    with Runner() as runner:
        found = [matrix.verdict(cell, runner, tmp_path) for cell in chosen]
    assert found[0].wrong == ["does not compile: no tiles fit"]
    assert found[1].wrong == ["tiny, scheduler: the process died"]
    (reason,) = found[2].wrong
    assert reason.startswith("tiny, scheduler, seed 0, resident ")
    assert str(found[2]).startswith("ag_gemm, push, 2 ranks: 0 right, 1 wrong (")
    assert str(found[2]).endswith(f"\n  {reason}")
    assert table(found).count("1 WRONG") == 3
    assert "3 of 280 cells: 3 run 3 times, 3 wrong" in summary(found)
