"""Estimates on GPUs: of launch plans, or of kernels that are launched one by one."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from comet.cost.estimate import ModelName
from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.program import priced, steps_of
from comet.cost.gpu.taxes import Taxes, taxes_by_step
from comet.dialects.arch import SystemOp
from comet.dialects.cost import Figures, Model, TimeUnit, estimate_of
from comet.dialects.dataflow import ProgramOp
from comet.dialects.dataflow.program import programs_in
from comet.dialects.errors import OpError
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.node import NodeOp

PRICED = NodeOp | ProgramOp
"""A function without such an op cannot be priced."""


def function_estimates(
    func: FuncOp, system: SystemOp, model: ModelName
) -> Iterator[tuple[Operation, Figures]]:
    """Yield the estimates of launch plans and their steps, or that of all kernels."""
    programs = programs_in(func)
    if not programs:
        yield func, _launched_one_by_one(func, system, model)
    for program in programs:
        prices = _program_estimates(program, system, model)
        yield func, prices[0][1]
        yield from prices


def _launched_one_by_one(func: FuncOp, system: SystemOp, model: ModelName) -> Figures:
    """Return the sum of all kernels and their launches."""
    kernels = [op for op in func.walk() if isinstance(op, SpatialOp)]
    figures = [estimate_of(op) for op in kernels]
    latencies = [cost.latency for cost in figures if cost is not None]
    if len(latencies) != len(kernels):
        raise OpError(
            func,
            f"annotate-cost: the kernels of @{func.sym_name.data} have no estimates; "
            "run tile first",
        )
    launches = device_of(system).times.launch * 1e9 * len(kernels)
    latency = sum(latencies) + launches
    return Figures(Model(model), TimeUnit.NS, latency, launch_tax=launches)


def _program_estimates(
    program: ProgramOp, system: SystemOp, model: ModelName
) -> list[tuple[Operation, Figures]]:
    """Return the figures of a launch plan, then those of its kernels and barriers."""
    price = priced(program, system)
    total = _tax_figures(price.taxes, model)
    found: list[tuple[Operation, Figures]] = [(program, total)]
    by_step = taxes_by_step(price.timeline)
    for name, op in steps_of(program).items():
        if name in by_step:
            found.append((op, _tax_figures(by_step[name], model)))
    return found


def _tax_figures(taxes: Taxes, model: ModelName) -> Figures:
    """Return taxes in whole nanoseconds; the latency is the sum of rounded parts."""
    parts = (taxes.busy, taxes.launch, taxes.synchronization, taxes.locality)
    busy, launch, synchronization, locality = (round(part * 1e9) for part in parts)
    return Figures(
        Model(model),
        TimeUnit.NS,
        busy + launch + synchronization + locality,
        launch_tax=launch,
        synchronization_tax=synchronization,
        locality_tax=locality,
    )
