"""
The evaluation of the COMET paper (arXiv 2509.00599), on comet's own mappings.

    python benchmarks/paper.py [--plots docs] [--budget 1000] [--op attention]

For every shape and strategy it searches the best mapping that it can find, once under
each model, and prints latency and energy beside those of the unfused mapping, and the
geometric means beside the figures of the paper's abstract. Plots need the extra `plot`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import geometric_mean

from paper_runs import CLAIMED, MODELS, Row, evaluate, strategies_for

from comet.cost.estimate import ModelName

FULL = "fused-GEMM-dist"
JOINED = f"{FULL} over fused-dist"


def row_text(row: Row, model: ModelName) -> str:
    """Return a row of the table: unfused figures, then gain in latency / energy."""
    unfused = row.cost("unfused", model)
    cells = [row.op, row.machine, " x ".join(map(str, row.shape)), model]
    cells.append(f"{row.bound:,.0f}")
    cells += (
        ["-", "-"]
        if unfused is None
        else [f"{unfused.latency:,.0f}", f"{unfused.energy / 1e6:,.1f}"]
    )
    for name in fused(row.op):
        gains = [row.gain(name, model, figure) for figure in ("latency", "energy")]
        cells.append(" / ".join("-" if x is None else f"{x:.2f}" for x in gains))
    return f"| {' | '.join(cells)} |"


def fused(op: str) -> Sequence[str]:
    """Return the strategies that are compared with the unfused one."""
    return strategies_for(op)[1:]


def header(op: str) -> str:
    """Return the head of the table of an op, in Markdown."""
    names = ["op", "machine", "shape", "model", "DRAM cycles"]
    names += ["unfused cycles", "unfused uJ", *fused(op)]
    return f"| {' | '.join(names)} |\n|{'---|' * len(names)}"


def means(rows: Sequence[Row]) -> Iterator[str]:
    """
    Yield the geometric means of the gains in latency, one table per op.

    Each is over the shapes that the strategy has a mapping for. The last but one is
    that of fusing the product into the rest, which is fused either way.
    """
    for op, group in groupby(rows, key=lambda row: row.op):
        members, names = list(group), fused(op)
        head = ["op", "model", *names, "best of them", "largest", JOINED]
        head.append("paper, up to")
        yield f"\n| {' | '.join(head)} |\n|{'---|' * len(head)}"
        for model in MODELS:
            columns = [gains_of(members, (strategy,), model) for strategy in names]
            largest = gains_of(members, names, model)
            cells = [op, model, *map(mean_text, (*columns, largest))]
            cells += [f"{max(largest, default=0):.2f}"]
            cells += [mean_text(joined(members, model)), f"{CLAIMED[op]}"]
            yield f"| {' | '.join(cells)} |"


def mean_text(gains: Sequence[float]) -> str:
    """Return the geometric mean as text."""
    return f"{geometric_mean(gains):.2f}" if gains else "-"


def gains_of(
    rows: Sequence[Row], strategies: Sequence[str], model: ModelName
) -> list[float]:
    """Return the largest gain in latency of some strategies, row by row."""
    every = [[r.gain(s, model, "latency") for s in strategies] for r in rows]
    known = [[gain for gain in gains if gain is not None] for gains in every]
    return [max(gains) for gains in known if gains]


def joined(rows: Sequence[Row], model: ModelName) -> list[float]:
    """Return the gain of fused-GEMM-dist over fused-dist, row by row."""
    pairs = [(r.cost("fused-dist", model), r.cost(FULL, model)) for r in rows]
    return [a.latency / b.latency for a, b in pairs if a is not None and b is not None]


def main() -> None:
    """Print the tables, and draw the plots if asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip())
    parser.add_argument("--plots", type=Path, help="the folder to write plots into")
    parser.add_argument(
        "--budget", type=int, default=1000, help="mappings priced per search by tool"
    )
    parser.add_argument(
        "--op", nargs="+", choices=CLAIMED, default=CLAIMED, help="only these ops"
    )
    options = parser.parse_args()
    rows: list[Row] = []
    for row in evaluate(options.op, options.budget):
        if not rows or rows[-1].op != row.op:
            print(f"\n{header(row.op)}")
        rows.append(row)
        for model in MODELS:
            print(row_text(row, model), flush=True)
    print()
    print("\n".join(means(rows)))
    if options.plots is not None:
        from paper_plots import plot

        for path in plot(rows, options.plots):
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
