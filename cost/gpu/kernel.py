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

import numpy as np

from comet.cost.estimate import CostError
from comet.cost.reals import Real, longest


@dataclass(frozen=True)
class Compiled:
    """How Triton compiles tiles; `dialects.arch.schema` has the sources."""

    thread_registers: int
    """Registers of a thread besides those for tiles."""
    most_registers: int
    """The maximum of a thread."""
    spare_registers: int
    """How many of these stay free, because the estimate may be too low."""
    operand_fraction: float
    """
    Fraction of a contraction's operands that registers hold at a time, if its
    instruction does not read shared memory.
    """
    load_fraction: float
    """Fraction of loaded tiles that registers hold without a software pipeline."""
    f32_multiple: float
    """Registers for products in f32, as a multiple of those of their tiles."""
    shared_fraction: float
    """Fraction of the shared memory that the tiles of one program may fill."""
    shared_operand_rows: int
    """
    With at least this many rows, matrix instructions read operands from shared memory.
    """
    copy_bytes: int
    """Loads of at least this many bytes go to shared memory without registers."""
    free_load_bytes: int
    """Loads of at least this many bytes per thread need no registers for addresses."""
    descriptor_bytes: int
    """
    What the distance of rows is a multiple of, to be copied by tensor descriptors; 0
    without.
    """
    stages_converted: bool
    """Whether loads whose values products read after a conversion have stages, too."""
    exposed_fraction: float
    """
    Fraction of the overlapped time that ranks choices whose slowest resource takes
    equally long.
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
    compiled: Compiled


@dataclass(frozen=True)
class KernelWork:
    """The work of one kernel; all but `programs` and `device_bytes` per program."""

    programs: Real
    tensor_operations: Real
    vector_operations: Real
    """Weighted: a special function counts as the additions that take as long."""
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
    pipelines: Real = 1
    """Loops of a program that load ahead, one after another."""
    exchanges: Real = 0
    """How often a program waits for values of the others of its group."""
    rank_exchanges: Real = 0
    """How often its group waits for those of other ranks."""
    loads_ahead: bool = False
    """
    Whether one program does several tiles, and warps of their own load the next one
    while the others still work on one.
    """


@dataclass(frozen=True)
class KernelTime:
    """Where the time of one launch goes, in seconds."""

    launch: float
    compute: Real
    """
    Tensor cores, then vector lanes, idle multiprocessors of the last wave included.
    """
    shared: Real
    l2: Real
    device: Real
    latency: Real
    """Waiting for loads."""
    control: Real
    exchange: Real
    """Waiting for values of other programs, which nothing overlaps."""
    fits: Real
    """1 if one program fits a multiprocessor, else 0."""

    @property
    def parts(self) -> Mapping[str, Real]:
        """The times that overlap, by the busy resource."""
        return {
            "compute": self.compute,
            "shared memory": self.shared,
            "L2": self.l2,
            "device memory": self.device,
            "load latency": self.latency,
        }

    @property
    def seconds(self) -> Real:
        """The whole launch; infinite if a program does not fit."""
        whole = self.launch + longest(self.parts.values()) + self.control
        whole = whole + self.exchange
        return np.where(np.greater(self.fits, 0), whole, np.inf)


def resident_programs(work: KernelWork, device: Device) -> Real:
    """
    Programs that one multiprocessor runs at a time; 0 if not even one fits.

    Of a kernel whose programs exchange it is one: `tile` makes so many programs that
    all run at the same time wherever one fits.
    """
    by_warps = device.warps // np.maximum(work.warps, 1)
    by_registers = device.register_bytes // np.maximum(work.registers, 1)
    by_shared = device.shared_bytes // np.maximum(work.shared, 1)
    resident = np.minimum(np.minimum(by_warps, by_registers), by_shared)
    alone = np.minimum(resident, 1)
    return np.where(np.greater(work.exchanges, 0), alone, resident)


def wave_count(programs: Real, slots: Real) -> Real:
    """Rounds of `slots` programs each until all have run."""
    return np.ceil(programs / np.maximum(slots, 1))


def kernel_time(work: KernelWork, device: Device) -> KernelTime:
    """
    The time of one launch.

    Raises `CostError` if the device has no rate for the work's element type.
    """
    resident = resident_programs(work, device)
    fits = np.greater_equal(resident, 1) * 1.0
    waves = wave_count(work.programs, device.multiprocessors * resident)
    # A multiprocessor serves its programs in turn: the fullest one counts.
    turns = wave_count(work.programs, device.multiprocessors) * device.multiprocessors
    shared_rate = device.shared_per_clock * device.clock * device.multiprocessors
    return KernelTime(
        device.launch,
        turns * compute_time(work, device),
        turns * work.shared_reads / shared_rate,
        turns * work.moved_bytes / device.l2_bandwidth,
        work.device_bytes / device.hbm_bandwidth,
        waiting_time(work, waves, device),
        waves * device.iteration * work.rounds,
        waves * (device.exchange * work.exchanges)
        + waves * (device.rank_exchange * work.rank_exchanges),
        fits,
    )


def waiting_time(work: KernelWork, waves: Real, device: Device) -> Real:
    """
    Return the seconds that a multiprocessor waits for loads, in all its waves.

    A pipeline fills once, then has `stages` loads on the way. It fills again for each
    tile, also for those of one program, unless warps of their own load ahead: in what
    Triton 3.6 and 3.9 make of such a program, these have a loop over tiles of their
    own, and wait in it for free stages only.
    """
    fills = np.minimum(waves, 1) if work.loads_ahead else waves
    rounds = waves * work.rounds if work.loads_ahead else work.rounds
    later = np.maximum(rounds - work.pipelines, 0) / np.maximum(work.stages, 1)
    pipelined = np.minimum(work.pipelines, np.maximum(rounds, 1)) + later
    return fills * device.load_latency * pipelined


def least_seconds(
    tensor_bytes: Real, device: Device, computing: Real = 0.0, programs: Real = inf
) -> Real:
    """
    Return a lower bound of the time of a launch, whatever its tiles.

    `tensor_bytes` are the bytes of its inputs and results: each goes through device
    memory at least once (see `tensor_traffic`) and through L2, and a program waits at
    least once for a load. `computing` are the seconds of its products at the rate of
    the whole device. `programs` is the most that there can be: with fewer than
    multiprocessors, some of these are idle. `KernelTime.seconds` is the launch and the
    longest of its parts, of which these are four.
    """
    idle = np.maximum(device.multiprocessors / programs, 1)
    moved = np.maximum(
        tensor_bytes / device.hbm_bandwidth, idle * tensor_bytes / device.l2_bandwidth
    )
    busy = np.maximum(moved, idle * computing)
    return device.launch + np.maximum(busy, device.load_latency)


def product_rate(element: str, device: Device) -> float:
    """
    Return the operations a second of products, infinite for a type that has no rate.

    Exact f32 products run on vector lanes.
    """
    if element == "f32":
        return device.vector.get("f32", max(device.vector.values()))
    return device.tensor.get(element, inf)


def compute_time(work: KernelWork, device: Device) -> Real:
    """
    Return the seconds of one program if the whole device worked on it.

    Raises `CostError` if the device has no rate for the work's element type.
    """
    vector = vector_seconds(work.vector_operations, device)
    if not np.any(np.greater(work.tensor_operations, 0)):
        return vector
    if (rate := device.tensor.get(work.element)) is None:
        known = ", ".join(device.tensor)
        raise CostError(
            f"the hardware file has no tensor_tflops for {work.element}; it has "
            f"{known}; add it, or take one of these element types"
        )
    return work.tensor_operations / rate + vector


def vector_seconds(operations: Real, device: Device) -> Real:
    """Return the seconds of operations of all vector lanes, in additions."""
    # A vector rate counts a fused multiply-add as two; most vector work is not fused.
    return operations / (device.vector.get("f32", max(device.vector.values())) / 2)
