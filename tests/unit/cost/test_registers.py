"""
The model of registers against kernels that ptxas compiled for sm_90.

`tests/data/registers.csv` was written by `benchmarks/registers.py`, with seed 2 for the
two ops that were held out: `gemm_gemm` and `attention_causal` were compiled when the
model was done. It was made from the others. `registers_3.6.csv` has the same tilings,
compiled by Triton 3.6 when the model was done.
"""

from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np
import pytest
from covering import one_of
from hardware import with_figures
from register_ops import OPS, ROWS, fused, kernel_of
from register_table import Row, Table, correlation, spills

from comet.cost.from_ir import bodies
from comet.cost.gpu.device import Device
from comet.cost.gpu.layouts import Layout, Layouts
from comet.cost.gpu.registers import LaunchNumbers, thread_registers
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks
from comet.cost.gpu.tiling import price
from comet.dialects.dataflow.loop_nests import Nest
from comet.dialects.schedule import SpatialOp

TABLE = Table("registers.csv", "h200x1")
"""By Triton 3.9."""
OLDEST_TABLE = Table("registers_3.6.csv", "h200x1")
VERSIONS = {"3.9": TABLE, "3.6": OLDEST_TABLE}
ROW_TABLE = Table("row_registers.csv", "h200x1")
"""Kernels without products."""
SUM_TABLE = Table("sum_registers.csv", "h200x1")
"""Sums of products, and products that are summed over several dimensions."""
NESTED_TABLE = Table("nested_registers.csv", "h200x1")
"""Products in nested loops, before `coalesce-loops` made one of them."""
DEEP_TABLE = Table("deep_registers.csv", "h200x1")
"""Kernels that sum a dimension in blocks of 128."""
CORRELATION = 0.9
"""The least rank correlation."""


def test_products_of_each_loop_have_a_layout_of_their_own() -> None:
    """Four warps: gate and up share a loop, and their tiles are wider than high."""
    summary, gpu = TABLE.kernel("gated_mlp")
    blocks = {"M": 32, "K": 64, "N": 64, "L": 32}
    gate, up, down = summary.products.roles
    layouts = Layouts(summary, blocks, 4, gpu)
    assert gate == up
    assert layouts.of[gate] == Layout(1, 4)
    assert layouts.of[down] == Layout(2, 2)


def test_a_loop_of_one_trip_is_none() -> None:
    """Then all products are in one body, where the last decides."""
    summary, gpu = TABLE.kernel("gated_mlp")
    blocks = {"M": 32, "K": summary.nest.extents["K"], "N": 64, "L": 32}
    gate, _, down = summary.products.roles
    layouts = Layouts(summary, blocks, 4, gpu)
    assert layouts.of[gate] == layouts.of[down] == Layout(4, 1)


@pytest.mark.parametrize(
    ("op", "mean", "low"), [("gated_mlp", 0.45, 0.5), ("gemm_gemm", 0.9, 0.55)]
)
def test_a_loop_around_another_one_takes_registers(
    op: str, mean: float, low: float
) -> None:
    """
    Of kernels that have registers left, relative to the errors without the terms.

    That is the mean error, and the most by which an estimate is too low.
    """
    summary, gpu = TABLE.kernel(op)
    none = with_figures(
        gpu,
        outer_loop_registers=0,
        nested_address_registers=0,
        copies_pass_registers=True,
    )
    errors: dict[int, list[float]] = {0: [], 1: []}
    for row in TABLE.rows(op):
        if row.registers < 250:
            for index, each in enumerate((none, gpu)):
                numbers = row.blocks, row.numbers, each
                found = float(thread_registers(summary, *numbers))
                errors[index].append(row.registers - found)
    assert np.mean(np.abs(errors[1])) < mean * np.mean(np.abs(errors[0]))
    assert max(errors[1]) < low * max(errors[0])


@pytest.mark.parametrize("table", VERSIONS.values(), ids=VERSIONS)
def test_the_table_has_enough_tilings(table: Table) -> None:
    assert sum(len(table.rows(op)) for op in OPS) >= 300


@one_of(2)
@pytest.mark.parametrize(("op", "triton"), list(product(OPS, VERSIONS)))
def test_registers_are_in_the_order_of_the_compiler(op: str, triton: str) -> None:
    assert VERSIONS[triton].correlation(op) >= CORRELATION


def test_a_transposed_operand_is_whole_without_a_pipeline() -> None:
    """All warps have the keys: 64 x 128 numbers of 16 bits are 128 registers each."""
    tiling = {"G": 16, "D": 128, "S": 64, "E": 16}
    op = "flash_decode"
    (alone,) = (
        (row, expected)
        for row, expected in zip(TABLE.rows(op), TABLE.predicted(op))
        if row.numbers == LaunchNumbers(4, 1) and tiling.items() <= row.blocks.items()
    )
    row, expected = alone
    assert row.registers == pytest.approx(expected, abs=5)
    summary, gpu = TABLE.kernel(op)
    ahead = thread_registers(summary, row.blocks, LaunchNumbers(4, 2), gpu)
    assert float(ahead) < expected - 30


@pytest.mark.parametrize(
    ("op", "tiling", "arriving"),
    [
        ("gated_mlp", {"M": 128, "K": 64, "N": 64, "L": 32}, 64),
        ("attention", {"M": 128, "D": 128, "N": 64, "E": 128}, 0),
        ("gemm", {"M": 128, "K": 64, "N": 128}, 64),
        ("gemm", {"M": 32, "K": 64, "N": 128}, 0),
    ],
)
def test_what_an_iteration_loads_is_beside_the_accumulator(
    op: str, tiling: Blocks, arriving: int
) -> None:
    """
    Four warps, one stage: 128 x 64 + 2 * 64 x 64 numbers of 16 bits are 64 registers.

    Not what is loaded before the loop, not beside an accumulator that the iteration
    starts, and not where operands in registers take more.
    """
    summary, gpu = TABLE.kernel(op)
    blocks = {dim: tiling.get(dim, 1) for dim in summary.nest.extents}
    found = [
        float(thread_registers(summary, blocks, LaunchNumbers(4, 1), each))
        for fraction in (0, 1)
        for each in [with_figures(gpu, load_fraction=fraction)]
    ]
    assert found[1] - found[0] == arriving


