"""
The time of one GPU kernel: a roofline with waves, load latency and a launch.

The slowest resource sets the throughput (Williams, Waterman and Patterson, "Roofline",
CACM 2009); programs that do not fill the last wave leave multiprocessors idle; loads
that a software pipeline does not hide add their latency. Times are seconds, rates per
second, sizes bytes; counts may be numpy arrays, one element per choice of block sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from comet.cost.estimate import CostError
from comet.cost.reals import Real, longest


class MatrixInstruction(NamedTuple):
    """The result of a matrix instruction of a warp, in elements."""

    rows: int
    columns: int
    lanes: int
    """The lanes of the warp that hold one row."""


class WarpInstructions(NamedTuple):
    """The matrix instructions along each side of what warps are balanced by."""

    rows: int
    columns: int


@dataclass(frozen=True)
class Compiled:
    """How Triton compiles tiles; `dialects.arch.schema` has the sources."""

    thread_registers: int
    """Registers of a thread besides those for tiles."""
    most_registers: int
    """The most registers that a thread may have."""
    spare_registers: int
    """Registers that an estimate leaves free, because it may be too low."""
    operand_fraction: float
    """
    Fraction of a contraction's operands that registers hold at a time, if its matrix
    instructions do not read shared memory.
    """
    operand_terms: int
    """The most terms of a contraction for which registers hold the operands."""
    load_fraction: float
    """Fraction of loaded tiles that registers hold without a software pipeline."""
    passed_fraction: float
    """
    Fraction of tiles on their way to shared memory that registers hold in addition to
    all others, 0 if copies pass no registers.
    """
    f32_multiple: float
    """Registers of kernels with f32 products, as a multiple of those for the tiles."""
    shared_fraction: float
    """Fraction of the shared memory that the tiles of one program may fill."""
    shared_operand_rows: int
    """
    With at least this many rows, matrix instructions read operands from shared memory;
    0 if they never do.
    """
    matrix_instructions: tuple[MatrixInstruction, ...]
    """Those of 16-bit products: each takes the first one that it fills."""
    warp_instructions: WarpInstructions
    warps_along_rows: bool
    """
    Whether products of a loop body that read each other have warps along rows, and
    those whose columns are too few for all warps; else the shape of the last product
    decides for all of the body.
    """
    second_loop_registers: int
    """The additional registers of a loop that is written in two parts."""
    least_group_elements: int
    """The fewest elements of a row that a program of a group gets."""
    most_group_elements: int
    """The most elements of a row that a program of a group gets."""
    copy_bytes: int
    """Loads of at least this many bytes go to shared memory without registers."""
    free_load_bytes: int
    """Loads of at least this many bytes per thread need no registers for addresses."""
    descriptor_bytes: int
    """
    The alignment of rows (bytes) that copies by tensor descriptors need; 0 if the GPU
    has none.
    """
    stages_converted: bool
    """Whether loads have stages if products read their values after a conversion."""
    exposed_fraction: float
    """
    Fraction of the overlapped time that is added to rank tilings: it decides if the
    slowest resource takes equally long.
    """


@dataclass(frozen=True)
class Device:
    """The rates of one GPU, its capacities, and the costs of control."""

    clock: float
    multiprocessors: int
    tensor: Mapping[str, float]
    """Dense matrix operations by element type; a fused multiply-add counts two."""
    vector: Mapping[str, float]
    """Other floating-point operations by element type."""
    function_costs: Mapping[str, float]
    """Costs of elementwise functions and reductions, in additions; by default 1."""
    hbm_bandwidth: float
    l2_bytes: int
    l2_bandwidth: float
    launch: float
    register_bytes: int
    """Bytes of registers of one multiprocessor."""
    shared_bytes: int
    """Bytes of shared memory of one multiprocessor."""
    warps: int
    """Warps that one multiprocessor can hold."""
    warp_threads: int
    """Threads of a warp."""
    shared_per_clock: int
    """Bytes one multiprocessor reads from shared memory per clock."""
    load_bytes: int
    """The largest vector width, in bytes."""
    load_latency: float
    """From a load to its use."""
    iteration: float
    """Seconds that control and synchronization add to one iteration of a loop."""
    exchange: float
    """From storing a value for other programs of the same GPU until they load it."""
    rank_exchange: float
    """The same for programs of other GPUs."""
    mean_length: float
    """The mean of lengths that are known at run time, over the longest."""
    compiled: Compiled


@dataclass(frozen=True)
class KernelWork:
    """The work of a kernel, per program except `programs` and `device_bytes`."""

    programs: Real
    tensor_operations: Real
    vector_operations: Real
    """In additions: a special function counts as many as take the same time."""
    shared_reads: Real
    """Bytes that contractions read from shared memory."""
    moved_bytes: Real
    """Bytes loaded through L2 and stored."""
    device_bytes: Real
    """Bytes of device memory moved by all programs (see `tensor_traffic`)."""
    rounds: Real
    """Iterations of loops that wait for loads."""
    element: str = "f16"
    """Element type of the contractions' operands."""
    stages: Real = 1
    """num_stages: the depth of the software pipeline."""
    warps: Real = 4
    registers: Real = 0
    """Bytes of registers."""
    shared: Real = 0
    """Bytes of shared memory."""
    uneven_bytes: Real = 0
    """
    Bytes that programs of the busiest multiprocessor load beyond the mean, as lengths
    differ: it loads them when others have ended.
    """
    pipelines: Real = 1
    """Loops of a program that load ahead, one after another."""
    exchanges: Real = 0
    """How often a program waits for values of other programs of its group."""
    rank_exchanges: Real = 0
    """How often a group waits for values of other ranks."""
    loads_ahead: bool = False
    """
    Whether programs are persistent and warp-specialized: producer warps load the next
    tile while the others compute.
    """


