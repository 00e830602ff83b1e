"""
How far the default search of comet-accelerator is from the best mapping.

    python benchmarks/quick_gap.py [--ops ..] [--count 20] [--seed 0] [--limit 15]

Random shapes, most extents with few divisors, under `paper`. The exact search ends when
it has taken the limit as processor time, so that a figure does not depend on what else
the machine does. Where it does not prove its answer in that time, the best mapping that
it found stands for the best. Prints a line for each shape, then a table.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import inf
from random import Random
from statistics import geometric_mean

from markdown import markdown
from paper_programs import HARDWARE, program

import comet
from comet.api.answer import Progress
from comet.api.exploring import Notify, explore
from comet.api.question import Question
from comet.api.source import Source

OPS = ("gemm", "gemm_softmax", "gemm_layernorm", "attention")
MACHINES = ("edge", "cloud")


@dataclass(frozen=True)
class Gap:
    """What both searches find for one program, in cycles."""

    op: str
    machine: str
    shape: tuple[int, ...]
    quick: float
    exact: float
    bound: float
    proven: bool

    @property
    def ratio(self) -> float:
        """How many times as long as the best known mapping the quick one takes."""
        return self.quick / self.exact

    @property
    def most(self) -> float:
        """The same for the lower bound."""
        return self.quick / self.bound if self.bound else inf


def shapes(op: str, count: int, seed: int) -> Iterator[tuple[int, ...]]:
    """Yield random shapes: M, N, K, or heads, queries, keys and the size of a head."""
    random = Random(f"{op} {seed}")
    for _ in range(count):
        if op == "attention":
            sizes = (random.randint(16, 256) for _ in range(2))
            yield random.choice((1, 2, 4, 8)), *sizes, random.choice((32, 64, 128))
        else:
            m = random.choice((1, random.randint(2, 256)))
            yield m, random.randint(16, 256), random.randint(16, 256)


def until(limit: float) -> Notify:
    """Return what ends a search after `limit` seconds of processor time from now."""
    end = time.process_time() + limit

    def check(_progress: Progress) -> None:
        nonlocal end
        if time.process_time() > end:
            end = inf  # the last progress comes after the search
            raise KeyboardInterrupt

    return check


def gap(op: str, machine: str, shape: tuple[int, ...], limit: float) -> Gap:
    """Search twice; the exact search is asked after each structure if it is late."""
    text, hardware = program(op, shape), HARDWARE / f"{machine}.yaml"
    module = comet.parse(text)
    quick = comet.cost(comet.compile(module, hardware).module).latency
    question = Question(
        Source(text, f"{op}.mlir"), Source.read(hardware), time_limit=20 * limit
    )
    answer = explore(question, until(limit))
    assert answer.lower_bound is not None
    best, least = min(quick, answer.latency_cycles), answer.lower_bound
    return Gap(op, machine, shape, quick, best, least, answer.proven)


def row(op: str, machine: str, gaps: list[Gap]) -> list[str]:
    """Return the cells of an op on a machine."""
    proven = [each.ratio for each in gaps if each.proven]
    worst = max(gaps, key=lambda each: each.ratio)
    return [
        op,
        machine,
        f"{len(proven)} of {len(gaps)}",
        f"{geometric_mean(proven):.3f}" if proven else "",
        f"{geometric_mean(each.ratio for each in gaps):.3f}",
        f"{worst.ratio:.3f}: {' x '.join(map(str, worst.shape))}",
        f"{geometric_mean(each.most for each in gaps):.2f}",
    ]


def main() -> None:
    """Print a line for each program as it is searched, then the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", default=",".join(OPS))
    parser.add_argument("--count", type=int, default=20, help="shapes of each op")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=15.0, help="seconds")
    options = parser.parse_args()
    found: dict[tuple[str, str], list[Gap]] = {}
    ops = options.ops.split(",")
    drawn = zip(*(shapes(op, options.count, options.seed) for op in ops), strict=True)
    for together in drawn:
        for (op, shape), machine in product(zip(ops, together, strict=True), MACHINES):
            one = gap(op, machine, shape, options.limit)
            found.setdefault((op, machine), []).append(one)
            print(one, f"{one.ratio:.3f}", flush=True)
    heads = ("op", "machine", "proven", "quick / best, proven", "quick / best found")
    heads += ("worst", "quick / lower bound")
    rows = [row(*key, gaps) for key, gaps in found.items()]
    print(markdown(heads, rows))


if __name__ == "__main__":
    main()
