"""Tables of compiled kernels that `benchmarks/registers.py` wrote, and the model."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np
from paths import ROOT
from register_ops import fused, kernel_of

from comet.cost.gpu.capacity import fits
from comet.cost.gpu.device import Device
from comet.cost.gpu.registers import LaunchNumbers, thread_registers
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks
from comet.cost.gpu.tiling import kernel_work
from comet.passes.schedule.tile.gpu.space import block_sizes

STACK = 64
"""Bytes of a stack that kernels have without spilling, for what is indexed."""


class Used(Protocol):
    """What a thread of a kernel uses."""

    @property
    def registers(self) -> int:
        """Its registers."""
        ...

    @property
    def spilled(self) -> int:
        """The bytes of it that are in memory."""
        ...


def spills(kernel: Used) -> bool:
    """Whether a kernel has no register left and keeps values in memory."""
    return kernel.spilled > STACK or (kernel.spilled > 0 and kernel.registers == 255)


@dataclass(frozen=True)
class Row:
    """A compiled tiling."""

    blocks: Mapping[str, int]
    numbers: LaunchNumbers
    registers: int
    spilled: int


@dataclass(frozen=True)
class Table:
    """A file of compiled tilings, and the hardware file that the model reads."""

    file: str
    hardware: str

    def kernel(self, op: str) -> tuple[KernelSummary, Device]:
        """Return the summary of an op's kernel, and the GPU."""
        return _kernel(op, self.hardware)

    def ops(self) -> list[str]:
        """Return the ops in the table, in order."""
        return list(dict.fromkeys(name for name, *_ in _lines(self.file)))

    def rows(self, op: str) -> list[Row]:
        """Return the compiled tilings of an op."""
        summary, _ = self.kernel(op)
        whole = {dim: block_sizes(summary, dim)[-1] for dim in summary.nest.extents}
        found: list[Row] = []
        for name, tiling, registers, spilled in _lines(self.file):
            if name == op:
                pairs = (each.split("=") for each in tiling.split())
                blocks = whole | {key: int(number) for key, number in pairs}
                numbers = LaunchNumbers(blocks.pop("warps"), blocks.pop("stages"))
                found.append(Row(blocks, numbers, int(registers), int(spilled)))
        return found

    def predicted(self, op: str) -> list[float]:
        """Return the registers that the model expects."""
        summary, gpu = self.kernel(op)
        return [
            float(thread_registers(summary, row.blocks, row.numbers, gpu))
            for row in self.rows(op)
        ]

    def correlation(self, op: str) -> float:
        """Return the rank correlation of registers (Spearman)."""
        compiled = [float(row.registers) for row in self.rows(op)]
        return correlation(compiled, self.predicted(op))

    def arrays(self, op: str) -> tuple[Blocks, LaunchNumbers]:
        """Return the block sizes and launch numbers of all tilings."""
        each = self.rows(op)
        blocks = {
            dim: np.array([float(row.blocks[dim]) for row in each])
            for dim in each[0].blocks
        }
        warps = np.array([float(row.numbers.warps) for row in each])
        stages = np.array([float(row.numbers.stages) for row in each])
        return blocks, LaunchNumbers(warps, stages)

    def admits(self, op: str, row: Row) -> bool:
        """Whether the model admits a tiling."""
        summary, gpu = self.kernel(op)
        work = kernel_work(summary, row.blocks, row.numbers, gpu)
        return bool(fits(summary, row.blocks, work.needs, gpu))


@cache
def _kernel(op: str, hardware: str) -> tuple[KernelSummary, Device]:
    return kernel_of(fused(op, hardware))[1:]


@cache
def _lines(file: str) -> list[tuple[str, str, str, str]]:
    """Return op, tiling, registers and spilled bytes of each line."""
    with (ROOT / "tests" / "data" / file).open() as lines:
        found = list(csv.reader(each for each in lines if not each.startswith("#")))
    return [(op, tiling, used, spilled) for op, tiling, used, spilled, _ in found[1:]]


def correlation(values: list[float], others: list[float]) -> float:
    """Return the rank correlation of two lists (Spearman)."""
    return float(np.corrcoef(_ranks(values), _ranks(others))[0, 1])


def _ranks(values: list[float]) -> list[float]:
    """Return the position of each value in their order; equal ones share a mean."""
    ordered = np.sort(values)
    left = np.searchsorted(ordered, values, "left")
    return list((left + np.searchsorted(ordered, values, "right")) / 2)
