"""
Compiles kernels on whole rows for gfx942, and writes what each thread takes.

    python benchmarks/row_registers.py > tests/data/row_registers_gfx942.csv
    python benchmarks/row_registers.py --seed 2 --count 90  # by Triton 3.6

The kernels have no products: softmax, LayerNorm, RMSNorm and cross entropy, also of a
sum with a residual, which LayerNorm and RMSNorm store beside their result. They are
drawn by the seed from all those of 32 to 256 elements of a thread. A line holds the
version of Triton, the op, its exponential, the element type and the columns, the
tiling, the registers of a thread, the bytes that it spills, and the bytes of shared
memory of a program. The table has lines of several versions: run it with each of them,
and append the lines after the first two. No GPU is needed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from ladder_programs import SAMPLES
from register_ops import BEFORE
from registers import (
    MACHINES,
    Drawn,
    compiled_kernel,
    module_text,
    triton_version,
)
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import comet
from comet.dialects.schedule.attributes import power_of_two
from comet.passes.analysis.grid import grid_nodes

TARGET = "gfx942"
LANES = 64
"""Threads of a wavefront."""
ROWS = 8192
COLUMNS = (8192, 12000, 16384, 32000, 32768, 50257, 65536)
TYPES = ("f16", "bf16", "f32")
TILINGS: Mapping[str, tuple[int, ...]] = {"M": (1, 2, 4, 8), "warps": (4, 8, 16)}
STAGES = 3
MANY_REGISTERS = {
    "depth: 1024": "depth: 65536",
    "most_registers: 384": "most_registers: 8192",
}
"""What the hardware file says of registers, and what it would say with many."""
ELEMENTS = (32, 256)
"""The fewest and the most elements of a thread."""

HEAD = """
!x = tensor<{rows}x{columns}x{type}, #compound.dims<M, N>>
!w = tensor<{rows}x{columns}xf32, #compound.dims<M, N>>
!b = tensor<{rows}x{columns}xi1, #compound.dims<M, N>>
!g = tensor<{columns}x{type}, #compound.dims<N>>
!h = tensor<{columns}xf32, #compound.dims<N>>
!i = tensor<{rows}xi64, #compound.dims<M>>
!n = tensor<{columns}xi64, #compound.dims<N>>
!r = tensor<{rows}xf32, #compound.dims<M>>
!s = tensor<f32, #compound.dims<>>
func.func @rows({arguments}) -> ({types}) {{
"""
SUM = """
  %first = compound.cast %x : !x -> !w
  %second = compound.cast %residual : !x -> !w
  %wide = compound.map add %first, %second : !w, !w -> !w
  %sum = compound.cast %wide : !w -> !x
"""
"""What ops of a sum start with."""
ALONE = """
  %wide = compound.cast %x : !x -> !w
"""
SOFTMAX = """
  %most = compound.reduce max %wide : !w -> !r
  %below = compound.map sub %wide, %most : !w, !r -> !w
  %grown = compound.map exp %below : !w -> !w
  %all = compound.reduce add %grown : !w -> !r
  %part = compound.map div %grown, %all : !w, !r -> !w
  %y = compound.cast %part : !w -> !x
"""
LAYERNORM = """
  %count = compound.fill 0.0001220703125 : !s
  %all = compound.reduce add %wide : !w -> !r
  %mean = compound.map mult %all, %count : !r, !s -> !r
  %centred = compound.map sub %wide, %mean : !w, !r -> !w
  %square = compound.map mult %centred, %centred : !w, !w -> !w
  %squares = compound.reduce add %square : !w -> !r
  %variance = compound.map mult %squares, %count : !r, !s -> !r
  %inverse = compound.map rsqrt %variance : !r -> !r
  %normal = compound.map mult %centred, %inverse : !w, !r -> !w
  %scale = compound.cast %gamma : !g -> !h
  %scaled = compound.map mult %normal, %scale : !w, !h -> !w
  %shift = compound.cast %beta : !g -> !h
  %shifted = compound.map add %scaled, %shift : !w, !h -> !w
  %y = compound.cast %shifted : !w -> !x
"""
RMSNORM = """
  %count = compound.fill 0.0001220703125 : !s
  %square = compound.map mult %wide, %wide : !w, !w -> !w
  %squares = compound.reduce add %square : !w -> !r
  %mean = compound.map mult %squares, %count : !r, !s -> !r
  %inverse = compound.map rsqrt %mean : !r -> !r
  %normal = compound.map mult %wide, %inverse : !w, !r -> !w
  %scale = compound.cast %gamma : !g -> !h
  %scaled = compound.map mult %normal, %scale : !w, !h -> !w
  %y = compound.cast %scaled : !w -> !x
"""
CROSS_ENTROPY = """
  %numbers = compound.index : !n
  %hit = compound.map eq %labels, %numbers : !i, !n -> !b
  %most = compound.reduce max %wide : !w -> !r
  %below = compound.map sub %wide, %most : !w, !r -> !w
  %grown = compound.map exp %below : !w -> !w
  %all = compound.reduce add %grown : !w -> !r
  %log = compound.map log %all : !r -> !r
  %score = compound.map sub %below, %log : !w, !r -> !w
  %narrow = compound.cast %score : !w -> !x
  %again = compound.cast %narrow : !x -> !w
  %none = compound.fill 0.0 : !s
  %one = compound.map select %hit, %again, %none : !b, !w, !s -> !w
  %loss = compound.reduce add %one : !w -> !r
  %y = compound.map neg %loss : !r -> !r
"""


@dataclass(frozen=True)
class RowOp:
    """An op on rows, as elementary ops."""

    body: str
    arguments: Mapping[str, str]
    """Those besides `x`, with their types."""
    result: str
    stores_sum: bool = False
    """Whether it stores the sum with a residual beside its result."""

    def text(self, columns: int, element: str) -> str:
        """Return the op on rows of so many columns, of an element type."""
        summed = "residual" in self.arguments
        results = {"y": self.result} | ({"sum": "!x"} if self.stores_sum else {})
        given = {"x": "!x", **self.arguments}
        head = HEAD.format(
            rows=ROWS,
            columns=columns,
            type=element,
            arguments=", ".join(f"%{name}: {kind}" for name, kind in given.items()),
            types=", ".join(results.values()),
        )
        values = ", ".join(f"%{name}" for name in results)
        end = f"  func.return {values} : {', '.join(results.values())}\n}}\n"
        text = head + (SUM if summed else ALONE) + self.body + end
        return _without_casts(text) if element == "f32" else text


def _without_casts(text: str) -> str:
    """Return a text without its casts, which would be from f32 to f32."""
    cast = re.compile(r" *(%\w+) = compound\.cast (%\w+) .*\n")
    while (found := cast.search(text)) is not None:
        result, operand = found.groups()
        text = re.sub(rf"{result}\b", operand, text.replace(found.group(), ""))
    return text


OPS: Mapping[str, RowOp] = {
    "softmax": RowOp(SOFTMAX, {}, "!x"),
    "softmax_of_sum": RowOp(SOFTMAX, {"residual": "!x"}, "!x"),
    "layernorm": RowOp(LAYERNORM, {"gamma": "!g", "beta": "!g"}, "!x"),
    "layernorm_of_sum": RowOp(
        LAYERNORM, {"residual": "!x", "gamma": "!g", "beta": "!g"}, "!x", True
    ),
    "rmsnorm": RowOp(RMSNORM, {"gamma": "!g"}, "!x"),
    "rmsnorm_of_sum": RowOp(RMSNORM, {"residual": "!x", "gamma": "!g"}, "!x", True),
    "cross_entropy": RowOp(CROSS_ENTROPY, {"labels": "!i"}, "!r"),
}
EXPONENTIALS = {"exp": BEFORE, "exp2": f"use-exp2,{BEFORE}"}
"""The passes before tiles of either exponential."""


@dataclass(frozen=True)
class RowKernel:
    """A kernel on rows, without a tiling."""

    op: str
    exponential: str
    element: str
    columns: int

    def __str__(self) -> str:
        return f"{self.op} {self.exponential} {self.element} {self.columns}"

    @classmethod
    def of(cls, text: str) -> RowKernel:
        """Return the kernel that a line of the table names."""
        op, exponential, element, columns = text.split()
        return cls(op, exponential, element, int(columns))

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
        text = OPS[self.op].text(self.columns, self.element)
        figures = (SAMPLES / "hardware" / f"{MACHINES[TARGET]}.yaml").read_text()
        for few, many in MANY_REGISTERS.items():
            figures = figures.replace(few, many)
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(figures)
            file.flush()
            passes = EXPONENTIALS[self.exponential]
            return comet.compile(comet.parse(text), file.name, passes).module


def kernels() -> Iterator[RowKernel]:
    """Yield all kernels; those without an exponential once."""
    for op, exponential, element, columns in product(OPS, EXPONENTIALS, TYPES, COLUMNS):
        if exponential == "exp" or "exp " in OPS[op].body:
            yield RowKernel(op, exponential, element, columns)


def tilings(columns: int) -> Iterator[Mapping[str, int]]:
    """Yield the tilings with as many elements of a thread as shall be compiled."""
    for numbers in product(*TILINGS.values()):
        tiling = dict(zip(TILINGS, numbers, strict=True))
        threads = LANES * tiling["warps"]
        elements = tiling["M"] * power_of_two(columns) // threads
        if ELEMENTS[0] <= elements <= ELEMENTS[1]:
            yield {"M": tiling["M"], "warps": tiling["warps"], "stages": STAGES}


def drawn(seed: int, count: int) -> list[tuple[RowKernel, Mapping[str, int]]]:
    """Return random kernels with tilings."""
    every = [(each, tiling) for each in kernels() for tiling in tilings(each.columns)]
    return random.Random(seed).sample(every, count)


def main() -> int:
    """Compile and print; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1, help="of the kernels")
    parser.add_argument("--count", type=int, default=120, help="of kernels")
    options = parser.parse_args()
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    print(f"# {TARGET}, {ROWS} rows, seed {options.seed}")
    print("triton,kernel,tiling,registers,spilled,shared")
    for kernel, tiling in drawn(options.seed, options.count):
        module = kernel.module()
        if kernel.is_one(module):
            row = Drawn(str(kernel), tiling)
            found = compiled_kernel(module_text(module, row), TARGET)
            print(triton_version(), row.line(found), sep=",", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
