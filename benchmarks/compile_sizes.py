"""
Compiles programs of eight ranks at the papers' sizes, for GPUs that need not be there.

    python benchmarks/compile_sizes.py [--workloads ag_gemm_k flash_decode] [--rows 16]
        [--batch 4] [--keys 8192] [--patterns push fused] [--targets sm_90 gfx942]

Prints a row for each workload, size, target and module that patterns make: the seconds
to emit and to compile it, the tiles, warps and stages of each kernel, the most
registers, spilled bytes and bytes of shared memory that one of them takes, and what is
a fault or slow. The exit code is 1 where anything is a fault. `persistent` is `fused`
with producers and consumers in one kernel. Patterns that make the same module share a
row; one that does not apply has none.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ladder_programs import PAPER, Case, after_passes, ag_gemm, flash_decode, resized
from xdsl.utils.exceptions import PassFailedException

from comet.codegen.triton import emitted
from comet.passes.triton_distributed import TritonDistributedPass
from comet.runtime.compile_check import Compiled, Launch, compiled, recorded_launches

RANKS = 8
MACHINES = {"sm_90": "h200x8", "gfx942": "mi300x8"}
"""The machine of samples/hardware for each target."""

PATTERNS: Mapping[str, TritonDistributedPass] = {
    "bsp": TritonDistributedPass(RANKS, pattern="bsp"),
    "wait": TritonDistributedPass(RANKS, pattern="wait"),
    "pull": TritonDistributedPass(RANKS, pattern="pull"),
    "push": TritonDistributedPass(RANKS, pattern="push"),
    "fused": TritonDistributedPass(RANKS, pattern="fused"),
    "persistent": TritonDistributedPass(RANKS, pattern="fused", persistent=True),
}
PRODUCTS = ("ag_gemm_k", "ag_gemm_m", "gemm_all_reduce", "gemm_reduce_scatter")
DECODE = "flash_decode"

ROWS = (1, 16, 64, 256, 1024, 4096)
BATCH = (1, 4, 8, 16)
KEYS = (8192, 65536, 524288)
"""Keys of each rank."""

COLUMNS = ("seconds", "tiles", "registers", "spilled", "shared", "remarks")


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    workloads: Sequence[str]
    rows: Sequence[int]
    batch: Sequence[int]
    keys: Sequence[int]
    patterns: Sequence[str]
    targets: Sequence[str]


@dataclass(frozen=True)
class Module:
    """A Triton module."""

    text: str
    patterns: list[str]
    """Those that make it."""
    seconds: float
    """What it took to emit it."""


@dataclass(frozen=True)
class Kernels:
    """What a module became on one target."""

    launches: Sequence[Launch]
    compiled: Sequence[Compiled]
    seconds: float
    """What it took to compile all of them."""

    def cells(self, emitting: float) -> Iterator[str]:
        """Yield what stands in the table."""
        yield f"{emitting:.1f} + {self.seconds:.1f}"
        yield "; ".join(map(tiles_of, self.launches))
        yield str(max(kernel.registers for kernel in self.compiled))
        yield str(max(kernel.spills for kernel in self.compiled))
        yield str(max(kernel.shared for kernel in self.compiled))
        yield "; ".join(self._remarks())

    def _remarks(self) -> Iterator[str]:
        for kernel in self.compiled:
            yield from (f"FAULT: {kernel.kernel}: {text}" for text in kernel.faults)
            yield from (f"{kernel.kernel}: {text}" for text in kernel.slow)


def tiles_of(launch: Launch) -> str:
    """Return the block sizes of a kernel, its warps and stages."""
    blocks = [
        f"{name.removeprefix('BLOCK_')}={value}"
        for name, value in launch.constexprs.items()
        if name.startswith("BLOCK_")
    ]
    warps, stages = (launch.options[name] for name in ("num_warps", "num_stages"))
    return " ".join((*blocks, f"w{warps}", f"s{stages}"))


def product(workload: str, rows: int) -> Case:
    """Return a product with that many rows, and what ranks exchange around it."""
    name = f"{workload} M={rows}"
    if workload == "ag_gemm_k":
        return replace(ag_gemm(rows, RANKS), name=name)
    if workload == "ag_gemm_m":
        text = ag_gemm(rows, RANKS).text
        return Case(name, RANKS, text.replace('{K = ["rank"]}', '{M = ["rank"]}'))
    extents = {64: rows, 128: PAPER.depth, 96: PAPER.columns}
    return Case(name, RANKS, resized(workload, extents))


def cases(options: Options) -> Iterator[Case]:
    """Yield the programs: products for all rows, decoding for all batches and keys."""
    for workload in options.workloads:
        if workload in PRODUCTS:
            yield from (product(workload, rows) for rows in options.rows)
            continue
        for batch in options.batch:
            yield from (flash_decode(batch, keys, RANKS) for keys in options.keys)


def modules_of(case: Case, machine: str, patterns: Sequence[str]) -> list[Module]:
    """Return the different Triton modules that patterns make of a program."""
    found: dict[str, Module] = {}
    for pattern in patterns:
        start = time.perf_counter()
        try:
            text = emitted(after_passes(case, machine, [PATTERNS[pattern]]))
        except PassFailedException as error:
            if "does not apply" not in str(error):
                raise
            continue
        module = found.setdefault(text, Module(text, [], time.perf_counter() - start))
        module.patterns.append(pattern)
    return list(found.values())


def compiled_module(text: str, target: str) -> Kernels:
    """Compile the different launches of a Triton module."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(text)
        start = time.perf_counter()
        launches: list[Launch] = []
        for launch in recorded_launches(str(path)):
            if launch not in launches:
                launches.append(launch)
        found = [compiled(launch, target) for launch in launches]
    return Kernels(launches, found, time.perf_counter() - start)


def table(options: Options) -> bool:
    """Print the table; return whether nothing is a fault."""
    print(line("program", "pattern", "target", *COLUMNS))
    print(line(*["---"] * (3 + len(COLUMNS))))
    right = True
    for case in cases(options):
        for target in options.targets:
            for module in modules_of(case, MACHINES[target], options.patterns):
                kernels = compiled_module(module.text, target)
                cells = kernels.cells(module.seconds)
                patterns = " ".join(module.patterns)
                print(line(case.name, patterns, target, *cells), flush=True)
                right &= not any(kernel.faults for kernel in kernels.compiled)
    return right


def line(*cells: str) -> str:
    """Return a line of the table."""
    return f"| {' | '.join(cells)} |"


def options_of(argv: Sequence[str] | None) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )

    def choice(name: str, known: Sequence[str]) -> None:
        parser.add_argument(name, nargs="+", choices=known, default=known)

    def sizes(name: str, default: Sequence[int], text: str) -> None:
        parser.add_argument(name, nargs="+", type=int, default=default, help=text)

    choice("--workloads", (*PRODUCTS, DECODE))
    sizes("--rows", ROWS, "rows M of products")
    sizes("--batch", BATCH, "sequences of flash decode")
    sizes("--keys", KEYS, "keys of flash decode on each rank")
    choice("--patterns", tuple(PATTERNS))
    choice("--targets", tuple(MACHINES))
    return Options(**vars(parser.parse_args(argv)))


def main(argv: Sequence[str] | None = None) -> int:
    """Compile and print; return the exit code."""
    if os.environ.get("TRITON_INTERPRET", "0") == "1":
        print("compile_sizes: error: TRITON_INTERPRET is set", file=sys.stderr)
        return 1
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    return 0 if table(options_of(argv)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
