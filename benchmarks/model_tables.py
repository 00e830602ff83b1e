"""
The tables of docs/multi-gpu-model.md: AG+GEMM and flash decode at the sizes of arXiv
2511.02168, priced on MI300X. Nothing runs.

    python benchmarks/model_tables.py
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from ladder_programs import ag_gemm, flash_decode, launch_plan
from markdown import markdown
from xdsl.dialects.builtin import ModuleOp

from comet.cost.from_ir.program import launch_plan_of, machine_for
from comet.cost.gpu.launch_plan import Machine, Plan, in_place
from comet.cost.gpu.taxes import price_plan
from comet.dialects.arch import attached_system
from comet.dialects.dataflow import ProgramOp
from comet.passes.dataflow.bsp_to_dataflow.choose_pattern import (
    PatternName,
    PatternOptions,
    with_pattern,
)

MACHINE = "mi300x8"
ROWS = (1, 16, 20, 24, 64, 256, 1024, 4096)
"""M of AG+GEMM."""
BATCHES = (1, 4, 8, 16)
KEYS = (8192, 32768, 131072, 524288)
"""Keys on every rank."""
SHARED_KEYS = 524288
"""Keys of all ranks together, where the number of ranks varies."""
RANKS = (1, 2, 4, 8)

GEMM_COLUMNS = (
    "M",
    "library",
    "bsp",
    "push",
    "pull",
    "pull, in place",
    "push, graph",
    "pull, in place, graph",
    "fused",
)
RIVALS = ((2, 4), (5, 6))
"""Places of pushing and pulling in place, the faster of which is bold."""


@cache
def _gemm(rows: int, ranks: int) -> ModuleOp:
    return launch_plan(ag_gemm(rows, ranks), MACHINE)


@cache
def _decode(batch: int, keys: int, ranks: int) -> ModuleOp:
    return launch_plan(flash_decode(batch, keys, ranks), MACHINE)


def _planned(
    module: ModuleOp,
    pattern: PatternName | None,
    *,
    graph: bool = False,
    persistent: bool = False,
) -> tuple[Plan, Machine]:
    """Return the launch plan by a pattern; without one, with a library's kernels."""
    if pattern is not None:
        module = with_pattern(module, PatternOptions(pattern, persistent=persistent))
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    system = attached_system(module)
    machine = machine_for(program, system, graph=graph)
    return launch_plan_of(program, system), machine


@cache
def gemm(
    rows: int,
    pattern: PatternName | None,
    ranks: int = 8,
    *,
    symmetric_inputs: bool = True,
    graph: bool = False,
) -> tuple[Plan, Machine]:
    """Return AG+GEMM; A lies in symmetric memory, as in the paper, or in the own."""
    plan, machine = _planned(_gemm(rows, ranks), pattern, graph=graph)
    return in_place(plan) if symmetric_inputs else plan, machine


@cache
def decode(
    keys: int,
    pattern: PatternName | None,
    batch: int,
    ranks: int = 8,
    *,
    persistent: bool = False,
) -> float:
    """Return the seconds of flash decode; without a pattern, by library collectives."""
    whole = _decode(batch, keys, ranks)
    return price_plan(*_planned(whole, pattern, persistent=persistent)).total


def tables() -> Iterator[str]:
    """Yield the tables of the page; times are microseconds."""
    yield markdown(GEMM_COLUMNS, [_gemm_row(rows) for rows in ROWS])
    lengths = [f"{keys // 1024} k" for keys in KEYS]
    yield markdown(("batch", *lengths), [_decode_row(batch) for batch in BATCHES])
    scaling = [_scaling_row(name, pattern) for name, pattern in SCALED]
    yield markdown(("ranks", *map(str, RANKS)), scaling)


SCALED: tuple[tuple[str, PatternName | None], ...] = (
    ("library", None),
    ("fused", "fused"),
)


def _gemm_row(rows: int) -> list[str]:
    plans = (
        gemm(rows, None),
        gemm(rows, "bsp"),
        gemm(rows, "push"),
        gemm(rows, "pull", symmetric_inputs=False),
        gemm(rows, "pull"),
        gemm(rows, "push", graph=True),
        gemm(rows, "pull", graph=True),
        gemm(rows, "fused"),
    )
    seconds = [price_plan(*plan).total for plan in plans]
    cells = [_microseconds(each) for each in seconds]
    for rivals in RIVALS:
        best = min(rivals, key=lambda place: seconds[place])
        cells[best] = f"**{cells[best]}**"
    return [str(rows), *cells]


def _decode_row(batch: int) -> list[str]:
    cells = [str(batch)]
    for keys in KEYS:
        library, fused = decode(keys, None, batch), decode(keys, "fused", batch)
        times = f"{_microseconds(library)} / {_microseconds(fused)}"
        cells.append(f"{times} = {library / fused:.2f}")
    return cells


def _scaling_row(name: str, pattern: PatternName | None) -> list[str]:
    times = (
        decode(SHARED_KEYS // ranks, pattern if ranks > 1 else None, 1, ranks)
        for ranks in RANKS
    )
    return [name, *map(_microseconds, times)]


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.1f}"


if __name__ == "__main__":
    print("\n\n".join(tables()))
