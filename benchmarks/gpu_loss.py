"""
What the first choice of the model loses against the fastest kernel that was measured.

    python benchmarks/gpu_loss.py [tests/data/h200.json]

Prices each recorded kernel of one rank by the model as it is, with the options and
tiles of the record: the one with the lowest price is what the model would choose of
them. Each is priced in the form that it had: what passes younger than the record do is
left out (`THEN`). Kernels with warps that load are left out: in the first run not all
were right. Prints a table, the largest loss first. No GPU is needed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpu_model import spearman
from gpu_programs import of_one_rank
from ladder_programs import Case, after_passes, predicted_times
from markdown import markdown
from xdsl.utils.exceptions import DiagnosticException

from comet.cost.estimate import CostError

RECORD = Path(__file__).parents[1] / "tests" / "data" / "h200.json"
THEN = {"order": "longest", "reciprocals": False, "maxima": False}
"""
What recorded kernels lack: groups of programs that start with the longest loops,
quotients as products, and maxima of unscaled scores.
"""
LEAST = 3
"""The fewest kernels of a size of which a choice says something."""


@dataclass(frozen=True)
class Kernel:
    """One recorded kernel: its options, and microseconds with a cold L2."""

    options: str
    predicted: float
    measured: float


def kernels(case: Mapping[str, Any], then: Mapping[str, Any]) -> Iterator[Kernel]:
    """Yield the kernels of a recorded case that the compiler still makes."""
    program = of_one_rank(case["sample"], case["extents"], case["dtype"])
    for line in case["times"]:
        if len(line) < 5 or (options := case["options"] | line[4]).get("specialize"):
            continue
        forms = {**then, **options, "specialize": False}
        compiler = replace(program.compiler, **forms)
        source = Case("", 1, program.text)
        try:
            plan = after_passes(source, program.hardware, [compiler])
            seconds = predicted_times(plan).graph
        except (DiagnosticException, CostError):
            continue
        yield Kernel(json.dumps(options, sort_keys=True), 1e6 * seconds, line[1])


def of_sizes(cases: Sequence[Mapping[str, Any]]) -> dict[str, list[Kernel]]:
    """Return the distinct kernels of each op and size; of equal ones, the first."""
    found: dict[str, dict[str, Kernel]] = {}
    scaled = set(with_powers_of_two(cases))
    for case in cases:
        if "ranks" in case["id"] or case["ragged"]:
            continue
        sizes = " ".join(f"{dim}{size}" for dim, size in case["extents"].items())
        known = found.setdefault(f"{case['sample']} {sizes}", {})
        exp = "auto" if case["sample"] in scaled else "exp"
        for kernel in kernels(case, {**THEN, "exp": exp}):
            known.setdefault(kernel.options, kernel)
    return {name: list(known.values()) for name, known in found.items()}


def with_powers_of_two(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """
    Yield the ops that were also timed without powers of two, which they had.

    Then only a scale could take the factor, as scores of attention have.
    """
    for case in cases:
        if any(len(line) > 4 and "exp" in line[4] for line in case["times"]):
            yield case["sample"]


def rows(sizes: Mapping[str, Sequence[Kernel]]) -> Iterator[tuple[float, list[str]]]:
    """Yield the loss of each op and size, with its row of the table."""
    for name, found in sizes.items():
        if len(found) < LEAST:
            continue
        chosen = min(found, key=lambda kernel: kernel.predicted)
        fastest = min(found, key=lambda kernel: kernel.measured)
        loss = chosen.measured / fastest.measured - 1
        order = spearman([k.predicted for k in found], [k.measured for k in found])
        times = (chosen.predicted, chosen.measured, fastest.measured)
        shown = [f"{each:.1f}" for each in times]
        yield loss, [name, str(len(found)), *shown, f"{loss:.0%}", f"{order:.2f}"]


def main() -> None:
    """Print the table."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else RECORD
    cases = json.loads(path.read_text())["cases"]
    table = sorted(rows(of_sizes(cases)), key=lambda row: -row[0])
    columns = ("op", "kernels", "first, predicted", "first, us", "fastest, us")
    print(markdown((*columns, "loss", "rank correlation"), [row for _, row in table]))


if __name__ == "__main__":
    main()
