"""
Prices block sizes of a GPU kernel: from its summary to the kernel model of `cost`.

All numbers may be arrays, one element per choice of block sizes and launch numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from comet.cost.from_ir.mapping import device_of
from comet.cost.gpu.kernel import (
    Device,
    KernelTime,
    KernelWork,
    device_traffic,
    kernel_time,
    wave_count,
)
from comet.cost.reals import Real, longest, product, total
from comet.dialects.arch import SystemOp
from comet.passes.analysis.gpu_levels import GpuLevels
from comet.passes.schedule.tile.gpu.model import Blocks, KernelSummary

DATA_REGISTERS = 128
"""
Registers of 4 bytes that a thread may fill with tiles; the rest of its 255 are for
addresses, masks and what the compiler keeps twice.
"""

EXACT_REGISTERS = 72
"""The same for f32, whose products each thread computes from operands of its own."""

REGISTER_SHARE = 0.55
SHARED_SHARE = 0.75
"""Shares of a multiprocessor's memories that the tiles of one program may fill."""

SPARE_REGISTERS = 1.5
"""Registers that a program takes in all, as a multiple of its tiles'."""

MIN_THREAD_REGISTERS = 32

GROUP_ROWS = 64
"""From so many rows on, matrix instructions read operands from shared memory."""

EXPOSED = 0.1
"""Share of what overlaps that ranks choices whose slowest part takes equally long."""


@dataclass(frozen=True)
class LaunchNumbers:
    """Warps of a program and stages of its software pipeline."""

    warps: Real
    stages: Real


def device(system: SystemOp, levels: GpuLevels) -> Device:
    """Return the GPU that `system` describes, with the sizes of its levels."""
    registers, shared = (
        system.level(name).memory.bytes for name in (levels.registers, levels.shared)
    )
    return replace(device_of(system), register_bytes=registers, shared_bytes=shared)


def shared_need(summary: KernelSummary, blocks: Blocks, stages: Real) -> Real:
    """
    Return the bytes of shared memory of one program.

    Tiles of all stages are there but those that are worked on, which are in registers
    unless the matrix instruction reads shared memory. A tile that is loaded before the
    loop is always worked on.
    """
    loading = np.maximum(stages - 1, 1)
    working = reads_shared(summary, blocks)
    return summary.peak(summary.shared, blocks, loading + working, working)


def reads_shared(summary: KernelSummary, blocks: Blocks) -> Real:
    """Return 1 where matrix instructions take groups of rows from shared memory."""
    if summary.dot_type == "f32":
        return 0.0
    return product(
        np.greater_equal(blocks[dim], GROUP_ROWS) * 1.0 for dim in summary.dot_rows
    )


def register_need(summary: KernelSummary, blocks: Blocks) -> Real:
    """
    Return the bytes of registers that the tiles of one program take.

    Operands of a contraction pass through registers unless the instruction reads
    shared memory; those that are loaded before its loop stay there. What is loaded in
    small pieces takes registers too, on its way to shared memory.
    """
    pieces = summary.peak(summary.pieces, blocks)
    alive = summary.peak(summary.registers, blocks)
    passing = summary.peak(summary.fragments, blocks, standing=0.0)
    staying = summary.peak(summary.shared, blocks, copies=0.0)
    needed = longest((alive, passing)) + staying
    direct = np.greater(reads_shared(summary, blocks), 0)
    return np.where(direct, alive, needed) + pieces


def fits(
    summary: KernelSummary, blocks: Blocks, numbers: LaunchNumbers, gpu: Device
) -> Real:
    """Return 1 where the tiles of one program fit a multiprocessor, else 0."""
    registers = register_need(summary, blocks)
    exact = summary.dot_type == "f32" and bool(summary.dots)
    per_thread = 4 * (EXACT_REGISTERS if exact else DATA_REGISTERS)
    limit = np.minimum(
        32 * numbers.warps * per_thread, REGISTER_SHARE * gpu.register_bytes
    )
    crowded = summary.peak(summary.crowded, blocks)
    shared = shared_need(summary, blocks, numbers.stages)
    return (
        np.less_equal(registers, limit)
        * np.less_equal(crowded, gpu.register_bytes)
        * np.less_equal(shared, SHARED_SHARE * gpu.shared_bytes)
        * 1.0
    )


def price(
    summary: KernelSummary, blocks: Blocks, numbers: LaunchNumbers, gpu: Device
) -> KernelTime:
    """Return the estimated time of one launch."""
    return kernel_time(kernel_work(summary, blocks, numbers, gpu), gpu)


def kernel_work(
    summary: KernelSummary, blocks: Blocks, numbers: LaunchNumbers, gpu: Device
) -> KernelWork:
    """Return what the kernel model prices."""
    dots = summary.per_program(summary.dots, blocks)
    vectors = summary.per_program(summary.vectors, blocks)
    if summary.dot_type == "f32":
        # Exact f32 products run on vector lanes, two operations an instruction.
        dots, vectors = 0.0, vectors + dots / 2
    threads = 32 * numbers.warps
    registers = longest(
        (register_need(summary, blocks), threads * MIN_THREAD_REGISTERS * 4)
    )
    return KernelWork(
        programs=summary.programs(blocks),
        tensor_operations=dots,
        vector_operations=vectors,
        shared_reads=summary.per_program(summary.dot_reads, blocks),
        moved_bytes=summary.moved(blocks),
        device_bytes=total(tensor_traffic(summary, blocks, gpu)),
        rounds=summary.iterations(blocks),
        element=summary.dot_type,
        stages=numbers.stages,
        warps=numbers.warps,
        registers=np.minimum(registers * SPARE_REGISTERS, gpu.register_bytes),
        shared=shared_need(summary, blocks, numbers.stages),
    )


def tensor_traffic(
    summary: KernelSummary, blocks: Blocks, gpu: Device
) -> tuple[Real, ...]:
    """
    Return the bytes of device memory moved for each tensor of the summary.

    A tensor that L2 cannot hold is loaded again by programs that differ only in
    dimensions which it lacks, but once by those that run together.
    """
    waves = wave_count(summary.programs(blocks), gpu.multiprocessors)
    traffic: list[Real] = []
    for tensor in summary.tensors:
        size = tensor.weight * prod(summary.extents[d] for d in tensor.dims)
        lacking = [dim for dim in summary.grid if dim not in tensor.dims]
        again = product(summary.trips(dim, blocks) for dim in lacking)
        loaded = {"": size * np.minimum(again, waves)}
        traffic.append(device_traffic({"": size}, loaded, gpu))
    return tuple(traffic)


def rank(time: KernelTime, programs: Real, gpu: Device) -> Real:
    """
    Return what choices are ordered by: the time, and a little of what it hides.

    Programs start one after another, about one at each clock: of choices that take
    equally long, fewer programs are better.
    """
    parts = (time.compute, time.shared, time.l2, time.device, time.latency)
    hidden = sum(parts, start=np.zeros(1)) - longest(parts)
    return time.seconds + EXPOSED * hidden + programs / gpu.clock
