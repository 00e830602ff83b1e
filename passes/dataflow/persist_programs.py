"""
`persist-programs`: dataflow level -> the same, with programs that do several tiles.

A launch has as many programs as its GPU runs at a time; each does a tile, then the one
so many further on. The number is `persistent` of the launch numbers; launches with no
more tiles than that stay as they are. That saves starting programs, which the model
does not price. What overlaps depends on who loads: where warps of their own do
(`specialize-warps`), the loop over tiles is theirs, too, and they load the next tile
while the others still store the last one: one pipeline for all tiles of a program, in
what Triton 3.6 and 3.9 make of it. Otherwise the pipeline of the loop inside ends with
each tile, and nothing overlaps that did not. Where a mask bounds loops, tiles differ,
and a program with short ones cannot take over others: `auto` leaves such a kernel.

Needs launch numbers. In a kernel of several nodes each gets so many programs. Groups of
programs that exchange do their rows in turns already, and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import launch_numbers, summarize, tile_blocks
from comet.cost.gpu.kernel import Device, KernelWork, kernel_time, resident_programs
from comet.cost.gpu.tiling import kernel_work
from comet.dialects.arch import attached_system
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.collective.spmd import rank_count
from comet.dialects.dataflow import KernelOp
from comet.dialects.dataflow.merging import launched_nodes
from comet.dialects.dataflow.persistence import unfit_for_tiles
from comet.dialects.errors import OpError
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.attributes import LaunchAttr
from comet.passes.analysis.hardware_kind import require_gpu
from comet.passes.analysis.levels import IRLevel, functions_at
from comet.passes.pipeline import AUTO, ChoosingPass
from comet.passes.schedule.hoist_copies import HoistCopiesPass
from comet.passes.schedule.materialize_copies import MaterializeCopiesPass
from comet.passes.search import Candidate, Cost, Found, cheapest
from comet.passes.triton.specialize_warps import SpecializeWarpsPass
from comet.passes.triton.use_descriptors import UseDescriptorsPass

PERSIST = "comet.persist"
"""The attribute of a function with the kernels whose programs do several tiles."""
ALL, NONE = "all", "none"


@dataclass(frozen=True)
class PersistProgramsPass(ChoosingPass):
    """Launch programs that do one tile after another."""

    name = "persist-programs"

    NOTES: ClassVar[Mapping[str, str]] = {"kernels": PERSIST}

    kernels: str = AUTO
    """
    The kernels, each with the number of its programs if that is not what the GPU runs
    at a time, as in "f_c_kernel f_d_kernel=66"; `all` that can; `none`; or `auto`:
    those for which that is faster.
    """

    specialize: bool = False
    """Whether `use-descriptors` and `specialize-warps` follow."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        system = attached_system(op)
        require_gpu(self.name, system)
        ahead = loading_ahead(ctx, op) if self.specialize else frozenset[str]()
        gpu = GpuModel(device_of(system), gpu_levels(system), ahead)
        for function in functions_at(op, self.name, IRLevel.DATAFLOW, copies=True):
            plan = plan_programs(function, gpu, self.kernels)
            function.attributes[PERSIST] = StringAttr(format_programs(plan))
            for kernel in plan:
                persist(kernel)


@dataclass(frozen=True)
class GpuModel:
    """What programs are priced for."""

    device: Device
    levels: GpuLevels
    ahead: frozenset[str]
    """The names of the kernels with warps that only load (warp specialization)."""


def loading_ahead(ctx: Context, module: ModuleOp) -> frozenset[str]:
    """Return the names of the kernels that `specialize-warps` will specialise."""
    if any(isinstance(op, KernelOp) and rank_count(op) > 1 for op in module.walk()):
        return frozenset()
    copy = module.clone()
    MaterializeCopiesPass().apply(ctx, copy)
    HoistCopiesPass().apply(ctx, copy)
    UseDescriptorsPass().apply(ctx, copy)
    SpecializeWarpsPass().apply(ctx, copy)
    return frozenset(
        kernel.sym_name.data
        for kernel in copy.walk()
        if isinstance(kernel, KernelOp)
        and any(isinstance(op, TemporalOp) and op.specialize for op in kernel.walk())
    )


@dataclass(frozen=True)
class PersistentKernel:
    """A kernel, and how many programs each of its nodes is launched with, at most."""

    kernel: KernelOp
    programs: int

    @property
    def is_useful(self) -> bool:
        """Whether a node has more tiles than that."""
        return any(_tiles(node) > self.programs for node in launched_nodes(self.kernel))


