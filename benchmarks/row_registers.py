"""
Compiles kernels on rows for gfx942, and writes what each thread takes.

    python benchmarks/row_registers.py > tests/data/row_registers_gfx942.csv
    python benchmarks/row_registers.py --seed 2 --count 90  # by Triton 3.6
    python benchmarks/row_registers.py --loops > tests/data/row_loops_gfx942.csv

A program has whole rows, or `--loops` over parts of them. The kernels have no products:
softmax, LayerNorm, RMSNorm and cross entropy, also of a sum with a residual, which
LayerNorm and RMSNorm store beside their result. They are drawn by the seed: of whole
rows from all those of 32 to 256 elements of a thread, of loops from those whose tile in
f32 takes a quarter or half of the registers of a compute unit, where most that spill
begin to. A line holds the version of Triton, the op, its exponential, the element type
and the columns, the tiling, the registers of a thread, the bytes that it spills, and
the bytes of shared memory of a program. The tables have lines of several versions or
seeds: append those after the first two. No GPU is needed.
"""

from __future__ import annotations

import argparse
import atexit
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from ladder_programs import SAMPLES
from register_ops import BEFORE
from registers import (
    MACHINES,
    Drawn,
    compiled_kernel,
    module_text,
    triton_version,
)
from row_ops import OPS
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import comet
from comet.dialects.schedule.attributes import power_of_two
from comet.passes.analysis.grid import grid_nodes
from comet.passes.schedule.tile.gpu.space import ALL_WARPS, GRID_BLOCKS, LOOP_BLOCKS

TARGET = "gfx942"
LANES = 64
"""Threads of a wavefront."""
ROWS = 8192
COLUMNS = (8192, 12000, 16384, 32000, 32768, 50257, 65536)
TYPES = ("f16", "bf16", "f32")
TILINGS: Mapping[str, Sequence[int]] = {"M": (1, 2, 4, 8), "warps": ALL_WARPS}
LOOPS: Mapping[str, Sequence[int]] = {
    "M": GRID_BLOCKS,
    "N": LOOP_BLOCKS,
    "warps": ALL_WARPS,
}
"""The tilings of programs with whole rows, and of those with loops."""
STAGES = 3
MANY_REGISTERS = {
    "depth: 1024": "depth: 65536",
    "most_registers: 384": "most_registers: 8192",
}
"""What the hardware file says of registers, and what it would say with many."""
ELEMENTS = (32, 256)
"""The fewest and the most elements of a thread, for whole rows."""
TILES = (1 << 15, 1 << 16)
"""The elements of a tile of a program, for loops: 128 and 256 KiB in f32."""

EXPONENTIALS = {"exp": BEFORE, "exp2": f"use-exp2,{BEFORE}"}
"""The passes before tiles of either exponential, for whole rows."""
LOOPED = {
    "exp": BEFORE.replace("strategy=full", "strategy=partial"),
    "exp2": "use-exp2,"
    + BEFORE.replace("fuse{strategy=full}", "use-reciprocals,fuse{strategy=partial}"),
}
"""The same for loops: of an op as it is written, and as the pipeline for GPUs does."""


@dataclass(frozen=True)
class RowKernel:
    """A kernel on rows, without a tiling."""

    op: str
    exponential: str
    element: str
    columns: int
    loops: bool = False
    """Whether a program has loops over parts of its rows."""

    def __str__(self) -> str:
        return f"{self.op} {self.exponential} {self.element} {self.columns}"

    @classmethod
    def of(cls, text: str, *, loops: bool = False) -> RowKernel:
        """Return the kernel that a line of the table names."""
        op, exponential, element, columns = text.split()
        return cls(op, exponential, element, int(columns), loops)

    @staticmethod
    def is_one(module: ModuleOp) -> bool:
        """Return whether a module is one kernel; long rows may be read in several."""
        functions = (op for op in module.ops if isinstance(op, FuncOp))
        return len([node for each in functions for node in grid_nodes(each)]) == 1

    def module(self) -> ModuleOp:
        """
        Return the kernel without tiles.

        It is fused for a GPU of many registers, so that all that is drawn is compiled.
        """
        text = OPS[self.op].text(ROWS, self.columns, self.element)
        passes = (LOOPED if self.loops else EXPONENTIALS)[self.exponential]
        return comet.compile(comet.parse(text), many_registers(), passes).module


@cache
def many_registers() -> Path:
    """Write the hardware file of a GPU of many registers, for this process."""
    figures = (SAMPLES / "hardware" / f"{MACHINES[TARGET]}.yaml").read_text()
    for few, many in MANY_REGISTERS.items():
        figures = figures.replace(few, many)
    folder = Path(mkdtemp())
    atexit.register(rmtree, folder)
    file = folder / "many_registers.yaml"
    file.write_text(figures)
    return file


def kernels(*, loops: bool) -> Iterator[RowKernel]:
    """Yield all kernels; those without an exponential once."""
    for op, exponential, element, columns in product(OPS, EXPONENTIALS, TYPES, COLUMNS):
        if exponential == "exp" or "exp " in OPS[op].body:
            yield RowKernel(op, exponential, element, columns, loops)


def tilings(kernel: RowKernel) -> Iterator[Mapping[str, int]]:
    """Yield the tilings with as many elements as shall be compiled."""
    choices = LOOPS if kernel.loops else TILINGS
    for numbers in product(*choices.values()):
        tiling = dict(zip(choices, numbers, strict=True))
        elements = tiling["M"] * tiling.get("N", power_of_two(kernel.columns))
        of_thread = elements // (LANES * tiling["warps"])
        whole = not kernel.loops and ELEMENTS[0] <= of_thread <= ELEMENTS[1]
        if whole or (kernel.loops and elements in TILES):
            yield {**tiling, "stages": STAGES}


def drawn(
    seed: int, count: int, *, loops: bool
) -> list[tuple[RowKernel, Mapping[str, int]]]:
    """Return random kernels with tilings."""
    every = [
        (each, tiling) for each in kernels(loops=loops) for tiling in tilings(each)
    ]
    return random.Random(seed).sample(every, count)


def main() -> int:
    """Compile and print; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1, help="of the kernels")
    parser.add_argument("--count", type=int, default=120, help="of kernels")
    parser.add_argument("--loops", action="store_true", help="over parts of rows")
    options = parser.parse_args()
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    print(f"# {TARGET}, {ROWS} rows, seed {options.seed}")
    print("triton,kernel,tiling,registers,spilled,shared")
    for kernel, tiling in drawn(options.seed, options.count, loops=options.loops):
        module = kernel.module()
        if kernel.is_one(module):
            row = Drawn(str(kernel), tiling)
            found = compiled_kernel(module_text(module, row), TARGET)
            print(triton_version(), row.line(found), sep=",", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
