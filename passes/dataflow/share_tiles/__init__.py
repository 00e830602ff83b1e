"""
`share-tiles`: dataflow level -> the same, with equal work for sequences of any lengths.

If the sequences of a batch have different lengths, programs with equal parts of the
longest length have unequal work: parts after the end of a sequence are empty. Instead,
the tiles of all sequences form one list, and each program gets an equal run of the
list, as in stream-K. A run may begin and end inside a sequence: the program folds its
tiles of a sequence, stores a partial result, and goes on to the next sequence. Of the
programs with tiles of a sequence, the last one to finish merges the partial results, by
the code that `merge-partials` wrote. Programs compute the list from the lengths.

The op `dataflow.shares` stands for the list. Its results say where the loop over the
tiles of a sequence begins and ends, and how many programs arrive at the counter of the
sequence. The launch has as many programs as the GPU runs at a time, by the model; where
a launch can limit the registers of a thread, it makes the compiler keep to that. A
sequence is divided among at most as many programs as it had parts before, which bounds
the length of a run from below: partial results take no more memory.

Lengths are known only at run time. `auto` takes a list if it is faster at the mean
length of `attach-hardware{lengths=..}`. Without that option all sequences count as long
as the longest one, for which equal parts are best.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.program import priced
from comet.cost.gpu.device import Device
from comet.cost.gpu.registers import REGISTER
from comet.dialects.arch import SystemOp
from comet.dialects.arch.gpu_levels import gpu_levels
from comet.dialects.compound.dims import ceil_div
from comet.dialects.dataflow import KernelOp, ProgramOp
from comet.dialects.dataflow.program import programs_in
from comet.dialects.errors import OpError
from comet.passes.analysis.hardware_kind import attached_gpu
from comet.passes.analysis.levels import IRLevel
from comet.passes.analysis.numbered_kernels import (
    ALL,
    NONE,
    format_numbered,
    numbered_kernels,
)
from comet.passes.dataflow.persist_programs import (
    GpuModel,
    PersistentKernel,
    plan_launch,
)
from comet.passes.dataflow.share_tiles.analysis import (
    PartialFold,
    partial_fold,
    sequence_count,
)
from comet.passes.dataflow.share_tiles.rewrite import share_tiles
from comet.passes.function_pass import FunctionPass
from comet.passes.pipeline import AUTO, ChoosingPass
from comet.passes.search import cheapest, timed

SHARES = "comet.shares"
"""The attribute of a function with the kernels whose programs share lists of tiles."""


@dataclass(frozen=True)
class ShareTilesPass(ChoosingPass, FunctionPass):
    """Give programs equal runs of the tiles of sequences of several lengths."""

    name = "share-tiles"

    LEVELS = (IRLevel.DATAFLOW,)

    NOTES: ClassVar[Mapping[str, str]] = {"kernels": SHARES}

    kernels: str = AUTO
    """
    The kernels, each with the number of its programs if that is not what the GPU runs
    at a time, as in "f_m_kernel=264"; `all` that can; `none`; or `auto`: those for
    which that is faster at the mean length.
    """

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        system = attached_gpu(self.name, module)
        for program in programs_in(function):
            plans = plan_shares(program, system, self.kernels)
            function.attributes[SHARES] = StringAttr(format_shares(plans))
            for plan in plans:
                share_tiles(plan.found, plan.runs, plan.registers)


@dataclass(frozen=True)
class SharedKernel:
    """A kernel whose programs have equal runs of lists of tiles."""

    kernel: KernelOp
    found: PartialFold
    runs: int
    """The runs of each list."""
    registers: int
    """The most registers of a thread, 0 for as many as the compiler takes."""

    @property
    def programs(self) -> int:
        """The number of programs: each has a run of one of the lists."""
        return self.runs * self.found.lists


def plan_shares(
    program: ProgramOp, system: SystemOp, kernels: str
) -> tuple[SharedKernel, ...]:
    """
    Return the kernels of a program whose programs share tiles.

    Raises PassFailedException for given kernels that cannot.
    """
    gpu = GpuModel(device_of(system), gpu_levels(system), stationary=False)
    ops = {kernel.sym_name.data: kernel for kernel in program.kernels()}
    if kernels not in (ALL, AUTO, NONE):
        return tuple(_named(ops, kernels, gpu))
    if kernels == NONE or (kernels == AUTO and gpu.device.mean_length >= 1):
        return ()
    plans = (_plan(kernel, gpu) for kernel in ops.values())
    found = (plan for plan in plans if isinstance(plan, SharedKernel))
    return tuple(
        plan for plan in found if kernels == ALL or _gains(plan, program, system)
    )


def format_shares(plans: Sequence[SharedKernel]) -> str:
    """Return the text of the option that makes the same lists."""
    return format_numbered((plan.kernel, plan.programs) for plan in plans)


def _named(
    ops: Mapping[str, KernelOp], text: str, gpu: GpuModel
) -> Iterator[SharedKernel]:
    """Yield the kernels that `text` names."""
    for op, programs in numbered_kernels("share-tiles", ops, text, "programs"):
        plan = _plan(op, gpu, programs)
        if isinstance(plan, str):
            raise OpError(
                op,
                f"share-tiles: programs of kernel @{op.sym_name.data} cannot share "
                f"tiles of sequences: {plan}",
            )
        yield plan


def _plan(
    kernel: KernelOp, gpu: GpuModel, programs: int | None = None
) -> SharedKernel | str:
    """Return how programs of a kernel share tiles, or a text on why they cannot."""
    found = partial_fold(kernel)
    if isinstance(found, str):
        return found
    most = found.parts * sequence_count(found)
    launch = plan_launch(kernel, gpu, programs)
    if programs is None:
        programs = _programs_at_a_time(launch, gpu.device)
        while programs > gpu.device.multiprocessors and programs >= most * found.lists:
            programs -= gpu.device.multiprocessors
    runs = max(programs // found.lists, 1)
    if runs >= most:
        return (
            f"{runs} programs for each list are no fewer than the {most} parts of its "
            "sequences; launch fewer, or split sequences in more parts"
        )
    registers = _most_registers(launch, runs * found.lists, gpu.device)
    return SharedKernel(kernel, found, runs, registers)


def _programs_at_a_time(launch: PersistentKernel, device: Device) -> int:
    """Return how many programs run at a time, if the launch limits their registers."""
    granule = device.triton.limits.launch_registers
    if not granule:
        return launch.programs
    held = ceil(launch.registers / granule) * granule
    together = max(_thread_share(launch, held, device), 1)
    return min(launch.programs, together * device.multiprocessors)


def _most_registers(launch: PersistentKernel, programs: int, device: Device) -> int:
    """
    Return the limit on the registers of a thread with which `programs` run at a time.

    0 for no limit: if threads may have no more anyway, if the model expects that they
    need more, or if launches cannot set a limit.
    """
    granule = device.triton.limits.launch_registers
    together = ceil_div(programs, device.multiprocessors)
    held = _thread_share(launch, together, device)
    if not granule or held >= device.triton.limits.most_registers:
        return 0
    most = held // granule * granule
    return most if most >= launch.registers else 0


def _thread_share(launch: PersistentKernel, share: int, device: Device) -> int:
    """
    Return the registers of a multiprocessor, over `share` and the threads of a program.

    With a number of programs as `share`, these are the registers of a thread; with the
    registers of a thread, the number of programs.
    """
    assert launch.kernel.launch is not None
    threads = device.limits.warp_threads * launch.kernel.launch.warps
    return int(device.limits.register_bytes) // REGISTER // (threads * share)


def _gains(plan: SharedKernel, program: ProgramOp, system: SystemOp) -> bool:
    """Whether the whole launch plan is faster if a kernel's programs share tiles."""
    copy = program.clone()
    kernels = dict(zip(program.kernels(), copy.kernels(), strict=True))
    twin = partial_fold(kernels[plan.kernel])
    assert not isinstance(twin, str)
    share_tiles(twin, plan.runs, plan.registers)

    candidates = [
        timed("equal parts", False, partial(priced, program, system)),
        timed(f"{plan.programs} equal runs", True, partial(priced, copy, system)),
    ]
    return cheapest("shares", f"@{plan.kernel.sym_name.data}", candidates).result