def plan_programs(
    function: FuncOp, gpu: GpuModel, kernels: str
) -> tuple[PersistentKernel, ...]:
    """
    Return the kernels of a function that get persistent programs.

    Raises PassFailedException for given kernels that cannot have them.
    """
    found = {op.sym_name.data: op for op in function.walk() if isinstance(op, KernelOp)}
    if kernels not in (ALL, AUTO, NONE):
        return tuple(_named_kernels(found, gpu, kernels))
    if kernels == NONE:
        return ()
    able = [op for op in found.values() if unfit_for_tiles(op) is None and op.launch]
    plans = [PersistentKernel(op, programs_at_a_time(op, gpu)) for op in able]
    return tuple(
        plan
        for plan in plans
        if plan.is_useful and (kernels == ALL or _gains(plan, gpu))
    )


def format_programs(plan: Sequence[PersistentKernel]) -> str:
    """Return the text of the option that makes the same programs."""
    names = (f"{planned.kernel.sym_name.data}={planned.programs}" for planned in plan)
    return " ".join(names) or NONE


def persist(plan: PersistentKernel) -> None:
    """Write how many programs a kernel is launched with, where that are fewer."""
    for node in launched_nodes(plan.kernel):
        if _tiles(node) > plan.programs:
            launch = node.launch or LaunchAttr()
            node.launch = LaunchAttr(**launch.numbers, persistent=plan.programs)


def _named_kernels(
    found: Mapping[str, KernelOp], gpu: GpuModel, text: str
) -> Iterator[PersistentKernel]:
    """Yield the kernels that `text` names."""
    for entry in text.split():
        name, _, number = entry.removeprefix("@").partition("=")
        if name not in found:
            raise PassFailedException(
                f"persist-programs: kernels names {name}, and the kernels are "
                f"{', '.join(found) or 'none'}; use one of these, or all, auto or none"
            )
        if "=" in entry and not (number.isdecimal() and int(number)):
            raise PassFailedException(
                f"persist-programs: kernels has '{entry}'; write a number of programs "
                f"from 1, as in {name}=132"
            )
        op = found[name]
        if (reason := unfit_for_tiles(op)) is not None:
            raise OpError(op, f"persist-programs: {reason}")
        programs = int(number) if number else programs_at_a_time(op, gpu)
        yield PersistentKernel(op, programs)


def programs_at_a_time(kernel: KernelOp, gpu: GpuModel) -> int:
    """
    Return how many programs of a kernel a GPU runs at the same time.

    Raises PassFailedException if the kernel has no launch numbers.
    """
    if kernel.launch is None:
        raise PassFailedException(
            f"persist-programs: kernel @{kernel.sym_name.data} has no launch numbers; "
            "run tile before outline-kernels"
        )
    resident = min(resident_programs(work, gpu.device) for work in _works(kernel, gpu))
    return gpu.device.multiprocessors * max(int(resident), 1)


def _works(kernel: KernelOp, gpu: GpuModel) -> list[KernelWork]:
    """
    Return the work of the programs of each node, one for each tile.

    Three groups of warps, of which one loads, get all registers of a multiprocessor:
    168 a thread, in what Triton 3.6 and 3.9 make for sm_90.
    """
    launch, device = kernel.launch, gpu.device
    assert launch is not None
    numbers = launch_numbers(launch)
    works: list[KernelWork] = []
    for node in launched_nodes(kernel):
        summary = summarize(node, gpu.levels, device)
        work = kernel_work(summary, tile_blocks(node), numbers, device)
        if kernel.sym_name.data in gpu.ahead:
            work = replace(work, registers=device.register_bytes)
        works.append(work)
    return works


def _tiles(node: SpatialOp) -> int:
    """Return how many tiles a node has, over all its programs."""
    return prod(loop.factor for loop in node.loops)


def _gains(plan: PersistentKernel, gpu: GpuModel) -> bool:
    """Whether a launch takes less time if its programs do several tiles, all alike."""
    nodes = launched_nodes(plan.kernel)
    summaries = (summarize(node, gpu.levels, gpu.device) for node in nodes)
    if any(summary.bounds for summary in summaries):
        return False
    works, ahead = _works(plan.kernel, gpu), plan.kernel.sym_name.data in gpu.ahead

    def price(persistent: bool) -> Found[bool]:
        tried = (replace(work, loads_ahead=persistent and ahead) for work in works)
        times = (kernel_time(work, gpu.device).seconds for work in tried)
        return Found(persistent, Cost(sum(map(float, times))))

    candidates = [
        Candidate("a program for each tile", partial(price, False)),
        Candidate(f"{plan.programs} programs", partial(price, True)),
    ]
    return cheapest("programs", f"@{plan.kernel.sym_name.data}", candidates).result
