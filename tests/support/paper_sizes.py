"""AG+GEMM and flash decode at the sizes of arXiv 2511.02168, priced on MI300X."""

from functools import cache

from ladder_programs import ag_gemm, flash_decode, launch_plan
from xdsl.dialects.builtin import ModuleOp

from comet.cost.launch_plan import Machine, Plan
from comet.cost.taxes import price_plan
from comet.dialects.arch import attached_system
from comet.dialects.dataflow import ProgramOp
from comet.passes.choose_pattern import Candidate, PatternName, with_pattern
from comet.passes.gpu_levels import gpu_levels
from comet.passes.launch_plans import in_place, machine_for, plan_of

MACHINE = "mi300x8"
ROWS = (1, 16, 20, 24, 64, 256, 1024, 4096)
"""M of AG+GEMM."""
BATCHES = (1, 4, 8, 16)
KEYS = (8192, 32768, 131072, 524288)
"""Keys on every rank."""


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
        module = with_pattern(module, Candidate(pattern, persistent=persistent))
    (program,) = (op for op in module.walk() if isinstance(op, ProgramOp))
    system = attached_system(module)
    machine = machine_for(program, system, graph=graph)
    return plan_of(program, machine, gpu_levels(system)), machine


@cache
def gemm(
    rows: int,
    pattern: PatternName | None,
    ranks: int = 8,
    *,
    resident: bool = True,
    graph: bool = False,
) -> tuple[Plan, Machine]:
    """Return AG+GEMM; `resident`: A lies in symmetric memory, as in the paper."""
    plan, machine = _planned(_gemm(rows, ranks), pattern, graph=graph)
    return in_place(plan) if resident else plan, machine


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
