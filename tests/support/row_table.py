"""
The tables of kernels on rows, without products, as compiled for gfx942.

`benchmarks/row_registers.py` wrote them: of whole rows, and of loops over their parts.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from exchange_tables import Row, lines_of
from register_ops import kernel_of
from register_table import Table
from row_registers import RowKernel

from comet.cost.gpu.device import Device
from comet.cost.gpu.registers import LaunchNumbers
from comet.cost.gpu.summary import KernelSummary
from comet.dialects.schedule.attributes import power_of_two

NO_NUMBERS: Mapping[str, int] = {}
WHOLE, LOOPS = "row_registers_gfx942.csv", "row_loops_gfx942.csv"


def rows_of(
    op: str,
    triton: str,
    *,
    spilled: bool,
    loops: bool = False,
    tiling: Mapping[str, int] = NO_NUMBERS,
) -> Iterator[Row]:
    """
    Yield the kernels of an op that a version of Triton compiled, spilled or not.

    Only those with the numbers of `tiling`, of which each kernel has more.
    """
    for name, numbers, usage in lines_of(LOOPS if loops else WHOLE, triton):
        kernel = RowKernel.of(name, loops=loops)
        asked = kernel.op == op and tiling.items() <= numbers.items()
        if asked and bool(usage[1]) is spilled:
            yield row_of(kernel, numbers, usage)


def row_of(
    kernel: RowKernel, tiling: Mapping[str, int], usage: Sequence[int] = (0, 0, 0)
) -> Row:
    """Return a kernel with a tiling, and what it uses; a tile may be of whole rows."""
    summary, gpu = _kernel(kernel)
    columns = tiling.get("N", power_of_two(kernel.columns))
    blocks, launch = {"M": tiling["M"], "N": columns}, LaunchNumbers(tiling["warps"], 3)
    return Row(summary, gpu, blocks, launch, *usage)


@cache
def _kernel(kernel: RowKernel) -> tuple[KernelSummary, Device]:
    """Return the summary of a kernel, and the GPU of the hardware file."""
    gpu = Table("registers_gfx942.csv", "mi300x8").kernel("gemm")[1]
    return kernel_of(kernel.module())[1], gpu
