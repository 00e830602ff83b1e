"""
The time of one GPU kernel for given block sizes: a roofline with waves and latency.

The slowest resource sets the throughput (Williams, Waterman and Patterson, "Roofline",
2009); programs that do not fill the last wave leave it idle; a chain of loads that a
software pipeline does not hide adds its latency.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from comet.dialects.arch import SystemOp
from comet.dialects.arch_gpu import GpuRates
from comet.dialects.schedule_attributes import LaunchAttr
from comet.passes.gpu_levels import GpuLevels
from comet.passes.tile_gpu_model import Blocks, KernelSummary

MEMORY_LATENCY = 0.6e-6
"""Seconds from a load to its use; an order of magnitude, no data sheet gives it."""

ITERATION = 0.05e-6
"""Seconds that control and synchronisation add to one iteration of a loop."""

EXPOSED = 0.1
"""Share of the shorter of work and waiting that the longer one does not hide."""

DATA_REGISTERS = 128
"""
Registers of 4 bytes that a thread may fill with tiles; the rest of its 255 are for
addresses, masks and what the compiler keeps twice.
"""

GROUP_ROWS = 64
"""From so many rows on, matrix instructions read operands from shared memory."""

MAX_WARPS = 64
"""Warps that one multiprocessor keeps."""

SHARED_PER_CLOCK = 128
"""Bytes that one multiprocessor reads from shared memory per clock."""


@dataclass(frozen=True)
class Gpu:
    """What the cost of a kernel depends on."""

    rates: GpuRates
    register_bytes: int
    """Bytes of registers of one multiprocessor."""
    shared_bytes: int
    """Bytes of shared memory of one multiprocessor."""


def gpu_of(system: SystemOp, levels: GpuLevels) -> Gpu:
    """Return the GPU that `system` describes."""
    assert system.gpu is not None
    registers, shared = (
        system.level(name).memory.bytes for name in (levels.registers, levels.shared)
    )
    return Gpu(system.gpu, registers, shared)


def shared_need(summary: KernelSummary, blocks: Blocks, stages: int) -> float:
    """Return the bytes of shared memory that one program takes, at least twice."""
    return summary.peak(summary.shared, blocks) * max(stages, 2)


def register_need(summary: KernelSummary, blocks: Blocks) -> float:
    """
    Return the bytes of registers that one program takes.

    Operands of a contraction pass through registers unless the instruction reads
    shared memory: f16 and bf16 in groups of rows.
    """
    alive = summary.peak(summary.registers, blocks)
    grouped = all(blocks[dim] >= GROUP_ROWS for dim in summary.dot_rows)
    if grouped and summary.dot_type != "f32":
        return alive
    return max(alive, summary.peak(summary.fragments, blocks))


def fits(summary: KernelSummary, blocks: Blocks, launch: LaunchAttr, gpu: Gpu) -> bool:
    """Return whether the tiles of one program fit its registers and shared memory."""
    registers = register_need(summary, blocks)
    shared = shared_need(summary, blocks, launch.stages)
    return (
        registers <= 32 * launch.warps * DATA_REGISTERS * 4
        and registers <= gpu.register_bytes / 2
        and summary.peak(summary.crowded, blocks) <= gpu.register_bytes
        and shared <= 0.75 * gpu.shared_bytes
    )


def _resident(
    summary: KernelSummary, blocks: Blocks, launch: LaunchAttr, gpu: Gpu
) -> int:
    """Return how many programs one multiprocessor runs at a time."""
    threads = 32 * launch.warps
    registers = max(register_need(summary, blocks), threads * 32 * 4) * 1.5
    shared = max(shared_need(summary, blocks, launch.stages), 1)
    limits = (
        MAX_WARPS // launch.warps,
        int(gpu.register_bytes / registers),
        int(gpu.shared_bytes / shared),
    )
    return max(min(limits), 1)


def _memory_bytes(summary: KernelSummary, waves: float, rates: GpuRates) -> float:
    """Return the bytes of device memory moved: once, or per wave if L2 is too small."""
    total = 0.0
    for tensor in summary.tensors:
        size = tensor.weight * prod(summary.extents[dim] for dim in tensor.dims)
        total += size if size <= rates.l2_bytes else size * min(waves, 4)
    return total


def _rounds(summary: KernelSummary, blocks: Blocks, stages: int) -> float:
    """Return how often one program waits for memory: pipelined loops wait less."""
    waits = 0.0
    for loops in summary.rounds:
        *outer, inner = (1, 1, *(summary.trips(dim, blocks) for dim in loops))
        waits += prod(outer) * (1 + (inner - 1) / stages)
    return waits


def kernel_seconds(
    summary: KernelSummary, blocks: Blocks, launch: LaunchAttr, gpu: Gpu
) -> float:
    """Return the estimated time of one launch, seconds."""
    rates, programs = gpu.rates, summary.programs(blocks)
    busy = programs / (-(-programs // rates.multiprocessors) * rates.multiprocessors)
    slots = rates.multiprocessors * _resident(summary, blocks, launch, gpu)
    waves = -(-programs // slots)
    vector_rate = rates.vector.get("f32", max(rates.vector.values())) / 2
    tensor_rate = rates.tensor.get(summary.dot_type, vector_rate)
    if summary.dot_type == "f32":
        tensor_rate = vector_rate * 2
    shared_rate = SHARED_PER_CLOCK * rates.clock * rates.multiprocessors
    moved = (*summary.loads, *summary.stores)
    on_chip = max(
        summary.per_program(summary.dots, blocks) / tensor_rate
        + summary.per_program(summary.vectors, blocks) / vector_rate,
        summary.per_program(summary.dot_reads, blocks) / shared_rate,
        summary.per_program(moved, blocks) / rates.l2_bandwidth,
    )
    throughput = max(
        on_chip * programs / busy,
        _memory_bytes(summary, waves, rates) / rates.hbm_bandwidth,
    )
    latency = waves * MEMORY_LATENCY * _rounds(summary, blocks, launch.stages)
    control = waves * ITERATION * _rounds(summary, blocks, 1)
    longer, shorter = max(throughput, latency), min(throughput, latency)
    return rates.launch + longer + EXPOSED * shorter + control
