"""
Compiles programs of several ranks for GPUs that need not be there.

    python benchmarks/compile_sizes.py [--workloads ag_gemm_k flash_decode] [--rows 16]
        [--batch 4] [--keys 8192] [--tokens 128] [--ranks 8] [--patterns push fused]
        [--targets sm_90 gfx942]

Workloads have the papers' sizes; `samples` stands for the workloads of samples/, as
they are there, `blocks` for the graphs of samples/blocks on one GPU, and `parallel_mlp`
is the one on several. Prints a row
for each workload, size, number of ranks, target and module that patterns make: the
seconds to emit and to compile it, the tiles, warps and stages of each kernel, the most
registers, spilled bytes and bytes of shared memory that one takes, and what is a fault
or slow; then, for each workload, how many programs that were and the most that they
take. The exit code is 1 where anything is a fault. `persistent` is `fused` with
producers and consumers in one kernel, `in_place` is `pull` of inputs that lie in
symmetric memory. Patterns that make the same module share a row; one that does not
apply has none.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from graph_programs import BLOCKS, blocks, written
from ladder_programs import (
    PATTERNS,
    SAMPLE_NAMES,
    Case,
    after_passes,
    flash_decode,
    product,
    sample,
)
from xdsl.utils.exceptions import PassFailedException

from comet.codegen.triton import emitted
from comet.runtime.compile_check import (
    Compiled,
    RequestedLaunch,
    compiled,
    recorded_launches,
)

MACHINES = {"sm_90": "h200x8", "gfx942": "mi300x8"}
"""The machine of samples/hardware for each target."""

PRODUCTS = ("ag_gemm_k", "ag_gemm_m", "gemm_all_reduce", "gemm_reduce_scatter")
DECODE = "flash_decode"
SAMPLES = "samples"
GRAPHS = "blocks"
PARALLEL = "parallel_mlp"
WHOLE = (SAMPLES, GRAPHS)
"""Workloads of several programs, each of which has its own totals."""
ROWS = (1, 16, 64, 256, 1024, 4096)
BATCH = (1, 4, 8, 16)
KEYS = (8192, 65536, 524288)
"""Keys of each rank."""
TOKENS = (128, 2048)

PROGRAM = ("program", "ranks", "pattern", "target")
TAKEN = ("registers", "spilled", "shared")
COLUMNS = (*PROGRAM, "seconds", "tiles", *TAKEN, "remarks")
TOTALS = ("workload", "target", "programs", "modules", *TAKEN, "remarks")


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    workloads: Sequence[str]
    rows: Sequence[int]
    batch: Sequence[int]
    keys: Sequence[int]
    tokens: Sequence[int]
    ranks: Sequence[int]
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

    case: Case
    module: Module
    target: str
    launches: Sequence[RequestedLaunch]
    compiled: Sequence[Compiled]
    seconds: float
    """What it took to compile all of them."""

    def cells(self) -> Iterator[str]:
        """Yield what is in the table."""
        yield from (self.case.name, str(self.case.ranks))
        yield from (" ".join(self.module.patterns), self.target)
        yield f"{self.module.seconds:.1f} + {self.seconds:.1f}"
        yield "; ".join(map(tiles_of, self.launches))
        yield from taken([self])
        yield "; ".join(self.remarks())

    def remarks(self) -> Iterator[str]:
        """Yield what is a fault or slow."""
        for kernel in self.compiled:
            yield from (f"FAULT: {kernel.kernel}: {text}" for text in kernel.faults)
            yield from (f"{kernel.kernel}: {text}" for text in kernel.slow)


def taken(found: Sequence[Kernels]) -> Iterator[str]:
    """Yield the most registers, spilled bytes and shared memory of any kernel."""
    kernels = [kernel for module in found for kernel in module.compiled]
    yield str(max(kernel.registers for kernel in kernels))
    yield str(max(kernel.spills for kernel in kernels))
    yield str(max(kernel.shared for kernel in kernels))


def tiles_of(launch: RequestedLaunch) -> str:
    """Return the block sizes of a kernel, its warps and stages."""
    blocks = [
        f"{name.removeprefix('BLOCK_')}={value}"
        for name, value in launch.constexprs.items()
        if name.startswith("BLOCK_")
    ]
    warps, stages = (launch.options[name] for name in ("num_warps", "num_stages"))
    return " ".join((*blocks, f"w{warps}", f"s{stages}"))


def cases(workload: str, ranks: int, options: Options) -> Iterator[Case]:
    """Yield the programs of a workload: for all rows, or all batches and keys."""
    if workload == SAMPLES:
        yield from (sample(name, ranks) for name in SAMPLE_NAMES)
    elif workload == GRAPHS:
        yield from blocks(BLOCKS, options.tokens)
    elif workload == PARALLEL:
        yield Case(workload, ranks, written(workload))
    elif workload in PRODUCTS:
        yield from (product(workload, rows, ranks) for rows in options.rows)
    else:
        for batch in options.batch:
            yield from (flash_decode(batch, keys, ranks) for keys in options.keys)


def modules_of(case: Case, machine: str, patterns: Sequence[str]) -> list[Module]:
    """Return the different Triton modules that patterns make of a program."""
    found: dict[str, Module] = {}
    for pattern in patterns:
        start = time.perf_counter()
        try:
            compiler = replace(PATTERNS[pattern], ranks=case.ranks)
            text = emitted(after_passes(case, machine, [compiler]))
        except PassFailedException as error:
            if "does not apply" not in str(error):
                raise
            continue
        module = found.setdefault(text, Module(text, [], time.perf_counter() - start))
        module.patterns.append(pattern)
    return list(found.values())


def compiled_module(case: Case, module: Module, target: str) -> Kernels:
    """Compile the different launches of a Triton module."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(module.text)
        start = time.perf_counter()
        launches: list[RequestedLaunch] = []
        for launch in recorded_launches(str(path)):
            if launch not in launches:
                launches.append(launch)
        found = [compiled(launch, target) for launch in launches]
    seconds = time.perf_counter() - start
    return Kernels(case, module, target, launches, found, seconds)


