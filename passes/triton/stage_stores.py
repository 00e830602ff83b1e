"""
`stage-stores`: tensor descriptors store results from shared memory, in parts.

A store by descriptor (TMA, see `use-descriptors`) reads a block of shared memory, and
needs no registers for addresses and no masks. In two cases the block needs space in
addition to the buffers of the software pipeline: in a loop over tiles, because Triton
waits for a store only when the program uses the block again (TMAStoresPipeline.cpp),
and where the sum of a loop is stored as it is, in f32. If a tile is stored in two
parts, half of the columns each, the block is half as large, so that one more stage or a
second program may fit. EPILOGUE_SUBTILE of Triton's tutorial on persistent products
does the same.

Needs launch numbers, which get `parts`. Only results of kernels with a single node, on
one rank, that no program reads are stored so; pointers store all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.utils.exceptions import PassFailedException

from comet.cost.from_ir.gpus import device_of
from comet.cost.from_ir.kernel import launch_numbers, summarize, tile_blocks
from comet.cost.from_ir.tile_loops import kept_bytes
from comet.cost.gpu.device import Device
from comet.cost.gpu.kernel import kernel_time, resident_programs
from comet.cost.gpu.persistent import persistent_work, staged_work
from comet.cost.gpu.spent import Spent
from comet.cost.gpu.tiling import kernel_work
from comet.cost.gpu.work import KernelWork
from comet.dialects.arch.gpu_levels import GpuLevels, gpu_levels
from comet.dialects.compound.dims import element_type_of, names_of
from comet.dialects.dataflow import KernelOp
from comet.dialects.errors import OpError
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.launch import LaunchAttr
from comet.passes.analysis.functions import in_copy
from comet.passes.analysis.hardware_kind import attached_gpu
from comet.passes.analysis.levels import IRLevel, functions_at
from comet.passes.analysis.numbered_kernels import (
    ALL,
    NONE,
    format_numbered,
    numbered_kernels,
)
from comet.passes.pipeline import ChoosingPass
from comet.passes.schedule.materialize_copies import materialize
from comet.passes.search import cheapest, timed
from comet.passes.triton.mask_copies import mask_copies
from comet.passes.triton.use_descriptors import not_stored, stored_copies

STAGED = "comet.staged"
"""The attribute of a function with the kernels that store so, and their parts."""
PARTS = (1, 2, 4, 8)
"""The numbers of parts that are compared by price."""


@dataclass(frozen=True)
class StageStoresPass(ChoosingPass):
    """Let tensor descriptors store results, in as many parts as is fastest."""

    name = "stage-stores"

    NOTES: ClassVar[Mapping[str, str]] = {"kernels": STAGED}

    kernels: str = ALL
    """
    The kernels, as in "f_c_kernel f_d_kernel=2": a kernel without a number of parts
    gets the fastest number. Or `all` that can; or `none`.
    """

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        system = attached_gpu(self.name, op)
        gpu = _Gpu(device_of(system), gpu_levels(system))
        if not gpu.alignment:
            raise PassFailedException(
                f"stage-stores: @{system.label.data} has no descriptors; use "
                "stores=none, or say descriptor_bytes in its hardware file",
            )
        for function in functions_at(op, self.name, IRLevel.DATAFLOW):
            plan = dict(plan_stores(function, gpu, self.kernels))
            function.attributes[STAGED] = StringAttr(format_numbered(plan.items()))
            for kernel, parts in plan.items():
                _write(kernel, parts, gpu)


@dataclass(frozen=True)
class _Gpu:
    """The GPU whose programs are priced."""

    device: Device
    levels: GpuLevels

    @property
    def alignment(self) -> int:
        """The alignment of rows that descriptors need, 0 if there are none."""
        return self.device.triton.copies.descriptor_bytes


def plan_stores(
    function: FuncOp, gpu: _Gpu, kernels: str
) -> Iterator[tuple[KernelOp, int]]:
    """
    Yield the kernels of a function whose results descriptors store, and the parts.

    Raises PassFailedException for given kernels that cannot.
    """
    found = {op.sym_name.data: op for op in function.walk() if isinstance(op, KernelOp)}
    if kernels == NONE:
        return
    able = _possible_parts(function, gpu)
    if kernels == ALL:
        for name, possible in able.items():
            if priced := _priced(found[name], possible, gpu):
                yield found[name], _fastest(name, priced)
        return
    for kernel, parts in numbered_kernels("stage-stores", found, kernels, "parts"):
        possible = able.get(kernel.sym_name.data)
        if possible is None:
            reason = _stores_subtiles(kernel) or not_stored(kernel, gpu.alignment)
            raise OpError(kernel, f"stage-stores: {reason}")
        yield kernel, _parts(kernel, parts, possible, gpu)


def _possible_parts(function: FuncOp, gpu: _Gpu) -> dict[str, list[int]]:
    """
    Return the numbers of parts in which descriptors can store results, by kernel.

    A copy is lowered to find out; kernels that descriptors cannot store are left out.
    """
    copy = in_copy(function)
    materialize(copy)
    mask_copies(copy)
    found = {
        op.sym_name.data: [
            parts
            for parts in PARTS
            if stored_copies(op, gpu.levels, gpu.alignment, parts)
        ]
        for op in copy.walk()
        if isinstance(op, KernelOp) and not _stores_subtiles(op)
    }
    return {name: possible for name, possible in found.items() if possible}


def _stores_subtiles(kernel: KernelOp) -> str | None:
    """Return why descriptors cannot store a kernel with subtiles, None without them."""
    if not any(node.launch and node.launch.subtiles for node in kernel.nodes):
        return None
    return (
        f"@{kernel.sym_name.data} stores subtiles of its results, see split-epilogues; "
        "give subtiles=1 in its factors, or leave it out"
    )


def _parts(
    kernel: KernelOp, given: int | None, possible: Sequence[int], gpu: _Gpu
) -> int:
    """Return the parts that are given for a kernel, or with which it is fastest."""
    name = kernel.sym_name.data
    if given is not None and given not in possible:
        raise OpError(
            kernel,
            f"stage-stores: kernels has {name}={given}, and descriptors can store "
            f"rows of its tiles in {', '.join(map(str, possible))} parts; give one of "
            "these numbers",
        )
    if given is not None:
        return given
    if not (priced := _priced(kernel, possible, gpu)):
        raise OpError(
            kernel,
            f"stage-stores: the tiles of @{name} leave no shared memory for a part of "
            "a result; leave it out, or take fewer stages",
        )
    return _fastest(name, priced)


def _priced(kernel: KernelOp, possible: Sequence[int], gpu: _Gpu) -> dict[int, Spent]:
    """Return the time of a launch, by the parts with which its programs fit."""
    times = {
        parts: kernel_time(_staged(kernel, parts, gpu), gpu.device)
        for parts in possible
    }
    return {parts: time.spent for parts, time in times.items() if time.fits > 0}


def _staged(kernel: KernelOp, parts: int, gpu: _Gpu) -> KernelWork:
    """Return the work of a kernel that stores by descriptor, in a number of parts."""
    (node,) = kernel.nodes
    launch = node.launch or LaunchAttr()
    staged = _tile_bytes(node) / parts
    beside = bool(launch.persistent) or (parts == 1 and _leaves_loop(node))
    return staged_work(_work(node, launch, gpu), staged, beside)


def _leaves_loop(node: SpatialOp) -> bool:
    """Return whether a result comes from a loop directly, without an epilogue."""
    owners = (value.owner for value in node.yielded)
    return any(isinstance(op, TemporalOp) and op.trip_count > 1 for op in owners)


def _work(node: SpatialOp, launch: LaunchAttr, gpu: _Gpu) -> KernelWork:
    """Return the work of a kernel that stores by pointers."""
    summary, blocks = summarize(node, gpu.levels, gpu.device), tile_blocks(node)
    work = kernel_work(summary, blocks, launch_numbers(launch), gpu.device)
    if not launch.persistent:
        return work
    count, stationary = launch.persistent, launch.resident
    kept = kept_bytes(node, summary, blocks)
    return persistent_work(
        work, summary, blocks, count, gpu.device, stationary=stationary, kept=kept
    )


def _tile_bytes(node: SpatialOp) -> float:
    """Return the bytes of the result tiles of a program."""
    blocks = tile_blocks(node)
    return sum(
        prod(blocks[dim] for dim in names_of(result))
        * (element_type_of(result).bitwidth / 8)
        for result in node.results
    )


def _fastest(name: str, priced: Mapping[int, Spent]) -> int:
    """Return the parts with which a launch is fastest, of equal times the fewest."""
    candidates = [
        timed(_label(parts), parts, lambda time=time: time)
        for parts, time in priced.items()
    ]
    return cheapest("stores", f"@{name}", candidates).result


def _label(parts: int) -> str:
    return "whole" if parts == 1 else f"{parts} parts"


def _write(kernel: KernelOp, parts: int, gpu: _Gpu) -> None:
    """
    Write the parts among the launch numbers of a kernel.

    It has no more persistent programs than run at a time with them.
    """
    (node,) = kernel.nodes
    launch = node.launch or LaunchAttr()
    resident = resident_programs(_staged(kernel, parts, gpu), gpu.device)
    persistent = min(launch.persistent, int(resident))
    node.launch = launch.replaced(persistent=persistent, parts=parts)
