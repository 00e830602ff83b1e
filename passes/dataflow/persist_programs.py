"""
`persist-programs`: dataflow level -> the same, with programs that do several tiles.

A launch gets P programs, as many as its GPU runs at a time: program p computes the
tiles p, p + P, p + 2 P and so on. P is the launch number `persistent`; launches of at
most P tiles stay as they are. Fewer programs are started (which the model does not
price), and the loads of the next tile may overlap with the end of a tile:

* With producer warps (`specialize-warps`), they also run the loop over tiles, and load
  the next tile while the other warps still store the last one. All tiles of a program
  are one pipeline, in the code of Triton 3.6 and 3.9.
* If a tile has no loop of several iterations, the loop over tiles is the one that is
  pipelined; a launch of one stage gets as many stages as fit.
* Rows without products are loaded ahead, too, unless copies pass through registers.
* Otherwise the pipeline of the inner loop ends with each tile: no more overlaps.

If a mask bounds loops, tiles take different times. Programs cannot take over tiles of
others, so that the program with the longest tiles decides the time.

An operand of products that all tiles read can be *stationary*: programs load it once,
and keep it in shared memory. An example is the right operand, where a tile has all
columns and terms, and matrix instructions read shared memory. `hoist-copies` moves its
copy before the loop over tiles.

Needs launch numbers. In a kernel of several nodes each node gets P programs. Groups of
programs that exchange already compute several rows each, and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from math import inf
from operator import add
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import launch_numbers, summarize, tile_blocks
from comet.cost.from_ir.tile_loops import kept_bytes
from comet.cost.gpu.capacity import fits, register_limit
from comet.cost.gpu.device import Device
from comet.cost.gpu.kernel import kernel_time, resident_programs
from comet.cost.gpu.persistent import (
    can_be_stationary,
    persistent_work,
    pipelines_tiles,
    with_tile_loop,
)
from comet.cost.gpu.registers import REGISTER
from comet.cost.gpu.specialized import persistent_shared_bytes
from comet.cost.gpu.spent import Spent
from comet.cost.gpu.summary import KernelSummary
from comet.cost.gpu.tiling import kernel_work
from comet.cost.gpu.work import KernelWork
from comet.cost.reals import Real
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.dataflow import KernelOp
from comet.dialects.dataflow.merging import launched_nodes
from comet.dialects.dataflow.persistence import loads_tiles_ahead, unfit_for_tiles
from comet.dialects.dataflow.transfer import WaitOp
from comet.dialects.errors import OpError
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.launch import LaunchAttr
from comet.passes.analysis.hardware_kind import attached_gpu
from comet.passes.analysis.levels import IRLevel, functions_at
from comet.passes.analysis.numbered_kernels import (
    ALL,
    NONE,
    format_numbered,
    numbered_kernels,
)
from comet.passes.pipeline import AUTO, ChoosingPass
from comet.passes.schedule.hoist_copies import stationary_tiles
from comet.passes.schedule.tile.gpu.space import STAGES
from comet.passes.search import cheapest, timed
from comet.passes.triton.specialize_warps import SPECIALIZED

PERSIST = "comet.persist"
"""The attribute of a function with the kernels whose programs do several tiles."""


@dataclass(frozen=True)
class PersistProgramsPass(ChoosingPass):
    """Launch programs that do one tile after another."""

    name = "persist-programs"

    NOTES: ClassVar[Mapping[str, str]] = {"kernels": PERSIST}

    kernels: str = AUTO
    """
    The kernels, each with the number of its programs if that is not what the GPU runs
    at a time, as in "f_c_kernel f_d_kernel=66"; `all` that can; `none`; `auto`:
    those for which that is faster; or `specialized`: those of them with warps that only
    load. Those that are not named have registers for the loop over tiles.
    """

    resident: bool = True
    """Whether programs may keep operands that all of their tiles read."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        system = attached_gpu(self.name, op)
        gpu = GpuModel(device_of(system), gpu_levels(system), self.resident)
        for function in functions_at(op, self.name, IRLevel.DATAFLOW, copies=True):
            plan = plan_programs(function, gpu, self.kernels)
            function.attributes[PERSIST] = StringAttr(format_programs(plan))
            for kernel in plan:
                persist(kernel)


@dataclass(frozen=True)
class GpuModel:
    """The GPU for which numbers of programs are priced."""

    device: Device
    levels: GpuLevels
    stationary: bool
    """Whether programs may keep operands that all of their tiles read."""


