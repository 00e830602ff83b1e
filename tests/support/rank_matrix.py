"""
Every workload x pattern x number of ranks, against numpy: `make matrix`.

A cell is compiled at two sizes. On the scheduler each seed is another interleaving,
another amount of room and other data; with processes ranks are concurrent.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Self

from gpu_graphs import LAYERNORM, SOFTMAX
from gpu_ranks import H200X8, SHARED_TEXTS
from interpreting import process
from rank_matrix_runs import Runs, failures
from triton_modules import emitted
from xdsl.utils.exceptions import PassFailedException

FLASH_DECODE = """
func.func @f(%q: tensor<2x{H}x3x8xf16>,
             %k: tensor<2x{H}x{N}x8xf16> {{collective.shard = {{S = ["rank"]}}}},
             %v: tensor<2x{H}x{N}x4xf16> {{collective.shard = {{S = ["rank"]}}}},
             %lens: tensor<2xi32>) -> tensor<2x{H}x3x4xf16> {{
  %o = compound.flash_decode %q, %k, %v, %lens {{collective.shard = {{S = ["rank"]}}}} :
      (tensor<2x{H}x3x8xf16>, tensor<2x{H}x{N}x8xf16>, tensor<2x{H}x{N}x4xf16>,
      tensor<2xi32>) -> tensor<2x{H}x3x4xf16>
  func.return %o : tensor<2x{H}x3x4xf16>
}}
"""
EXPERT_GEMM = """
func.func @f(%x: tensor<{E}x{M}x{K}xf16> {{collective.shard = {{T = ["rank"]}}}},
             %w: tensor<{E}x{K}x{N}xf16> {{collective.shard = {{E = ["rank"]}}}})
    -> (tensor<{E}x{M}x{N}xf16> {{collective.shard = {{E = ["rank"]}}}}) {{
  %y = compound.expert_gemm %x, %w {{collective.shard = {{E = ["rank"]}}}} :
      (tensor<{E}x{M}x{K}xf16>, tensor<{E}x{K}x{N}xf16>) -> tensor<{E}x{M}x{N}xf16>
  func.return %y : tensor<{E}x{M}x{N}xf16>
}}
"""
WORKLOADS = {
    "ag_gemm": SHARED_TEXTS["ag_gemm"],
    "gemm_all_reduce": SHARED_TEXTS["gemm_all_reduce"],
    "gemm_reduce_scatter": SHARED_TEXTS["gemm_reduce_scatter"],
    "flash_decode": FLASH_DECODE,
    "ring_attention": SHARED_TEXTS["ring_attention"].replace("2x3x", "1x{H}x"),
    "expert_gemm": EXPERT_GEMM,
    "gemm_softmax": SOFTMAX,
    "gemm_layernorm": LAYERNORM,
}
PATTERNS = {
    "bsp": "pattern=bsp",
    "wait": "pattern=wait",
    "pull": "pattern=pull",
    "in_place": "pattern=pull inputs=symmetric",
    "push": "pattern=push",
    "fused": "pattern=fused",
    "persistent": "pattern=fused persistent=true",
}
"""The options of `triton-distributed` for each, by its name in the table."""
RANKS = (1, 2, 3, 4, 8)
SIZES = {
    "even": {"M": 32, "N": 64, "K": 32, "E": 8, "H": 2},
    "ragged": {"M": 19, "N": 35, "K": 27, "E": 5, "H": 1},
    "short": {"M": 5, "N": 19, "K": 11, "E": 5, "H": 1},
    "tiny": {"M": 4, "N": 7, "K": 5, "E": 4, "H": 1},
}
"""Ranks have short shards of all but the first, and some of eight have none."""
CONCURRENT = 4
"""With more ranks, there are no runs with processes."""
COMPILING = Lock()
"""The builders of xDSL know of one thread only."""


@dataclass(frozen=True)
class Cell:
    """One square of the matrix."""

    workload: str
    pattern: str
    ranks: int

    def source(self, extents: Mapping[str, int]) -> str:
        """Return the emitted module; raise what the compiler does."""
        text = WORKLOADS[self.workload].format(**extents)
        options = f"ranks={self.ranks} {PATTERNS[self.pattern]}"
        if self.ranks == 1:  # which exchanges nothing, by any pattern
            options = "ranks=1"
        elif (
            "collective.shard" not in text
        ):  # what is chosen for few rows shares nothing
            options += " dim=N"
        with COMPILING:
            return emitted(text, f"{H200X8},triton-distributed{{{options}}}")

    def __str__(self) -> str:
        """Return the cell in a phrase."""
        ranks = "1 rank" if self.ranks == 1 else f"{self.ranks} ranks"
        return f"{self.workload}, {self.pattern}, {ranks}"


@dataclass
class Verdict:
    """What became of a cell."""

    cell: Cell
    right: int = 0
    """Runs."""
    wrong: list[str] = field(default_factory=list[str])
    """What went wrong: of a run, or of the compiler."""
    inapplicable: str = ""
    """Why the pattern does not apply."""
    seconds: float = 0.0

    def __str__(self) -> str:
        """Return all that is known, each failure in a line of its own."""
        if self.inapplicable:
            return f"{self.cell}: {self.inapplicable}"
        runs = f"{self.right} right, {len(self.wrong)} wrong"
        return "\n  ".join([f"{self.cell}: {runs} ({self.seconds:.1f} s)", *self.wrong])

    @property
    def short(self) -> str:
        """What the table shows."""
        if self.inapplicable:
            return "-"
        return f"{len(self.wrong)} WRONG" if self.wrong else str(self.right)


class Runner:
    """A process that runs modules in Triton's interpreter, and another if it dies."""

    def __init__(self) -> None:
        self._process = process()

    def __enter__(self) -> Self:
        """Start with the first module."""
        return self

    def __exit__(self, *error: object) -> None:
        """Let the process end."""
        self._process.shutdown()

    def failures(self, runs: Runs) -> list[str]:
        """Run a module; return a sentence for each run that failed."""
        try:
            return self._process.submit(failures, runs).result()
        except BrokenProcessPool:
            self._process = process()
            return [f"{runs.backend}: the process died"] * len(runs.seeds)


