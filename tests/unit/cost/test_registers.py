"""
The model of registers against kernels that ptxas compiled for sm_90.

`tests/data/registers.csv` was written by `benchmarks/registers.py`, with seed 2 for the
two ops that were held out: `gemm_gemm` and `attention_causal` were compiled when the
model was done. It was made from the others.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from paths import ROOT
from register_ops import OPS, fused, kernel_of

from comet.cost.gpu.capacity import fits
from comet.cost.gpu.kernel import Device
from comet.cost.gpu.layouts import Layout, Layouts
from comet.cost.gpu.registers import LaunchNumbers, thread_registers
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.tiling import price
from comet.passes.schedule.tile.gpu.space import block_sizes

STACK = 64
"""Bytes of a stack that kernels have without spilling, for what is indexed."""


CORRELATION = 0.9
"""
The least rank correlation. Of the two loops of `gated_mlp`, the compiler unrolls the
inner one as it likes: one tiling is admitted that spills 40 bytes.
"""


@dataclass(frozen=True)
class Row:
    """A compiled tiling."""

    blocks: Mapping[str, int]
    numbers: LaunchNumbers
    registers: int
    spilled: int

    @property
    def spills(self) -> bool:
        """Whether it has no register left and keeps values in memory."""
        return self.spilled > STACK or (self.spilled > 0 and self.registers == 255)


@cache
def kernel(op: str) -> tuple[KernelSummary, Device]:
    """Return the summary of an op's kernel, and the GPU."""
    return kernel_of(fused(op, "h200x1"))[1:]


@cache
def rows(op: str) -> list[Row]:
    """Return the compiled tilings of an op."""
    summary, _ = kernel(op)
    whole = {dim: block_sizes(summary, dim)[-1] for dim in summary.extents}
    found: list[Row] = []
    with (ROOT / "tests" / "data" / "registers.csv").open() as file:
        for name, *cells in csv.reader(file):
            if name != op:
                continue
            tiling, registers, spilled, _ = cells
            pairs = (each.split("=") for each in tiling.split())
            blocks = whole | {key: int(number) for key, number in pairs}
            numbers = LaunchNumbers(blocks.pop("warps"), blocks.pop("stages"))
            found.append(Row(blocks, numbers, int(registers), int(spilled)))
    return found


def predicted(op: str) -> list[float]:
    """Return the registers that the model expects."""
    summary, gpu = kernel(op)
    return [
        float(thread_registers(summary, row.blocks, row.numbers, gpu))
        for row in rows(op)
    ]


def ranks(values: list[float]) -> list[float]:
    """Return the position of each value in their order; equal ones share a mean."""
    ordered = np.sort(values)
    left = np.searchsorted(ordered, values, "left")
    return list((left + np.searchsorted(ordered, values, "right")) / 2)


def test_products_of_each_loop_have_a_layout_of_their_own() -> None:
    """Four warps: gate and up share a loop, and their tiles are wider than high."""
    summary, gpu = kernel("gated_mlp")
    blocks = {"M": 32, "K": 64, "N": 64, "L": 32}
    gate, up, down = summary.products
    layouts = Layouts(summary, blocks, 4, gpu)
    assert gate == up
    assert layouts.of[gate] == Layout(1, 4)
    assert layouts.of[down] == Layout(2, 2)


def test_a_loop_of_one_trip_is_none() -> None:
    """Then all products are in one body, where the last decides."""
    summary, gpu = kernel("gated_mlp")
    blocks = {"M": 32, "K": summary.extents["K"], "N": 64, "L": 32}
    gate, _, down = summary.products
    layouts = Layouts(summary, blocks, 4, gpu)
    assert layouts.of[gate] == layouts.of[down] == Layout(4, 1)


def test_the_table_has_enough_tilings() -> None:
    assert sum(len(rows(op)) for op in OPS) >= 300


@pytest.mark.parametrize("op", OPS)
def test_registers_are_in_the_order_of_the_compiler(op: str) -> None:
    compiled = [float(row.registers) for row in rows(op)]
    correlation = np.corrcoef(ranks(compiled), ranks(predicted(op)))[0, 1]
    assert correlation >= CORRELATION


def test_a_transposed_operand_is_whole_without_a_pipeline() -> None:
    """All warps have the keys: 64 x 128 numbers of 16 bits are 128 registers each."""
    tiling = {"G": 16, "D": 128, "S": 64, "E": 16}
    (alone,) = (
        (row, expected)
        for row, expected in zip(rows("flash_decode"), predicted("flash_decode"))
        if row.numbers == LaunchNumbers(4, 1) and tiling.items() <= row.blocks.items()
    )
    row, expected = alone
    assert row.registers == pytest.approx(expected, abs=5)
    summary, gpu = kernel("flash_decode")
    ahead = thread_registers(summary, row.blocks, LaunchNumbers(4, 2), gpu)
    assert float(ahead) < expected - 30


@pytest.mark.parametrize("op", ["flash_decode", "gemm_layernorm"])
def test_many_tilings_are_priced_like_each(op: str) -> None:
    summary, gpu = kernel(op)
    found = thread_registers(summary, *arrays(op), gpu)
    assert list(np.asarray(found)) == predicted(op)


@pytest.mark.parametrize("op", OPS)
def test_no_tiling_that_spills_is_admitted(op: str) -> None:
    spilling = [row for row in rows(op) if row.spills]
    assert sum(admits(op, row) for row in spilling) <= (op == "gated_mlp")


def test_few_of_the_best_are_lost() -> None:
    """A rejected tiling is lost if it is among the best and no other is as fast."""
    rejected = lost = 0
    for op in OPS:
        summary, gpu = kernel(op)
        times = np.asarray(price(summary, *arrays(op), gpu).seconds)
        admitted = np.array([admits(op, row) for row in rows(op)])
        whole = np.array([not row.spills for row in rows(op)])
        fifth = np.sort(times[whole])[:5][-1]
        fastest = whole & ~admitted & (times <= fifth)
        rejected += np.sum(~admitted)
        lost += np.sum(fastest & (times < np.min(times[admitted])))
    assert lost <= 0.05 * rejected


def arrays(op: str) -> tuple[Mapping[str, NDArray[np.float64]], LaunchNumbers]:
    """Return the block sizes and launch numbers of all tilings."""
    each = rows(op)
    blocks = {
        dim: np.array([float(row.blocks[dim]) for row in each])
        for dim in each[0].blocks
    }
    warps = np.array([float(row.numbers.warps) for row in each])
    return blocks, LaunchNumbers(
        warps, np.array([float(row.numbers.stages) for row in each])
    )


def admits(op: str, row: Row) -> bool:
    """Whether the model admits a tiling."""
    summary, gpu = kernel(op)
    return bool(fits(summary, row.blocks, row.numbers, gpu))
