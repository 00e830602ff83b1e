"""
How long graphs take to compile: blocks of transformers, one after the other.

    python benchmarks/graph_compile.py [--blocks llama gpt2] [--counts 1 2 3]
        [--tokens 2048] [--machine h200x1] [--rounds 3]

Each block reads the result of the one before and has the same weights. Prints the ops
of each graph and the processor time of `comet-opt`, from IR to a module of Triton, in
a process of its own: the least of some rounds.
"""

from __future__ import annotations

import argparse

from graph_programs import BLOCKS, blocks, stacked
from graphs import compile_seconds, elementary
from ladder_programs import Case
from markdown import markdown


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--blocks", nargs="+", default=("llama", "gpt2"), choices=BLOCKS
    )
    parser.add_argument("--counts", nargs="+", type=int, default=(1, 2, 3))
    parser.add_argument("--tokens", type=int, default=2048)
    parser.add_argument("--machine", default="h200x1")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows: list[list[str]] = []
    for case in blocks(options.blocks, (options.tokens,)):
        for count in options.counts:
            text = stacked(case.text, count)
            ops = len(elementary(Case(case.name, 1, text), options.machine))
            seconds = min(
                compile_seconds(text, options.machine) for _ in range(options.rounds)
            )
            rows.append([case.name, str(count), str(ops), f"{seconds:.1f} s"])
    print(markdown(("block", "blocks", "ops", "compile"), rows))


if __name__ == "__main__":
    main()
