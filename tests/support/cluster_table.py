"""The table of kernels with clusters that `benchmarks/cluster_registers.py` wrote."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from cluster_registers import DEPTH, STAGES, program
from paths import ROOT
from register_ops import BEFORE, kernel_of

import comet
from comet.cost.gpu.clusters import block_of
from comet.cost.gpu.device import Device
from comet.cost.gpu.registers import LaunchNumbers
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.terms import Blocks


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
    remote: int
    """Loads from other thread blocks."""


def rows(triton: str) -> Iterator[Row]:
    """Yield the kernels that a version of Triton compiled."""
    with (ROOT / "tests" / "data" / "cluster_registers.csv").open() as lines:
        found = list(csv.reader(line for line in lines if not line.startswith("#")))
    for version, op, tiling, *usage in found[1:]:
        if version == triton:
            numbers = {k: int(n) for k, n in (p.split("=") for p in tiling.split())}
            summary, gpu = _kernel(op, numbers["N"], triton)
            blocks = {"M": numbers["M"], "N": numbers["N"], "K": DEPTH}
            cluster = numbers["cluster"]
            launch = LaunchNumbers(numbers["warps"], STAGES, cluster=cluster)
            block = block_of(summary, blocks, cluster)
            yield Row(summary, gpu, block, launch, *map(int, usage))


@cache
def _kernel(op: str, columns: int, triton: str) -> tuple[KernelSummary, Device]:
    """Return the summary of an op's kernel, and the GPU with a version of Triton."""
    machine = f'path="{ROOT / "samples" / "hardware" / "h200x1.yaml"}"'
    attach = f'attach-hardware{{{machine} triton="{triton}"}}'
    module = comet.parse(program(op, columns))
    return kernel_of(comet.compile(module, pipeline=f"{attach},{BEFORE}").module)[1:]
