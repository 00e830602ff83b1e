"""
Blocks of transformers on several GPUs: what `choose-shardings` lets them share.

    python benchmarks/sharded_blocks.py [--blocks llama experts] [--tokens 128 2048]
        [--ranks 2 8] [--machine h200x8]

Each block of `samples/blocks` at its published width, which says nothing of ranks, is
compiled for one GPU and for several. Prints a table of predictions: the time on one
GPU, and for each number of ranks what they share, the time, and how many times faster
that is than one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass

from graph_programs import BLOCKS, blocks
from ladder_programs import Case, after_passes, predicted_times
from markdown import markdown

from comet.passes.pipelines.triton_distributed import TritonDistributedPass
from comet.passes.search.record import Choice, session


@dataclass(frozen=True)
class Compiled:
    """A prediction."""

    shared: str
    """The ops that are chosen for, with their dimensions."""
    seconds: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", nargs="+", default=BLOCKS, choices=BLOCKS)
    parser.add_argument("--tokens", nargs="+", type=int, default=(1, 128, 2048))
    parser.add_argument("--ranks", nargs="+", type=int, default=(2, 8))
    parser.add_argument("--machine", default="h200x8")
    options = parser.parse_args()
    heads = ["block", "one GPU"]
    for ranks in options.ranks:
        heads += [f"{ranks} ranks share", "time", "faster"]
    cases = blocks(options.blocks, options.tokens)
    rows = (row(case, options.ranks, options.machine) for case in cases)
    print(markdown(heads, rows))


def row(case: Case, ranks: Iterable[int], machine: str) -> list[str]:
    """Return the cells of a block."""
    one = compiled(case, TritonDistributedPass(to="dataflow"), machine)
    cells = [case.name, f"{1e6 * one.seconds:,.0f} us"]
    for count in ranks:
        several = TritonDistributedPass(count, to="dataflow")
        found = compiled(case, several, machine)
        faster = one.seconds / found.seconds
        cells += [found.shared, f"{1e6 * found.seconds:,.0f} us", f"{faster:.1f}"]
    return cells


def compiled(case: Case, pipeline: TritonDistributedPass, machine: str) -> Compiled:
    """Return what ranks share of a block, and the time of its launch plan."""
    with session() as record:
        plan = after_passes(case, machine, (pipeline,))
    return Compiled(shared_of(record.choices), predicted_times(plan).eager)


def shared_of(choices: Iterable[Choice]) -> str:
    """Return the label of the shardings whose launch plan was taken."""
    outer = {each.name: each for each in choices if not each.within}
    if (trials := outer.get("shardings")) is None:
        return "nothing"
    plans = outer.get("plans of shardings")
    chosen = 0 if plans is None or plans.chosen is None else plans.chosen
    label = trials.rows[chosen].label
    return "nothing" if label == "as stated" else label


if __name__ == "__main__":
    main()