@dataclass(frozen=True)
class PersistentKernel:
    """A kernel, and how it is launched with persistent programs."""

    kernel: KernelOp
    programs: int
    """The most programs that each of its nodes is launched with."""
    stages: int
    """num_stages of the software pipeline."""
    stationary: frozenset[SpatialOp]
    """The nodes whose programs keep operands."""
    registers: float
    """Registers that a thread needs, by the model."""
    most_registers: float
    """The most that it may need."""
    has_buffers: bool
    """Whether shared memory has room for what producer warps load of the next tile."""

    @property
    def is_useful(self) -> bool:
        """Whether a node has more tiles than there are persistent programs."""
        return any(
            node.trip_count > self.programs for node in launched_nodes(self.kernel)
        )

    @property
    def fits(self) -> bool:
        """Whether programs have the registers and buffers that the loop adds."""
        return self.registers <= self.most_registers and self.has_buffers


def plan_programs(
    function: FuncOp, gpu: GpuModel, kernels: str
) -> tuple[PersistentKernel, ...]:
    """
    Return the kernels of a function that get persistent programs.

    Raises PassFailedException for given kernels that cannot have them.
    """
    found = {op.sym_name.data: op for op in function.walk() if isinstance(op, KernelOp)}
    if kernels not in (ALL, AUTO, NONE, SPECIALIZED):
        return tuple(_named_kernels(found, gpu, kernels))
    if kernels == NONE:
        return ()
    able = [op for op in found.values() if unfit_for_tiles(op) is None and op.launch]
    if kernels == SPECIALIZED:
        able = [op for op in able if op.launch and op.launch.specialize]
    plans = [plan_launch(op, gpu) for op in able]
    return tuple(
        plan
        for plan in plans
        if plan.is_useful and plan.fits and (kernels == ALL or _gains(plan, gpu))
    )


def format_programs(plan: Sequence[PersistentKernel]) -> str:
    """Return the text of the option that makes the same programs."""
    return format_numbered((each.kernel, each.programs) for each in plan)


def persist(plan: PersistentKernel) -> None:
    """Write the number of programs on each node that has more tiles than that."""
    for node in launched_nodes(plan.kernel):
        if node.trip_count > plan.programs:
            node.launch = (node.launch or LaunchAttr()).replaced(
                stages=plan.stages,
                persistent=plan.programs,
                resident=node in plan.stationary,
            )


def _named_kernels(
    found: Mapping[str, KernelOp], gpu: GpuModel, text: str
) -> Iterator[PersistentKernel]:
    """Yield the kernels that `text` names."""
    for op, programs in numbered_kernels("persist-programs", found, text, "programs"):
        if (reason := unfit_for_tiles(op)) is not None:
            raise OpError(op, f"persist-programs: {reason}")
        yield plan_launch(op, gpu, programs)


def plan_launch(
    kernel: KernelOp, gpu: GpuModel, programs: int | None = None
) -> PersistentKernel:
    """
    Return the launch of a kernel; without `programs`, as many as run at a time.

    Raises PassFailedException if the kernel has no launch numbers.
    """
    if kernel.launch is None:
        raise PassFailedException(
            f"persist-programs: kernel @{kernel.sym_name.data} has no launch numbers; "
            "run tile before outline-kernels"
        )
    models = _models(kernel, gpu)
    stages = _stages(models, kernel.launch.stages, programs)
    works = [model.persistent(stages, 1) for model in models]
    programs = programs or _resident(works, gpu.device)
    stationary = frozenset(model.node for model in models if model.is_stationary)
    registers = max(_thread_registers(work, gpu.device) for work in works)
    # Where warps are specialized, the launch divides all registers among them.
    limit = float(register_limit(kernel.launch.warps, gpu.device))
    most = inf if kernel.launch.specialize else limit
    held = (model.shared_bytes(work) for model, work in zip(models, works, strict=True))
    room = max(held) <= gpu.device.limits.shared_bytes
    return PersistentKernel(kernel, programs, stages, stationary, registers, most, room)


def _thread_registers(work: KernelWork, device: Device) -> float:
    """Return the registers of a thread of a program."""
    threads = device.limits.warp_threads * work.needs.warps
    return float(work.needs.registers / threads / REGISTER)


def _resident(works: Iterable[KernelWork], device: Device) -> int:
    """Return how many programs of any of some nodes the GPU runs at a time."""
    return int(min(resident_programs(work, device) for work in works))


def _stages(models: Sequence[_NodeModel], stages: int, programs: int | None) -> int:
    """
    Return num_stages for `programs`; with None, for as many programs as run at a time.

    A loop over tiles without products gets the fastest number (1 if copies pass through
    registers, as further stages change nothing then). Other loops over tiles that are
    pipelined get the most stages that fit in place of one stage.
    """
    fitting = [n for n in STAGES if all(model.fits(n) for model in models)]
    if all(model.tiles_ahead for model in models):
        return min((1, *fitting), key=lambda n: float(_time(models, n, programs)))
    if stages > 1 or not all(model.pipelines_tiles for model in models):
        return stages
    return max((1, *fitting))


