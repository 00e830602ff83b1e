"""The tilings that the model ranks first, as programs: what its first choice loses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from gpu_programs import Program
from ladder_programs import SAMPLES, parsed
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import summarize
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.schedule import SpatialOp
from comet.passes.analysis.functions import compute_functions
from comet.passes.analysis.grid import grid_nodes
from comet.passes.attach_hardware import AttachHardwarePass
from comet.passes.schedule.node_names import name_nodes
from comet.passes.schedule.plan_string import format_plan
from comet.passes.schedule.tile import TilePass
from comet.passes.schedule.tile.gpu import plan_with
from comet.passes.schedule.tile.gpu.space import KernelTiling, tilings_that_fit

MOST = 12
"""Tilings of a kernel that are timed."""


def with_tiling(program: Program) -> Program:
    """
    Return a program with the tiling of its longest kernel that has its place.

    All other choices, and the tiles of other kernels, are the model's. Raises
    PassFailedException where fewer tilings fit.
    """
    if not program.place:
        return program
    plans = _plans(replace(program, place=0))
    if program.place > len(plans):
        raise PassFailedException(
            f"candidate {program.place} does not apply: {len(plans)} tilings fit"
        )
    compiler = replace(program.compiler, factors=plans[program.place - 1])
    return replace(program, compiler=compiler, place=0)


@lru_cache(maxsize=4)
def _plans(program: Program) -> Sequence[str]:
    """Return the plan strings of the best tilings, the fastest by the model first."""
    tilings = _best_tilings(_untiled(program))
    longest = max(tilings, key=lambda node: tilings[node][0].seconds)
    first = {node: found[0] for node, found in tilings.items()}
    plans = (plan_with(first | {longest: tiling}) for tiling in tilings[longest])
    return tuple(map(format_plan, plans))


def _untiled(program: Program) -> FuncOp:
    """Return the function of a program with its kernels, which have no tiles yet."""
    context, module = parsed(program.text)
    hardware = SAMPLES / "hardware" / f"{program.hardware}.yaml"
    AttachHardwarePass(str(hardware)).apply(context, module)
    for pass_ in program.compiler.passes(context, module):
        if isinstance(pass_, TilePass):
            break
        pass_.apply(context, module)
    (function,) = (each for each in compute_functions(module) if any(grid_nodes(each)))
    name_nodes(function)
    return function


def _best_tilings(function: FuncOp) -> Mapping[SpatialOp, list[KernelTiling]]:
    """Return the tilings of each kernel, the fastest by the model first."""
    module = function.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    system = attached_system(module)
    levels, gpu = gpu_levels(system), device_of(system)
    found: dict[SpatialOp, list[KernelTiling]] = {}
    for node in grid_nodes(function):
        priced = tilings_that_fit(summarize(node, levels, gpu), gpu)
        assert priced is not None, "the program was compiled with some tiling"
        found[node] = priced.best(MOST)
    return found
