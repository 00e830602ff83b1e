"""
attach-hardware: put the description of a machine into the module.

Level: any -> the same, with an `arch.system` and its `collective.mesh`. Rejects: a file
that cannot be read or breaks the schema, a module that already has hardware, a mesh of
the machine's name that differs from the machine's, but for fewer ranks of GPUs,
measured rates that are not there, text that is no version of Triton.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Literal, TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import ArchError, SystemOp, find_system
from comet.dialects.arch.fields import described
from comet.dialects.arch.gpu import GpuOp
from comet.dialects.arch.schema import VERSION
from comet.dialects.arch.yaml import system_of_fields
from comet.dialects.collective import MeshOp
from comet.hardware_file import hardware_text, read_hardware_text
from comet.passes.analysis.hardware_mesh import check_mesh, hardware_mesh

Rates: TypeAlias = Literal["datasheet", "measured"]


@dataclass(frozen=True)
class HardwarePlan:
    """The ops that the pass inserts at the top of the module."""

    system: SystemOp
    mesh: MeshOp | None
    """The mesh to add; None if the module has it or the machine has none."""

    def insert(self, module: ModuleOp) -> None:
        """Put the machine and the mesh into the module."""
        new = [self.system] if self.mesh is None else [self.system, self.mesh]
        Rewriter.insert_op(new, InsertPoint.at_start(module.body.block))


def plan_hardware(
    module: ModuleOp,
    text: str,
    path: str,
    rates: Rates | None = None,
    lengths: float | None = None,
    sharing: int | None = None,
    triton: str | None = None,
    *,
    graph: bool = False,
) -> HardwarePlan:
    """
    Read the text of a hardware file and compare it with the module.

    Measured rates take the place of those of the data sheet, unless `rates` says so.
    `lengths` is what estimates expect of lengths that are known at run time, `sharing`
    the number of ranks on one GPU, `triton` the version that compiles kernels, `graph`
    whether they start by replaying a captured graph.

    Raises PassFailedException or FileFormatError as the pass does.
    """
    if (present := find_system(module)) is not None:
        raise PassFailedException(
            f"the module already has the hardware @{present.system_name}; "
            "attach only one"
        )
    system = _system_of_text(text, path).clone()
    if rates == "measured" or (rates is None and _has_measured(system)):
        _use_measured(system, path)
    if lengths is not None:
        _expect_lengths(system, path, lengths)
    if sharing is not None:
        _share(system, path, sharing)
    if triton is not None:
        _set_triton(system, path, triton)
    if graph:
        _start_by_graph(system, path)
    name_axes(system)
    return HardwarePlan(system, _missing_mesh(module, system))


@lru_cache(maxsize=16)
def _system_of_text(text: str, path: str) -> SystemOp:
    """Read the text of a hardware file, once for all programs of a process."""
    fields = read_hardware_text(text, path)
    try:
        return system_of_fields(FilePath(path).stem, fields)
    except ArchError as error:
        raise PassFailedException(f"{path}: {error}") from error


def _has_measured(system: SystemOp) -> bool:
    return system.gpu is not None and "measured" in system.gpu.figures


def _use_measured(system: SystemOp, path: str) -> None:
    if system.gpu is None or not _has_measured(system):
        raise PassFailedException(
            f"{path}: there are no measured figures under 'comet: gpu: measured:', "
            "which rates=measured needs; measure them with benchmarks/calibrate.py, or "
            "leave the option out"
        )
    system.gpu.use_measured()


def _gpu_of(system: SystemOp, path: str, meaning: str) -> GpuOp:
    """Return the GPU of a machine; raise an error with an option's `meaning`."""
    if system.gpu is None:
        raise PassFailedException(
            f"{path}: {meaning}, and @{system.system_name} has no GPU; leave the "
            "option out"
        )
    return system.gpu