def _time(models: Sequence[_NodeModel], stages: int, programs: int | None) -> Spent:
    """Return how long persistent programs take; see `_stages`."""
    device = models[0].gpu.device
    if programs is None:
        programs = _resident([model.persistent(stages, 1) for model in models], device)
    works = [model.persistent(stages, programs) for model in models]
    return _one_by_one(works, device)


def _one_by_one(works: Iterable[KernelWork], device: Device) -> Spent:
    """Return the time of the nodes of a launch, which follow each other."""
    return reduce(add, (kernel_time(work, device).spent for work in works))


def _models(kernel: KernelOp, gpu: GpuModel) -> list[_NodeModel]:
    """Return the models of all nodes of a kernel."""
    waits = any(isinstance(op, WaitOp) for op in kernel.walk())
    return [
        _NodeModel(
            node,
            summarize(node, gpu.levels, gpu.device),
            tile_blocks(node),
            kernel.launch_of(node),
            waits,
            loads_tiles_ahead(kernel),
            gpu,
        )
        for node in launched_nodes(kernel)
    ]


@dataclass(frozen=True)
class _NodeModel:
    """The work of a node of a kernel, for some launch numbers."""

    node: SpatialOp
    summary: KernelSummary
    blocks: Mapping[str, int]
    launch: LaunchAttr
    waits: bool
    """Whether programs wait for other ranks: they load nothing before."""
    tiles_ahead: bool
    """Whether a loop over tiles without products may load later ones ahead."""
    gpu: GpuModel

    @property
    def pipelines_tiles(self) -> bool:
        """Whether the loop over tiles is the one that is pipelined."""
        return not self.waits and bool(pipelines_tiles(self.summary, self.blocks))

    @property
    def is_stationary(self) -> bool:
        """Whether programs keep operands that all of their tiles read."""
        if self.waits or not self.gpu.stationary or not stationary_tiles(self.node):
            return False
        return bool(can_be_stationary(self.summary, self.blocks, self.gpu.device))

    @property
    def kept(self) -> Real:
        """The bytes that a program keeps in registers from tile to tile."""
        return kept_bytes(self.node, self.summary, self.blocks)

    def work(self, stages: int, summary: KernelSummary | None = None) -> KernelWork:
        """Return the work of programs that compute a tile each, unless `summary`."""
        numbers = replace(launch_numbers(self.launch), stages=stages)
        summary = summary or self.summary
        return kernel_work(summary, self.blocks, numbers, self.gpu.device)

    def persistent(self, stages: int, programs: int) -> KernelWork:
        """Return the same for a number of persistent programs."""
        nest = self.summary.nest
        nest = replace(nest, order=replace(nest.order, persistent=programs))
        summary = replace(self.summary, nest=nest)
        work = self.work(stages, summary)
        loops = replace(work.loops, loads_ahead=self.launch.specialize)
        work = replace(work, loops=loops)
        if self.waits:
            return with_tile_loop(work, summary, self.gpu.device, self.kept)
        return persistent_work(
            work,
            self.summary,
            self.blocks,
            programs,
            self.gpu.device,
            stationary=self.is_stationary,
            tiles_ahead=self.tiles_ahead,
            kept=self.kept,
        )

    def shared_bytes(self, work: KernelWork) -> float:
        """Return the shared memory of a program with the `work` of `persistent`."""
        return float(persistent_shared_bytes(work.needs, self.summary, self.blocks))

    def fits(self, stages: int) -> bool:
        """Return whether a persistent program with this number of stages fits."""
        work = self.persistent(stages, 1)
        return bool(fits(self.summary, self.blocks, work.needs, self.gpu.device))


def _gains(plan: PersistentKernel, gpu: GpuModel) -> bool:
    """Whether a launch takes less time if each program does several tiles."""
    models, launch = _models(plan.kernel, gpu), plan.kernel.launch
    if launch is None:
        return False

    def of_one_tile() -> Spent:
        works = (model.work(launch.stages) for model in models)
        return _one_by_one(works, gpu.device)

    several = partial(_time, models, plan.stages, plan.programs)
    candidates = [
        timed("a program for each tile", False, of_one_tile),
        timed(f"{plan.programs} programs, {plan.stages} stages", True, several),
    ]
    return cheapest("programs", f"@{plan.kernel.sym_name.data}", candidates).result
