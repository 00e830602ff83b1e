"""
The model of registers against kernels that LLVM compiled for gfx942.

`tests/data/registers_gfx942.csv` was written by `benchmarks/registers.py`: eight ops
with seed 1, of which the figures in the hardware file were made, and others with seed
2, that were compiled when these were done. `large_registers_gfx942.csv` has all tilings
of large tiles.
"""

from collections.abc import Mapping

import numpy as np
import pytest
from covering import one_of
from paths import ROOT
from register_ops import BEFORE, kernel_of
from register_table import Table

import comet
from comet.cost.gpu.layouts import Layout, Layouts
from comet.cost.gpu.registers import LaunchNumbers, thread_registers
from comet.cost.reals import Real

TABLE = Table("registers_gfx942.csv", "mi300x8")
LARGE = Table("large_registers_gfx942.csv", "mi300x8")
FEW: Mapping[Real, int] = {4: 400, 8: 232}
"""Of kernels with so few registers, by wavefronts, nearly all should be admitted."""
CORRELATION = 0.7
"""
The least rank correlation: that of flash decode, eight kernels of 66 to 150 registers.
"""
UNROLLED = "gated_mlp"
"""Two loops: LLVM unrolls the inner one, and a tiling is admitted that spills."""

BOTH_STORED = """
!c = tensor<512x512xbf16, #compound.dims<M, N>>
!f = tensor<512x512xf32, #compound.dims<M, N>>
func.func @f(%a: tensor<512x256xbf16, #compound.dims<M, K>>,
             %b: tensor<256x512xbf16, #compound.dims<K, N>>) -> (!c, !c) {
  %p = compound.contract %a, %b
      : tensor<512x256xbf16, #compound.dims<M, K>>,
        tensor<256x512xbf16, #compound.dims<K, N>> -> !f
  %e = compound.map exp %p : !f -> !f
  %y = compound.cast %e : !f -> !c
  %o = compound.cast %p : !f -> !c
  func.return %y, %o : !c, !c
}
"""


@pytest.mark.parametrize(("subtiles", "compiled"), [(1, 295), (2, 225)])
def test_a_result_and_what_it_is_computed_of_are_both_alive(
    subtiles: int, compiled: int
) -> None:
    """Compiled by Triton 3.9 for gfx942, in tiles of 256 x 128, nothing spilled."""
    hardware = ROOT / "samples" / "hardware" / "mi300x8.yaml"
    module = comet.compile(comet.parse(BOTH_STORED), hardware, BEFORE).module
    _, summary, gpu = kernel_of(module)
    numbers = LaunchNumbers(4, 2, subtiles=subtiles)
    found = thread_registers(summary, {"M": 256, "N": 128, "K": 32}, numbers, gpu)
    assert float(found) == pytest.approx(compiled, abs=20)


def test_a_product_takes_the_largest_instruction_that_it_fills() -> None:
    """Accumulators of 64 x 64 and of 16 x 64, by four wavefronts of 64 threads."""
    summary, gpu = TABLE.kernel("gemm")
    (made,) = summary.products.roles
    for rows, share in ((64, (32, 32, 2)), (16, (16, 16, 4))):
        layouts = Layouts(summary, {"M": rows, "N": 64, "K": 32}, 4, gpu)
        found = layouts.fragments[made]
        assert (found.rows, found.columns, found.lanes) == share


@pytest.mark.parametrize(
    ("rows", "columns", "warps", "layout"),
    [(32, 128, 8, (8, 1)), (16, 64, 8, (8, 1)), (128, 64, 8, (4, 2))],
)
def test_wavefronts_are_where_triton_puts_them(
    rows: int, columns: int, warps: int, layout: tuple[int, int]
) -> None:
    """As in the TTGIR of these kernels: warpsPerCTA."""
    summary, gpu = TABLE.kernel("gemm")
    blocks = {"M": rows, "N": columns, "K": 32}
    (found,) = Layouts(summary, blocks, warps, gpu).of.values()
    assert found == Layout(*layout)


def test_scores_stay_in_one_wavefront() -> None:
    """Of 16 queries: the scores by all along rows, their sums along columns."""
    summary, gpu = TABLE.kernel("attention")
    blocks = {"B": 1, "H": 1, "M": 16, "E": 16, "N": 64, "D": 128}
    scores, sums = Layouts(summary, blocks, 8, gpu).of.values()
    assert (scores, sums) == (Layout(8, 1), Layout(1, 8))


@one_of(2)
@pytest.mark.parametrize("op", TABLE.ops())
def test_registers_are_in_the_order_of_the_compiler(op: str) -> None:
    assert TABLE.correlation(op) >= CORRELATION


@pytest.mark.parametrize("op", TABLE.ops())
def test_no_tiling_that_spills_is_admitted(op: str) -> None:
    spilling = [row for row in TABLE.rows(op) if row.spilled]
    assert sum(TABLE.admits(op, row) for row in spilling) <= (op == UNROLLED)


def test_few_tilings_that_fit_are_rejected() -> None:
    rows = [(op, row) for op in TABLE.ops() for row in TABLE.rows(op)]
    whole = [TABLE.admits(op, row) for op, row in rows if not row.spilled]
    assert np.mean(whole) > 0.95


@one_of(2)
@pytest.mark.parametrize("op", LARGE.ops())
def test_no_large_tiling_that_spills_is_admitted(op: str) -> None:
    """
    Of those whose tiles alone take at least 128 registers of a thread.

    Accumulators that fill the registers of one kind are moved between both kinds, and
    in a loop of few iterations operands are read early.
    """
    spilling = [row for row in LARGE.rows(op) if row.spilled]
    few = [row for row in LARGE.rows(op) if row.registers < FEW[row.numbers.warps]]
    assert spilling
    assert not any(LARGE.admits(op, row) for row in spilling)
    assert np.mean([LARGE.admits(op, row) for row in few]) > 0.8