def _expect_lengths(system: SystemOp, path: str, mean: float) -> None:
    gpu = _gpu_of(system, path, "lengths says what loops of GPU kernels expect")
    if not 0 < mean <= 1:
        raise PassFailedException(
            f"lengths is the mean of lengths over the longest, above 0 and at most 1, "
            f"not {mean:g}"
        )
    gpu.set_figure("mean_length", mean)


def _share(system: SystemOp, path: str, ranks: int) -> None:
    gpu = _gpu_of(system, path, "sharing is the number of ranks on one GPU")
    if ranks < 1:
        raise PassFailedException(
            f"sharing is the number of ranks on one GPU, at least 1, not {ranks}"
        )
    gpu.set_figure("sharing_ranks", ranks)


def _set_triton(system: SystemOp, path: str, version: str) -> None:
    gpu = _gpu_of(system, path, "triton is the version that compiles GPU kernels")
    if not VERSION.holds(version):
        raise PassFailedException(
            f"triton is {VERSION.expected}, not {described(version)}"
        )
    gpu.set_figure("triton", version)


def _start_by_graph(system: SystemOp, path: str) -> None:
    gpu = _gpu_of(system, path, "graph says how kernels of a GPU start")
    if "graph_launch_us" in gpu.figures:  # Otherwise it is `launch_us`.
        gpu.set_figure("launch_us", gpu.figures["graph_launch_us"])


def name_axes(system: SystemOp) -> None:
    """
    Name the mesh axes of an accelerator whose file names none: GB_x and GB_y at GB.

    Siblings with the same mesh have the axes of the one for results. Levels of one
    instance get axes only if all levels have one instance.
    """
    if system.axes or system.gpu is not None:
        return
    below = [level for level in system.levels if level.parent_level is not None]
    several = [level for level in system.levels if level.instances > 1]
    for level in sorted(several or below, key=lambda level: level.is_filled):
        name = level.level_name
        if not system.axes_of(name):
            axes = (StringAttr(f"{name}_x"), StringAttr(f"{name}_y"))
            level.properties["axes"] = ArrayAttr(axes)


def _missing_mesh(module: ModuleOp, system: SystemOp) -> MeshOp | None:
    """Return the machine's mesh, None if the module has it, or some of its ranks."""
    if not system.axes:
        return None
    mesh = hardware_mesh(system)
    for op in module.ops:
        if isinstance(op, MeshOp) and op.sym_name == mesh.sym_name:
            check_mesh(op, system)
            return None
    return mesh


def attach_hardware(module: ModuleOp, text: str, path: str) -> None:
    """
    Put the machine of a hardware file into the module; the path's stem names it.

    Raises PassFailedException or FileFormatError as the pass without options does.
    """
    plan_hardware(module, text, path).insert(module)


@dataclass(frozen=True)
class AttachHardwarePass(ModulePass):
    """Read a hardware file into the module, with the mesh of the machine."""

    name = "attach-hardware"

    path: str
    """The hardware file, relative to the current folder; its stem names the machine."""
    rates: Rates | None = None
    """
    The figures of a GPU for estimates: those of its `datasheet`, or `measured` ones; by
    default the measured, where the file has any.
    """
    lengths: float | None = None
    """
    The mean of the lengths of sequences over the longest, for estimates of GPU kernels
    whose loops end at lengths that are known at run time; 1 if it is not given.
    """
    sharing: int | None = None
    """The number of ranks that run on one GPU; 1 if it is not given."""
    triton: str | None = None
    """
    The version of Triton that will compile GPU kernels, such as "3.8"; the oldest that
    is supported, 3.6, if it is not given. Some kernels need a newer one.
    """
    graph: bool | None = None
    """
    Whether kernels start by replaying a captured CUDA graph, which takes less time for
    each; false if it is not given.
    """

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        text = hardware_text(self.path)
        given = self.rates, self.lengths, self.sharing, self.triton
        plan_hardware(op, text, self.path, *given, graph=bool(self.graph)).insert(op)