@dataclass(frozen=True)
class Matrix:
    """How thoroughly cells are tried."""

    seeds: Sequence[int]
    epochs: int
    sizes: Sequence[str] = ("even", "ragged")
    processes: int = 1
    """Seeds that are also run with processes, of up to `CONCURRENT` ranks."""

    def verdict(self, cell: Cell, runner: Runner, folder: Path) -> Verdict:
        """Compile a cell and run it; every size gets its part of the seeds."""
        verdict = Verdict(cell)
        start = time.perf_counter()
        for number, size in enumerate(self.sizes):
            try:
                source = cell.source(SIZES[size])
            except PassFailedException as error:
                self._refused(verdict, str(error))
                break
            path = folder / f"{cell.workload}_{cell.pattern}_{cell.ranks}_{size}.py"
            path.write_text(source)
            seeds = list(self.seeds[number :: len(self.sizes)])
            for backend, chosen in self._back_ends(cell, seeds):
                runs = Runs(str(path), backend, chosen, self.epochs)
                failures = runner.failures(runs)
                verdict.right += len(chosen) - len(failures)
                verdict.wrong += [f"{size}, {text}" for text in failures]
        verdict.seconds = time.perf_counter() - start
        return verdict

    def _back_ends(
        self, cell: Cell, seeds: list[int]
    ) -> Iterator[tuple[str, list[int]]]:
        yield "scheduler", seeds
        if cell.ranks <= CONCURRENT and self.processes:
            yield "processes", seeds[: self.processes]

    @staticmethod
    def _refused(verdict: Verdict, reason: str) -> None:
        if "does not apply" in reason:
            verdict.inapplicable = reason.splitlines()[-1].strip()
        else:
            verdict.wrong.append(f"does not compile: {reason.splitlines()[-1]}")