@dataclass(frozen=True)
class KernelTime:
    """Where the time of one launch goes, in seconds."""

    launch: float
    compute: Real
    """
    Tensor cores, then vector lanes, with multiprocessors that idle in the last wave.
    """
    shared: Real
    l2: Real
    device: Real
    latency: Real
    """Waiting for loads."""
    control: Real
    exchange: Real
    """Waiting for values of other programs; nothing overlaps this time."""
    fits: Real
    """1 if one program fits a multiprocessor, else 0."""

    @property
    def parts(self) -> Mapping[str, Real]:
        """The times that overlap, by resource; `control` and `exchange` do not."""
        return {
            "compute": self.compute,
            "shared memory": self.shared,
            "L2": self.l2,
            "device memory": self.device,
            "load latency": self.latency,
        }

    @property
    def seconds(self) -> Real:
        """The time of the launch; infinite if a program does not fit."""
        seconds = self.launch + longest(self.parts.values()) + self.control
        seconds = seconds + self.exchange
        return np.where(np.greater(self.fits, 0), seconds, np.inf)


def resident_programs(work: KernelWork, device: Device) -> Real:
    """
    Return how many programs a multiprocessor runs at a time; 0 if not even one fits.

    At most one if programs exchange: `tile` makes no more programs than there are
    multiprocessors, so that all run at the same time.
    """
    by_warps = device.warps // np.maximum(work.warps, 1)
    by_registers = device.register_bytes // np.maximum(work.registers, 1)
    by_shared = device.shared_bytes // np.maximum(work.shared, 1)
    resident = np.minimum(np.minimum(by_warps, by_registers), by_shared)
    exchanging = np.greater(work.exchanges, 0)
    return np.where(exchanging, np.minimum(resident, 1), resident)


def wave_count(programs: Real, slots: Real) -> Real:
    """Return the number of waves of `programs`, `slots` of which run at a time."""
    return np.ceil(programs / np.maximum(slots, 1))


def kernel_time(work: KernelWork, device: Device) -> KernelTime:
    """
    Return the time of one launch.

    Raises `CostError` if the device has no rate for the work's element type.
    """
    resident = resident_programs(work, device)
    fits = np.greater_equal(resident, 1) * 1.0
    waves = wave_count(work.programs, device.multiprocessors * resident)
    # A multiprocessor runs its programs in turn: the one with most programs counts.
    turns = wave_count(work.programs, device.multiprocessors) * device.multiprocessors
    shared_rate = device.shared_per_clock * device.clock * device.multiprocessors
    alone = turns * work.uneven_bytes / device.l2_bandwidth
    return KernelTime(
        device.launch,
        turns * compute_time(work, device),
        turns * work.shared_reads / shared_rate,
        turns * work.moved_bytes / device.l2_bandwidth + alone,
        work.device_bytes / device.hbm_bandwidth + alone,
        waiting_time(work, waves, device),
        waves * device.iteration * work.rounds,
        waves * (device.exchange * work.exchanges)
        + waves * (device.rank_exchange * work.rank_exchanges),
        fits,
    )


def waiting_time(work: KernelWork, waves: Real, device: Device) -> Real:
    """
    Return the seconds that a multiprocessor waits for loads, in all its waves.

    A software pipeline waits once to fill, then has `stages` loads in flight. It fills
    again for each tile, also in a persistent program, unless producer warps load ahead:
    in the code of Triton 3.6 and 3.9 these have their own loop over tiles, and wait in
    it only for free stages.
    """
    fills = np.minimum(waves, 1) if work.loads_ahead else waves
    rounds = waves * work.rounds if work.loads_ahead else work.rounds
    later = np.maximum(rounds - work.pipelines, 0) / np.maximum(work.stages, 1)
    pipelined = np.minimum(work.pipelines, np.maximum(rounds, 1)) + later
    return fills * device.load_latency * pipelined


def product_rate(element: str, device: Device) -> float:
    """
    Return the operations per second of products, infinite for a type without a rate.

    Exact f32 products run on vector lanes.
    """
    if element == "f32":
        return device.vector.get("f32", max(device.vector.values()))
    return device.tensor.get(element, inf)


def compute_time(work: KernelWork, device: Device) -> Real:
    """
    Return the seconds that one program would take on the whole device.

    Raises `CostError` if the device has no rate for the work's element type.
    """
    vector = vector_seconds(work.vector_operations, device)
    if not np.any(np.greater(work.tensor_operations, 0)):
        return vector
    if (rate := device.tensor.get(work.element)) is None:
        names = ", ".join(device.tensor)
        raise CostError(
            f"the hardware file has no tensor_tflops for {work.element}; it has "
            f"{names}; add it, or take one of these element types"
        )
    return work.tensor_operations / rate + vector


def vector_seconds(operations: Real, device: Device) -> Real:
    """Return the seconds that all vector lanes take for operations, in additions."""
    # A vector rate counts a fused multiply-add as two; most vector work is not fused.
    return operations / (device.vector.get("f32", max(device.vector.values())) / 2)
