"""
The table of kernels on rows, without products, as compiled for gfx942.

`benchmarks/row_registers.py` wrote it.
"""

from collections.abc import Iterator
from functools import cache

from exchange_tables import Row, lines_of
from register_ops import kernel_of
from register_table import Table
from row_registers import RowKernel

from comet.cost.gpu.device import Device
from comet.cost.gpu.registers import LaunchNumbers
from comet.cost.gpu.summary import KernelSummary
from comet.dialects.schedule.attributes import power_of_two

FILE = "row_registers_gfx942.csv"


def rows_of(op: str, triton: str) -> Iterator[Row]:
    """Yield the kernels of an op that a version of Triton compiled."""
    for name, tiling, usage in lines_of(FILE, triton):
        kernel = RowKernel.of(name)
        if kernel.op == op:
            yield row_of(kernel, tiling["M"], tiling["warps"], *usage)


def row_of(
    kernel: RowKernel, rows: int, warps: int, registers: int, spilled: int, shared: int
) -> Row:
    """Return a kernel whose programs have so many rows, and what it uses."""
    summary, gpu = _kernel(kernel)
    blocks = {"M": rows, "N": power_of_two(kernel.columns)}
    launch = LaunchNumbers(warps, 3)
    return Row(summary, gpu, blocks, launch, registers, spilled, shared)


@cache
def _kernel(kernel: RowKernel) -> tuple[KernelSummary, Device]:
    """Return the summary of a kernel, and the GPU of the hardware file."""
    gpu = Table("registers_gfx942.csv", "mi300x8").kernel("gemm")[1]
    return kernel_of(kernel.module())[1], gpu
