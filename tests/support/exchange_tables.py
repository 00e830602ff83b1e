"""
The tables of kernels whose blocks or programs exchange, as compiled for sm_90.

`benchmarks/cluster_registers.py` and `benchmarks/group_registers.py` wrote them.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import cluster_registers as clusters
import group_registers as groups
from group_programs import H200
from paths import ROOT
from register_ops import BEFORE, kernel_of

import comet
from comet.cost.gpu.capacity import fits
from comet.cost.gpu.clusters import block_of
from comet.cost.gpu.device import Device
from comet.cost.gpu.registers import LaunchNumbers, thread_registers
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks
from comet.cost.gpu.tiling import kernel_work

GROUPS_BEFORE = (
    "decompose{accumulator=f32},stream{counts=false},distribute{dim=N axes=cta},"
    "insert-collectives,place-collectives{at=SMEM},lower-reductions,fuse{strategy=full}"
)


@dataclass(frozen=True)
class Row:
    """A compiled kernel, and what the model reads of it."""

    summary: KernelSummary
    gpu: Device
    blocks: Blocks
    """Those of one thread block."""
    numbers: LaunchNumbers
    registers: int
    spilled: int
    shared: int
    remote: int = 0
    """Loads from other thread blocks."""

    @property
    def expected(self) -> float:
        """The registers that the model expects."""
        return float(
            thread_registers(self.summary, self.blocks, self.numbers, self.gpu)
        )

    @property
    def admitted(self) -> bool:
        """Whether the model admits the tiling."""
        work = kernel_work(self.summary, self.blocks, self.numbers, self.gpu)
        return bool(fits(self.summary, self.blocks, work.needs, self.gpu))


def cluster_rows(triton: str) -> Iterator[Row]:
    """Yield the kernels of clusters that a version of Triton compiled."""
    for op, tiling, usage in lines_of("cluster_registers.csv", triton):
        columns, cluster = tiling["N"], tiling["cluster"]
        summary, gpu = _cluster_kernel(op, columns, triton)
        blocks = {"M": tiling["M"], "N": columns, "K": clusters.DEPTH}
        launch = LaunchNumbers(tiling["warps"], clusters.STAGES, cluster=cluster)
        yield Row(summary, gpu, block_of(summary, blocks, cluster), launch, *usage)


def group_rows(triton: str) -> Iterator[Row]:
    """Yield the kernels of groups of programs that a version of Triton compiled."""
    for op, tiling, usage in lines_of("group_registers.csv", triton):
        ctas = tiling["ctas"]
        summary, gpu = _group_kernel(op, ctas, ctas * tiling["N"])
        blocks = {dim: tiling[dim] for dim in ("M", "N", "K")} | {"cta_part": ctas}
        launch = LaunchNumbers(tiling["warps"], tiling["stages"])
        yield Row(summary, gpu, blocks, launch, *usage)


def lines_of(
    file: str, triton: str
) -> Iterator[tuple[str, Mapping[str, int], tuple[int, ...]]]:
    """Yield the op, the numbers of the tiling and the usage of each kernel."""
    with (ROOT / "tests" / "data" / file).open() as lines:
        found = list(csv.reader(line for line in lines if not line.startswith("#")))
    for version, op, tiling, *usage in found[1:]:
        if version == triton:
            pairs = (pair.split("=") for pair in tiling.split())
            yield op, {k: int(n) for k, n in pairs}, tuple(map(int, usage))


@cache
def _cluster_kernel(op: str, columns: int, triton: str) -> tuple[KernelSummary, Device]:
    """Return the summary of an op's kernel, and the GPU with a version of Triton."""
    attach = H200.replace("}", f' triton="{triton}"}}')
    return _kernel(clusters.program(op, columns), f"{attach},{BEFORE}")


@cache
def _group_kernel(op: str, ctas: int, columns: int) -> tuple[KernelSummary, Device]:
    """Return the summary of an op's kernel, and the GPU."""
    pipeline = f"{H200},add-ctas{{ctas={ctas}}},{GROUPS_BEFORE}"
    return _kernel(groups.source(op, columns), pipeline)


def _kernel(text: str, pipeline: str) -> tuple[KernelSummary, Device]:
    return kernel_of(comet.compile(comet.parse(text), pipeline=pipeline).module)[1:]
