"""
Programs that load rows ahead, against what compilers took for sm_90.

`tests/data/tile_loops.csv` was written by `benchmarks/tile_loops.py`, with Triton 3.6
and 3.9.
"""

import csv
from functools import cache
from pathlib import Path

import pytest
from tile_loops import expected, source

TABLE = Path(__file__).parents[2] / "data" / "tile_loops.csv"
VERSIONS = ("3.6", "3.9")
SCRATCH = 1024
"""The most bytes of shared memory through which warps exchange their reductions."""


@cache
def rows(triton: str) -> list[dict[str, str]]:
    """Return the kernels of a version, of which there are enough."""
    lines = TABLE.read_text().splitlines()[1:]
    found = [row for row in csv.DictReader(lines) if row["triton"] == triton]
    assert len(found) >= 25
    return found


@pytest.mark.parametrize("triton", VERSIONS)
def test_no_kernel_spills(triton: str):
    assert {row["spilled"] for row in rows(triton)} == {"0"}


@pytest.mark.parametrize("triton", VERSIONS)
def test_a_tile_has_a_buffer_for_each_stage_but_one(triton: str):
    for row in rows(triton):
        assert 0 <= int(row["shared"]) - int(row["expected"]) <= SCRATCH


@pytest.mark.parametrize("op", ["gemm_softmax", "gemm_layernorm"])
def test_the_table_has_what_the_model_expects(op: str):
    row = next(row for row in rows("3.9") if row["op"] == op)
    work = expected(source(op, int(row["columns"]), row["element"]))
    assert work.loops.tiles_ahead
    assert int(work.loops.stages) == int(row["stages"])
    assert int(work.needs.shared) == int(row["expected"])