@pytest.mark.parametrize("op", ["flash_decode", "gemm_layernorm"])
def test_many_tilings_are_priced_like_each(op: str) -> None:
    summary, gpu = TABLE.kernel(op)
    found = thread_registers(summary, *TABLE.arrays(op), gpu)
    assert list(np.asarray(found)) == TABLE.predicted(op)


@pytest.mark.parametrize("triton", VERSIONS)
@pytest.mark.parametrize("op", OPS)
def test_no_tiling_that_spills_is_admitted(op: str, triton: str) -> None:
    table = VERSIONS[triton]
    spilling = [row for row in table.rows(op) if spills(row)]
    assert not any(table.admits(op, row) for row in spilling)


def test_few_of_the_best_are_lost() -> None:
    """A rejected tiling is lost if it is among the best and no other is as fast."""
    rejected = lost = 0
    for op in OPS:
        summary, gpu = TABLE.kernel(op)
        times = np.asarray(price(summary, *TABLE.arrays(op), gpu).seconds)
        admitted = np.array([TABLE.admits(op, row) for row in TABLE.rows(op)])
        whole = np.array([not spills(row) for row in TABLE.rows(op)])
        fifth = np.sort(times[whole])[:5][-1]
        fastest = whole & ~admitted & (times <= fifth)
        rejected += np.sum(~admitted)
        lost += np.sum(fastest & (times < np.min(times[admitted])))
    assert lost <= 0.05 * rejected


@pytest.mark.parametrize("op", ROWS)
def test_registers_of_kernels_without_products(op: str) -> None:
    """Loaded tiles are widened element by element; LayerNorm is taken for too small."""
    pairs = list(zip(ROW_TABLE.rows(op), ROW_TABLE.predicted(op), strict=True))
    assert ROW_TABLE.correlation(op) >= CORRELATION
    errors = [
        abs(expected - row.registers) for row, expected in pairs if not row.spilled
    ]
    assert np.mean(errors) <= {"layernorm": 25}.get(op, 10)
    assert not any(ROW_TABLE.admits(op, row) for row, _ in pairs if spills(row))


@pytest.mark.parametrize("op", ["sum_of_gemms", "sum_of_heads"])
def test_addresses_of_sums_take_registers(op: str) -> None:
    """The order of kernels is closer to the compiler's with them than without."""
    summary, gpu = SUM_TABLE.kernel(op)
    none = with_figures(gpu, summed_address_registers=0)
    rows = SUM_TABLE.rows(op)
    assert correlated(rows, summary, gpu) > max(correlated(rows, summary, none), 0.7)
    assert not any(SUM_TABLE.admits(op, row) for row in rows if spills(row))


def test_addresses_of_nested_loops_take_registers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same of loops around the loop of a product that are not one with it."""
    rows = NESTED_TABLE.rows("gemm_of_heads")
    monkeypatch.setattr(bodies, "coalescible_nests", no_nests)
    _, summary, gpu = kernel_of(fused("gemm_of_heads", "h200x1"))
    none = with_figures(gpu, nested_address_registers=0)
    assert correlated(rows, summary, gpu) > max(correlated(rows, summary, none), 0.9)


def test_one_loop_for_a_nest_takes_the_registers_of_one() -> None:
    op = "gemm_of_heads"
    assert SUM_TABLE.correlation(op) >= 0.95
    pairs = zip(SUM_TABLE.rows(op), SUM_TABLE.predicted(op), strict=True)
    errors = [abs(model - row.registers) for row, model in pairs if not row.spilled]
    assert np.mean(errors) <= 10
    assert not any(
        SUM_TABLE.admits(op, row) for row in SUM_TABLE.rows(op) if spills(row)
    )


def no_nests(_: SpatialOp) -> Iterable[Nest]:
    """Return that no nest of a kernel can be one loop."""
    return ()


def correlated(rows: Sequence[Row], summary: KernelSummary, gpu: Device) -> float:
    """Return the rank correlation of compiled registers and those of the model."""
    compiled = [float(row.registers) for row in rows]
    expected = (thread_registers(summary, r.blocks, r.numbers, gpu) for r in rows)
    return correlation(compiled, list(map(float, expected)))


def test_a_sum_of_products_has_one_accumulator() -> None:
    """256 x 128 numbers are 128 registers of 256 threads; two of them would not fit."""
    summary, gpu = SUM_TABLE.kernel("sum_of_gemms")
    blocks = {"M": 256, "K": 32, "N": 128}
    found = float(thread_registers(summary, blocks, LaunchNumbers(8, 3), gpu))
    # Triton 3.6 for sm_90 takes 182.
    assert found == pytest.approx(182, abs=5)


@pytest.mark.parametrize("op", DEEP_TABLE.ops())
def test_kernels_with_long_blocks_need_no_more_registers_than_expected(op: str) -> None:
    rows, expected = DEEP_TABLE.rows(op), DEEP_TABLE.predicted(op)
    assert len(rows) == 16
    assert not any(DEEP_TABLE.admits(op, row) for row in rows if row.spilled)
    fitting = [(row.registers, e) for row, e in zip(rows, expected) if not spills(row)]
    assert max(registers - e for registers, e in fitting) <= 15
