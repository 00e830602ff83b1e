"""
How fast the kernels that comet chooses are by the model, beside torch as measured.

    python benchmarks/gpu_predicted.py

Compiles each op and size of `gpu_goals.py` for one H200 and prices it as a replayed
graph, as times were taken in a stream that never runs dry. Prints the ratio to what was
measured of torch, and its geometric mean beside what a goal needs. No GPU is needed:
all are predictions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import geometric_mean

from gpu_goals import MICROSECONDS
from gpu_programs import of_one_rank
from gpu_verdict import GOALS, OF_THE_BYTES, Goal, key_bytes
from ladder_programs import Case, after_passes, predicted_times
from markdown import markdown
from xdsl.dialects.builtin import ModuleOp

from comet.cost.from_ir.gpus import device_of
from comet.dialects.arch import attached_system

DECODE = "flash_decode"


def extents_of(size: str) -> dict[str, int]:
    """Return the extents of a size as `gpu_goals.py` spells it."""
    if " " in size:
        return {word[0]: int(word[1:]) for word in size.split()}
    return dict(zip("MNK", map(int, size.split("x")), strict=True))


def compiled(op: str, size: str) -> ModuleOp:
    """Return the launch plan of an op in bf16, as comet chooses it."""
    program = of_one_rank(op, extents_of(size), "bfloat16")
    source = Case("", 1, program.text)
    return after_passes(source, program.hardware, [program.compiler])


def rows(goal: Goal) -> Iterator[tuple[float, list[str]]]:
    """Yield how much faster than torch each size of a goal is, with its row."""
    for size, measured in MICROSECONDS[goal.kind].items():
        own = 1e6 * predicted_times(compiled(goal.kind, size)).graph
        torch = measured[goal.than]
        ratio = torch / own
        shown = [f"{own:.1f}", f"{torch:.1f}", f"{ratio:.2f}"]
        yield ratio, [goal.kind, size, goal.than, *shown, ""]


def decode_rows() -> Iterator[tuple[float, list[str]]]:
    """Yield how much longer than its bytes flash decode takes, with a row."""
    for size in MICROSECONDS[DECODE]:
        plan = compiled(DECODE, size)
        rate = device_of(attached_system(plan)).memory.hbm_bandwidth
        least = 1e6 * key_bytes(extents_of(size)) / rate
        own = 1e6 * predicted_times(plan).graph
        shown = [f"{own:.1f}", f"{least:.1f}", f"{own / least:.2f}"]
        yield own / least, [DECODE, size, "its bytes", *shown, ""]


def table() -> Iterator[list[str]]:
    """Yield the sizes of each goal, then their mean beside what is needed."""
    for goal in GOALS:
        if goal.kind in MICROSECONDS:
            yield from with_mean(rows(goal), f"{goal.mean:.2f}")
    yield from with_mean(decode_rows(), f"at most {OF_THE_BYTES}")


def with_mean(
    found: Iterable[tuple[float, list[str]]], needed: str
) -> Iterator[list[str]]:
    """Yield the rows of a goal, then one with the geometric mean of their ratios."""
    ratios: list[float] = []
    for ratio, row in found:
        ratios.append(ratio)
        yield row
    yield ["", "mean", "", "", "", f"{geometric_mean(ratios):.2f}", needed]


def main() -> None:
    """Print the table."""
    columns = ("op", "size", "than", "predicted, us", "measured, us", "ratio", "needed")
    print(markdown(columns, table()))


if __name__ == "__main__":
    main()
