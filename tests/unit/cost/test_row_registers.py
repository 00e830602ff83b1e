"""
The registers of kernels on rows, against those that LLVM compiled for gfx942.

`tests/data/row_registers_gfx942.csv` was written by `benchmarks/row_registers.py`: with
seed 1 by Triton 3.9, of which the model was made, and with seed 2 by Triton 3.6 when it
was done.
"""

from itertools import product

import pytest
from covering import covering
from row_registers import OPS, RowKernel
from row_table import row_of, rows_of

VERSIONS = ("3.6", "3.9")
SOME = covering(product(OPS, VERSIONS))


@pytest.mark.parametrize(("op", "triton"), SOME)
def test_no_kernel_on_rows_that_the_model_admits_spills(op: str, triton: str) -> None:
    spilling = [row for row in rows_of(op, triton) if row.spilled]
    assert spilling
    assert not any(row.admitted for row in spilling)


@pytest.mark.parametrize("triton", VERSIONS)
def test_most_kernels_on_rows_that_do_not_spill_are_admitted(triton: str) -> None:
    ops = ("softmax_of_sum", "layernorm", "rmsnorm", "cross_entropy")
    whole = [row for op in ops for row in rows_of(op, triton) if not row.spilled]
    assert len(whole) >= 20
    assert sum(row.admitted for row in whole) >= 0.65 * len(whole)


@pytest.mark.parametrize(
    ("op", "tiles"), [("softmax", 1), ("softmax_of_sum", 2), ("cross_entropy", 2)]
)
def test_ops_on_rows_take_whole_tiles(op: str, tiles: int) -> None:
    """
    Both terms of a sum are widened before it, and exponentials are beside their scores.

    A thread has 128 elements in 8 rows: as many registers for each tile, 28 besides,
    and two for each column whose number is compared with a label.
    """
    row = row_of(RowKernel(op, "exp", "f16", 8192), 8, 8, 0, 0, 0)
    indices = 32 if op == "cross_entropy" else 0
    assert row.expected == pytest.approx(28 + tiles * 128 + indices, abs=1)


def test_a_product_that_is_added_takes_no_tile() -> None:
    """Squares are one instruction with their sum; gamma has one element of a row."""
    row = row_of(RowKernel("rmsnorm", "exp", "f32", 8192), 8, 8, 0, 0, 0)
    assert row.expected == pytest.approx(28 + 128 + 16, abs=1)
