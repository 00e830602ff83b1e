"""
The registers of kernels on rows, against those that LLVM compiled for gfx942.

`tests/data/row_registers_gfx942.csv` was written by `benchmarks/row_registers.py`: with
seed 1 by Triton 3.9, of which the model was made, and with seed 2 by Triton 3.6 when it
was done. `tests/data/row_loops_gfx942.csv` has loops along rows.
"""

from itertools import product

import pytest
from covering import covering, one_of
from paths import ROOT
from register_ops import BEFORE, kernel_of
from row_ops import OPS
from row_registers import ROWS, RowKernel
from row_table import row_of, rows_of

import comet
from comet.cost.gpu.registers import LaunchNumbers, thread_registers
from comet.passes.schedule.tile.gpu.space import GRID_BLOCKS

VERSIONS = ("3.6", "3.9")
SOME = covering(product(OPS, VERSIONS), 1)
H200 = ROOT / "samples" / "hardware" / "h200x1.yaml"
LOOPS = BEFORE.replace("strategy=full", "strategy=partial")
"""Passes that put loops along rows."""


@pytest.mark.parametrize(("op", "triton"), SOME)
def test_no_kernel_on_rows_that_the_model_admits_spills(op: str, triton: str) -> None:
    spilling = list(rows_of(op, triton, spilled=True))
    assert spilling
    assert not any(row.admitted for row in spilling)


@pytest.mark.parametrize("triton", VERSIONS)
def test_most_kernels_on_rows_that_do_not_spill_are_admitted(triton: str) -> None:
    ops = ("softmax_of_sum", "layernorm", "rmsnorm", "cross_entropy")
    whole = [row for op in ops for row in rows_of(op, triton, spilled=False)]
    assert len(whole) >= 20
    assert sum(row.admitted for row in whole) >= 0.65 * len(whole)


@pytest.mark.parametrize(
    ("op", "tiles"), [("softmax", 1), ("softmax_of_sum", 2), ("cross_entropy", 2)]
)
def test_ops_on_rows_take_whole_tiles(op: str, tiles: int) -> None:
    """
    Both terms of a sum are widened before it, and exponentials are beside their scores.

    A thread has 128 elements in 8 rows: as many registers for each tile, one for the
    maximum of each row, 12 besides, and two for each column whose number is compared
    with a label, and for the label of each row.
    """
    row = row_of(RowKernel(op, "exp", "f16", 8192), {"M": 8, "warps": 8})
    numbers = {"softmax": 8, "softmax_of_sum": 0, "cross_entropy": 8 + 16 + 16}[op]
    assert row.expected == pytest.approx(12 + tiles * 128 + numbers, abs=1)


def test_a_product_that_is_added_takes_no_tile() -> None:
    """Squares are one instruction with their sum; a thread has 16 columns, 8 rows."""
    row = row_of(RowKernel("rmsnorm", "exp", "f32", 8192), {"M": 8, "warps": 8})
    assert row.expected == pytest.approx(12 + 128 + 16 + 8, abs=1)


@one_of(4)
@pytest.mark.parametrize("op", OPS)
def test_loops_along_rows_that_spill_are_not_admitted(op: str) -> None:
    """But for natural exponentials of sums in f32, which GPU pipelines do not have."""
    spilling = list(rows_of(op, "3.9", spilled=True, loops=True))
    admitted = [row.spilled for row in spilling if row.admitted]
    assert len(spilling) > 3
    assert admitted == ([48, 72, 52] if op == "softmax_of_sum" else [])


def test_loops_along_rows_with_room_are_admitted() -> None:
    """Of 64 elements of a thread and 256 registers, most that do not spill."""
    ops = ("softmax", "softmax_of_sum", "layernorm", "rmsnorm")
    tilings = [{"M": m, "N": 8 * 64 * 64 // m, "warps": 8} for m in GRID_BLOCKS]
    small = [
        row
        for op, tiling in product(ops, tilings)
        for row in rows_of(op, "3.9", spilled=False, loops=True, tiling=tiling)
    ]
    assert len(small) >= 20
    assert sum(row.admitted for row in small) >= 0.9 * len(small)


@pytest.mark.parametrize(
    ("kernel", "vectors", "rounded", "compiled"),
    [
        ("rmsnorm exp f32 16384", 8 + 2 * 16 + 2 * 32, 0, 201),
        ("rmsnorm exp f16 16384", 8 + 2 * 16 + 2 * 16, 0, 193),
        ("rmsnorm exp bf16 16384", 2 * 16 + 2 * 16, 64, 262),
        ("softmax exp2 f32 16384", 16 + 2 * 16 + 2 * 32, 0, 240),
        ("softmax exp2 f16 16384", 16 + 2 * 16 + 2 * 16, 0, 226),
        ("softmax exp2 bf16 16384", 16 + 2 * 16 + 2 * 16, 64, 294),
    ],
)
def test_loops_along_rows_keep_numbers_of_rows(
    kernel: str, vectors: int, rounded: int, compiled: int
) -> None:
    """
    A thread has 16 rows of eight elements, eight columns, and two for each store.

    The inverse of a row is there twice, as an op computes it before the loop, and the
    maximum once; gamma has left registers when rows are rounded. With what is spilled,
    Triton 3.9 takes so many registers as `compiled`.
    """
    tiling = {"M": 16, "N": 4096, "warps": 8}
    row = row_of(RowKernel.of(kernel, loops=True), tiling)
    assert row.expected == pytest.approx(12 + 128 + vectors + rounded, abs=1)
    assert row.expected == pytest.approx(compiled, abs=45)


def test_what_is_divided_is_rounded_element_after_element() -> None:
    """Softmax as it is written divides; in pipelines for GPUs it multiplies."""
    tiling = {"M": 16, "N": 4096, "warps": 8}
    kernel = RowKernel.of("softmax exp bf16 16384", loops=True)
    assert row_of(kernel, tiling).expected == pytest.approx(211, abs=26)


def expected(op: str, columns: int, rows: int) -> float:
    """Return the registers of a loop along rows in f32 for sm_90, of four warps."""
    program = comet.parse(OPS[op].text(ROWS, columns, "f32"))
    _, summary, gpu = kernel_of(comet.compile(program, H200, LOOPS).module)
    blocks = {"M": rows, "N": 2048}
    return float(thread_registers(summary, blocks, LaunchNumbers(4, 3), gpu))


@pytest.mark.parametrize(
    ("op", "columns", "rows", "compiled"),
    [
        ("rmsnorm", 12000, 4, 168),
        ("rmsnorm", 16384, 4, 80),
        ("softmax", 12000, 4, 166),
        ("softmax", 16384, 4, 104),
    ],
)
def test_masked_loops_along_rows_keep_addresses(
    op: str, columns: int, rows: int, compiled: int
) -> None:
    """
    Tiles of `rows` x 2048 in f32, of four warps, by Triton 3.9 for sm_90.

    Each thread loads and stores 16 bytes 16 times, from addresses of two registers.
    """
    assert expected(op, columns, rows) == pytest.approx(compiled, abs=25)


def test_masked_tiles_that_spill_are_not_admitted() -> None:
    """Of 8 x 2048: they spill 160 and 112 bytes, and nothing without masks."""
    for op, columns in product(("rmsnorm", "softmax"), (12000, 16384)):
        limit = 255 - 12
        assert (expected(op, columns, 8) <= limit) == (columns == 16384)