def cells(
    workloads: Iterable[str] = WORKLOADS,
    patterns: Iterable[str] = PATTERNS,
    ranks: Iterable[int] = RANKS,
) -> list[Cell]:
    """Return the cells of a part of the matrix."""
    return [Cell(*parts) for parts in product(workloads, patterns, ranks)]


def verdicts(
    matrix: Matrix, chosen: Iterable[Cell], jobs: int = 1
) -> Iterator[Verdict]:
    """Yield what becomes of cells once it is known; so many are tried at a time."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        free: SimpleQueue[Runner] = SimpleQueue()
        for _ in range(jobs):
            free.put(stack.enter_context(Runner()))
        pool = ThreadPoolExecutor(jobs)
        stack.callback(pool.shutdown, cancel_futures=True)

        def verdict(cell: Cell) -> Verdict:
            runner = free.get()
            try:
                return matrix.verdict(cell, runner, folder)
            finally:
                free.put(runner)

        for future in as_completed([pool.submit(verdict, cell) for cell in chosen]):
            yield future.result()


def table(found: Sequence[Verdict]) -> str:
    """Return a table of the numbers of right runs: a row for workload and pattern."""
    ranks = sorted({verdict.cell.ranks for verdict in found})
    by_cell = {verdict.cell: verdict for verdict in found}
    rows = dict.fromkeys((v.cell.workload, v.cell.pattern) for v in found)
    lines = [
        f"{'workload':20} {'pattern':10}" + "".join(f"{f'W={w}':>9}" for w in ranks)
    ]
    lines[0] += f"{'seconds':>9}"
    for row in rows:
        here = [by_cell[Cell(*row, w)] for w in ranks if Cell(*row, w) in by_cell]
        shown = "".join(f"{verdict.short:>9}" for verdict in here)
        seconds = sum(verdict.seconds for verdict in here)
        lines.append(f"{row[0]:20} {row[1]:10}{shown}{seconds:9.0f}")
    return "\n".join(lines)


def summary(found: Sequence[Verdict]) -> str:
    """Return how many cells were tried, and why others were not."""
    refused = [verdict for verdict in found if verdict.inapplicable]
    wrong = [verdict for verdict in found if verdict.wrong]
    lines = [f"  {v.cell}: {v.inapplicable}" for v in refused]
    lines += [f"  {v.cell}: {text}" for v in wrong for text in v.wrong]
    runs = sum(verdict.right + len(verdict.wrong) for verdict in found)
    lines.append(
        f"{len(found)} of {len(cells())} cells: {len(found) - len(refused)} run "
        f"{runs} times, {len(wrong)} wrong; to {len(refused)} the pattern does not "
        "apply"
    )
    return "\n".join(lines)


def main() -> int:
    """Try the part of the matrix that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=WORKLOADS)
    parser.add_argument("--patterns", nargs="+", choices=PATTERNS, default=PATTERNS)
    parser.add_argument("--ranks", nargs="+", type=int, choices=RANKS, default=RANKS)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    wanted = parser.parse_args()
    seeds = range(wanted.first_seed, wanted.first_seed + wanted.seeds)
    matrix = Matrix(seeds, wanted.epochs, processes=wanted.processes)
    chosen = cells(wanted.workloads, wanted.patterns, wanted.ranks)
    start = time.perf_counter()
    found: list[Verdict] = []
    for verdict in verdicts(matrix, chosen, wanted.jobs):
        print(verdict, flush=True)
        found.append(verdict)
    found.sort(key=lambda verdict: chosen.index(verdict.cell))
    seconds = time.perf_counter() - start
    print("", table(found), "", summary(found), sep="\n", end="")
    print(f"; {seconds:.0f} s with --jobs {wanted.jobs}")
    return int(any(verdict.wrong for verdict in found))


if __name__ == "__main__":
    raise SystemExit(main())
