"""
Split reductions in one launch and in two: predictions for one GPU.

    python benchmarks/merging.py [--machine h200x1]

Prints a table of the predicted times of products of few rows, of flash decode, and of
blocks of transformers whose inner dimension F is split: without a split, with partial
results that a second launch merges, and with the last program to arrive merging them
where it can (`merge-partials`).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from graph_programs import blocks
from ladder_programs import Case, after_passes, flash_decode, predicted_times, resized
from markdown import markdown

from comet.dialects.dataflow import KernelOp
from comet.passes.pipelines.triton_distributed import TritonDistributedPass

PRODUCTS = ((16, 4096, 16384), (128, 1024, 8192))
"""M, N and K."""
PARTS = (2, 4, 8)
DECODES = ((1, 8192, 32), (1, 65536, 32), (16, 8192, 4))
"""Sequences, keys of each, and parts of the keys."""
BLOCKS, TOKENS = ("llama", "gpt2", "llama_decode"), (128,)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--machine", default="h200x1")
    machine = parser.parse_args().machine
    columns = ("program", "split", "no split", "two launches", "last program", "auto")
    print(markdown(columns, (row(*case, machine) for case in cases())))


def cases() -> Iterator[tuple[Case, str]]:
    """Yield programs, and what is split into how many parts."""
    for rows, columns, depth in PRODUCTS:
        text = resized("gemm", {128: rows, 64: depth, 256: columns})
        for parts in PARTS:
            yield Case(f"GEMM {rows} x {columns} x {depth}", 1, text), f"K={parts}"
    for batch, keys, parts in DECODES:
        yield flash_decode(batch, keys, 1), f"S={parts}"
    for case in blocks(BLOCKS, TOKENS):
        for parts in PARTS:
            yield case, f"F={parts}"


def row(case: Case, split: str, machine: str) -> list[str]:
    """Return the cells of a program."""
    forms = [("none", "launch"), *((split, how) for how in ("launch", "last", "auto"))]
    return [case.name, split, *(cell(case, *form, machine) for form in forms)]


def cell(case: Case, split: str, merge: str, machine: str) -> str:
    """Return the time of one form, and its launches."""
    compiler = TritonDistributedPass(to="dataflow", split=split, merge=merge)
    plan = after_passes(case, machine, (compiler,))
    kernels = sum(isinstance(op, KernelOp) for op in plan.walk())
    return f"{predicted_times(plan).eager * 1e6:.1f} us ({kernels})"


if __name__ == "__main__":
    main()
