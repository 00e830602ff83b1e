"""
How many mappings a second the cost models price.

    python benchmarks/pricing.py [--count 64000]

Prices recorded mappings of the test data: one by one from parsed files under every
model, and as arrays of factors, varied at random, under `paper` and `ideal`. Times are
of the processor, so that other load does not count.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from comet.codegen.comet.reader import read_files
from comet.cost.accelerator.mappings import FactorKey, Mappings
from comet.cost.accelerator.model import price_many
from comet.cost.accelerator.problem import Problem, walk_tiles
from comet.cost.from_ir.mapping import estimate_module, problem_of, system_hardware

DATA = Path(__file__).parents[1] / "tests" / "data" / "cost"
FAMILIES = ("gemm", "softmax-fused", "attention-one", "layernorm-unfusedall")
REPEATS = 5


def module_of(family: str) -> ModuleOp:
    """Return the first recorded mapping of a family."""
    archs: dict[str, str] = json.loads((DATA / "archs.json").read_text())
    runs: list[dict[str, Any]] = json.loads((DATA / "runs.json").read_text())["items"]
    run = next(run for run in runs if run["family"] == family)
    texts = {f"{key}.yaml": run[key] for key in ("problem", "mapping", "constants")}
    return read_files({"arch.yaml": archs[run["arch"]], **texts})


def varied(problem: Problem, count: int) -> Mappings:
    """Return mappings whose temporal factors are 1, 2 or 4 times the template's."""
    generator = np.random.default_rng(0)
    factors: dict[FactorKey, NDArray[np.float64]] = {}
    for tile in walk_tiles(problem.root):
        own: dict[tuple[str, int], NDArray[np.float64]] = {}
        for place, entry in enumerate(() if tile.spatial else tile.entries):
            for dim, factor in entry.factors[0].items():
                if (dim, factor) not in own:
                    powers = np.exp2(generator.integers(0, 3, count))
                    own[dim, factor] = np.asarray(factor * powers, np.float64)
                factors[tile.index, place, 0, dim] = own[dim, factor]
    return Mappings(problem, factors)


def rate(work: Callable[[], object], count: int) -> float:
    """Return how many of `count` mappings a second `work` prices, at its best."""
    best = float("inf")
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return count / best


def main() -> None:
    """Print a row for every mapping."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=64000)
    count: int = parser.parse_args().count
    columns = ("tool, one", "paper, one", "ideal, one", "paper, many", "ideal, many")
    print(f"{'mappings a second':<22}" + "".join(f"{c:>14}" for c in columns))
    for family in FAMILIES:
        module = module_of(family)
        hardware = system_hardware(module)
        many = varied(problem_of(module), count)
        rates = [
            rate(lambda: estimate_module(module, "tool"), 1),
            rate(lambda: estimate_module(module, "paper"), 1),
            rate(lambda: estimate_module(module, "ideal"), 1),
            rate(lambda: price_many(many, hardware, "paper"), count),
            rate(lambda: price_many(many, hardware, "ideal"), count),
        ]
        print(f"{family:<22}" + "".join(f"{r:>14,.0f}" for r in rates))


if __name__ == "__main__":
    main()
