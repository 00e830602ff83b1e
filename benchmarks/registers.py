"""
Compiles random tilings of ops, and writes what registers each of them takes.

    python benchmarks/registers.py [--seed 1] [--each 70] [--ops gemm attention]
        [--target sm_90] > tests/data/registers.csv
    python benchmarks/registers.py --each 30 --ops softmax layernorm rmsnorm \\
        > tests/data/row_registers.csv
    python benchmarks/registers.py --each 25 --ops sum_of_gemms gemm_of_heads \\
        sum_of_heads > tests/data/sum_registers.csv
    python benchmarks/registers.py --deep --each 16 --ops gemm gemm_softmax \\
        gemm_rmsnorm gemm_residual sum_of_gemms > tests/data/deep_registers.csv
    python benchmarks/registers.py --large --target gfx942 --ops gemm gemm_softmax \\
        gemm_rmsnorm sum_of_gemms scores > tests/data/large_registers_gfx942.csv

Tilings are drawn by the seed from the space of `tile`, those included that its register
model rejects, as long as their tiles alone fit a multiprocessor. A line holds the op,
the block of each dimension with num_warps and num_stages, the registers of a thread,
the bytes that it spills, and the bytes of shared memory of a program; the first line
holds the versions. No GPU is needed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path

from register_ops import OPS, ROWS, SHORT, SUMS, fused, kernel_of
from xdsl.dialects.builtin import ModuleOp

import comet
from comet.cost.gpu.capacity import holds, shared_need
from comet.cost.gpu.device import Device
from comet.cost.gpu.registers import REGISTER, alive_bytes
from comet.cost.gpu.summary import KernelSummary
from comet.dialects.schedule.launch import LaunchAttr
from comet.passes.analysis.grid import grid_nodes
from comet.passes.schedule.plan_string import format_plan
from comet.passes.schedule.tile.gpu import plan_with
from comet.passes.schedule.tile.gpu.space import (
    LAUNCHES,
    LONG_DEPTH,
    SHORT_DEPTHS,
    KernelTiling,
    block_sizes,
)
from comet.runtime.compile_check import Compiled, compiled, recorded_launches

MACHINES = {"sm_90": "h200x1", "gfx942": "mi300x8"}
LARGE = 128
"""Registers of a thread for large tiles."""
AFTER = "outline-kernels,coalesce-loops,lower-to-triton"


@dataclass(frozen=True)
class Drawn:
    """A tiling of the only kernel of an op."""

    op: str
    blocks: Mapping[str, int]
    """The block of each dimension, num_warps and num_stages."""

    def line(self, found: Compiled) -> str:
        """Return the line of the table."""
        tiling = " ".join(f"{name}={number}" for name, number in self.blocks.items())
        return f"{self.op},{tiling},{found.registers},{found.spills},{found.shared}"


def drawn(
    op: str, module: ModuleOp, seed: int, count: int, *, deep: bool, large: bool
) -> list[Drawn]:
    """
    Return random tilings whose tiles a multiprocessor holds.

    If they are `deep`, they sum a dimension in the longest blocks; if they are `large`,
    tiles alone take `LARGE` registers of a thread, and summed blocks may be short.
    """
    _, summary, gpu = kernel_of(module)
    dims = (*summary.nest.grid, *summary.nest.loops)
    summed = summary.products.depths.intersection(summary.nest.loops)
    sizes: dict[str, Sequence[int]] = {
        dim: block_sizes(summary, dim, long=deep) for dim in summary.nest.extents
    }
    if large:
        sizes |= {dim: (*SHORT_DEPTHS, *sizes[dim]) for dim in summed}
    sizes |= LAUNCHES
    rows: list[dict[str, int]] = [
        dict(zip(sizes, row, strict=True)) for row in product(*sizes.values())
    ]
    held = [
        Drawn(op, {name: row[name] for name in (*dims, *LAUNCHES)})
        for row in rows
        if holds(summary, row, shared_need(summary, row, row["stages"], gpu), gpu)
        and (not deep or any(row[dim] == LONG_DEPTH for dim in summed))
        and (not large or _tile_registers(summary, row, gpu) >= LARGE)
    ]
    return random.Random(seed).sample(held, min(count, len(held)))


def _tile_registers(
    summary: KernelSummary, row: Mapping[str, int], gpu: Device
) -> float:
    """Return the registers of a thread for the tiles of a program alone."""
    threads = gpu.limits.warp_threads * row["warps"]
    return float(alive_bytes(summary, row, 1)) / threads / REGISTER


def module_text(module: ModuleOp, tiling: Drawn) -> str:
    """Return the emitted Triton module of an op with a tiling."""
    function, _, _ = kernel_of(module)
    (node,) = grid_nodes(function)
    blocks = dict(tiling.blocks)
    launch = LaunchAttr(blocks.pop("warps"), blocks.pop("stages"))
    plan = format_plan(plan_with({node: KernelTiling(blocks, launch, 0, {}, 0)}))
    passes = f'tile{{factors="{plan}"}},{AFTER}'
    return comet.compile(module, pipeline=passes).emit("triton")


def compiled_kernel(text: str, target: str) -> Compiled:
    """Compile the only kernel of a Triton module."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(text)
        (launch,) = recorded_launches(str(path))
        return compiled(launch, target)


def triton_version() -> str:
    """Return the version of Triton that compiles, of two numbers."""
    return ".".join(version("triton").split(".")[:2])


def compiled_tilings(
    cases: Iterable[tuple[str, Mapping[str, int]]],
    text: Callable[[str, Mapping[str, int]], str],
) -> Iterator[tuple[str, Compiled]]:
    """
    Compile the tilings of ops that fit, for sm_90.

    Yields the start of a line of the table, with the version of Triton, and what the
    kernel uses. `text` gives the emitted module of an op with a tiling, or raises
    `CometError` if that does not fit.
    """
    for op, tiling in cases:
        try:
            source = text(op, tiling)
        except comet.CometError:
            continue
        label = " ".join(f"{name}={number}" for name, number in tiling.items())
        yield f"{triton_version()},{op},{label}", compiled_kernel(source, "sm_90")


def lines(op: str, options: argparse.Namespace) -> Iterator[str]:
    """Compile tilings of an op; yield their lines."""
    module = fused(op, MACHINES[options.target])
    numbers = options.seed, options.each
    kinds = {"deep": options.deep, "large": options.large}
    for tiling in drawn(op, module, *numbers, **kinds):
        kernel = compiled_kernel(module_text(module, tiling), options.target)
        yield tiling.line(kernel)


def main() -> int:
    """Compile and print; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1, help="of the tilings")
    parser.add_argument("--each", type=int, default=70, help="tilings of each op")
    ops = (*OPS, *ROWS, *SUMS, *SHORT)
    parser.add_argument("--ops", nargs="+", choices=ops, default=list(OPS))
    parser.add_argument("--deep", action="store_true", help="those with long blocks")
    parser.add_argument("--large", action="store_true", help="those with large tiles")
    parser.add_argument("--target", choices=MACHINES, default="sm_90")
    options = parser.parse_args()
    if os.environ.get("TRITON_INTERPRET", "0") == "1":
        print("registers: error: TRITON_INTERPRET is set", file=sys.stderr)
        return 1
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    versions = f"Triton {version('triton')} for {options.target}, seed {options.seed}"
    print(f"# {versions}", "op,tiling,registers,spilled,shared", sep="\n")
    for op in options.ops:
        for line in lines(op, options):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