def compiled_modules(workload: str, options: Options) -> Iterator[Kernels]:
    """Compile all modules of a workload."""
    for ranks in (1,) if workload == GRAPHS else options.ranks:
        for case in cases(workload, ranks, options):
            for target in options.targets:
                patterns = ("bsp",) if case.ranks == 1 else options.patterns
                for module in modules_of(case, MACHINES[target], patterns):
                    yield compiled_module(case, module, target)


def total(workload: str, target: str, found: Sequence[Kernels]) -> Iterator[str]:
    """Yield what is in the last table of a workload on one target."""
    programs = sum(len(kernels.module.patterns) for kernels in found)
    remarks = sum(len(list(kernels.remarks())) for kernels in found)
    yield from (workload, target, str(programs), str(len(found)))
    yield from taken(found)
    yield str(remarks or "")


def tables(options: Options) -> bool:
    """Print the tables; return whether nothing is a fault."""
    found: dict[tuple[str, str], list[Kernels]] = {}
    print(head(*COLUMNS))
    for workload in options.workloads:
        for kernels in compiled_modules(workload, options):
            name = kernels.case.name if workload in WHOLE else workload
            found.setdefault((name, kernels.target), []).append(kernels)
            print(line(*kernels.cells()), flush=True)
    print("", head(*TOTALS), sep="\n")
    for key, modules in found.items():
        print(line(*total(*key, modules)))
    everything = (kernels for modules in found.values() for kernels in modules)
    return not any(kernel.faults for each in everything for kernel in each.compiled)


def head(*columns: str) -> str:
    """Return the first lines of a table."""
    return "\n".join((line(*columns), line(*["---"] * len(columns))))


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

    known = (*PRODUCTS, DECODE)
    parser.add_argument(
        "--workloads", nargs="+", choices=(*known, *WHOLE, PARALLEL), default=known
    )
    sizes("--rows", ROWS, "rows M of products")
    sizes("--batch", BATCH, "sequences of flash decode")
    sizes("--keys", KEYS, "keys of flash decode on each rank")
    sizes("--tokens", TOKENS, "tokens of a sequence in blocks")
    sizes("--ranks", [8], "numbers of ranks")
    choice("--patterns", tuple(PATTERNS))
    choice("--targets", tuple(MACHINES))
    return Options(**vars(parser.parse_args(argv)))


def main(argv: Sequence[str] | None = None) -> int:
    """Compile and print; return the exit code."""
    if os.environ.get("TRITON_INTERPRET", "0") == "1":
        print("compile_sizes: error: TRITON_INTERPRET is set", file=sys.stderr)
        return 1
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    return 0 if tables(options_of(argv)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
