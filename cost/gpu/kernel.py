"""
The time of one GPU kernel: a roofline, and the programs of a multiprocessor in turn.

The slowest resource sets the throughput (Williams, Waterman and Patterson, "Roofline",
CACM 2009). A kernel also takes at least as long as one program after another: a program
fills its software pipeline, computes, and stores, and overlaps nothing of that with
itself; and after the full waves it takes as long as one program more. Times are
seconds, rates per second, sizes bytes; counts may be numpy arrays, one element per
choice of block sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from comet.cost.estimate import CostError
from comet.cost.gpu.device import Device, Units
from comet.cost.gpu.triton_rules import TritonRules
from comet.cost.gpu.warp_groups import in_turns, refilling
from comet.cost.reals import Real, longest


@dataclass(frozen=True)
class ProgramNeeds:
    """What a program needs of its multiprocessor."""

    warps: Real
    registers: Real
    """Bytes of registers."""
    shared: Real
    """Bytes of shared memory."""
    groups: Real = 1
    """The groups of warps that compute in turns, if producer warps load for them."""


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
    """How often a program starts a loop that loads ahead."""
    looped_operations: Real = 0
    """Those of `vector_operations` in loops of contractions."""
    converted_bytes: Real = 0
    """Those that shared memory stores and loads to change layouts of tiles."""
    exposed_rounds: Real = 0
    """
    Those of `rounds` outside of loops of contractions: no software pipeline loads
    ahead there.
    """
    joined_rounds: Real = 0
    """
    Those of `rounds` that wait together with another one: a software pipeline waits
    once in an iteration, for all its loads.
    """
    stored_bytes: Real = 0
    """Those of `moved_bytes` that are stored."""
    written_bytes: Real = 0
    """Those of `device_bytes` that are stored: not what is beyond the end of a row."""
    exposed_bytes: Real = 0
    """Those of `moved_bytes` that are loaded outside of loops of contractions."""
    read_operations: Real = 0
    """
    Those of `tensor_operations` whose results their own loop reads, or that run on
    operands in registers: it waits for them before it starts later loads.
    """
    exchanges: Real = 0
    """How often a program waits for values of other programs of its group."""
    rank_exchanges: Real = 0
    """How often a group waits for values of other ranks."""
    cluster: Real = 1
    """
    The programs that run at the same time on as many multiprocessors, as the thread
    blocks of a cluster: each counts as a program.
    """
    cluster_exchanges: Real = 0
    """How often a thread block waits for values of others of its cluster."""
    loads_ahead: bool = False
    """
    Whether programs are persistent and warp-specialized: producer warps load the next
    tile while the others compute.
    """
    groups: Real = 1
    """The groups of warps that compute in turns, if producer warps load for them."""
    tiles_ahead: bool = False
    """
    Whether the software pipeline of a loop over tiles without products loads later
    tiles while a tile is computed and stored.
    """

    @property
    def needs(self) -> ProgramNeeds:
        """What each program needs of its multiprocessor."""
        return ProgramNeeds(self.warps, self.registers, self.shared, self.groups)


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
    """
    The programs of a multiprocessor: they wait for loads, compute and store, all that
    run at the same time in the same phase.
    """
    last: Real
    """The time of one program that runs after the full waves, 0 if there is none."""
    full: Real
    """The fraction of the programs that run before it."""
    exchange: Real
    """Waiting for values of other programs; nothing overlaps this time."""
    fits: Real
    """1 if one program fits a multiprocessor, else 0."""

    @property
    def overlapping(self) -> Mapping[str, Real]:
        """The times that overlap, by resource; `exchange` does not."""
        return {
            "compute": self.compute,
            "shared memory": self.shared,
            "L2": self.l2,
            "device memory": self.device,
            "latency": self.latency,
        }

    @property
    def body(self) -> Real:
        """The time of what overlaps, without the launch and exchanges."""
        throughput = (self.compute, self.shared, self.l2, self.device)
        last = self.full * longest(throughput) + self.last
        return np.maximum(longest(self.overlapping.values()), last)

    @property
    def seconds(self) -> Real:
        """The time of the launch; infinite if a program does not fit."""
        seconds = self.launch + self.body + self.exchange
        return np.where(np.greater(self.fits, 0), seconds, np.inf)


@dataclass(frozen=True)
class Waiting:
    """What one program waits for loads, in seconds."""

    filling: Real
    """Until its software pipelines are filled."""
    loading: Real
    """Afterwards; with several stages, it computes meanwhile."""
    exposed: Real = 0.0
    """Outside of loops of contractions."""


@dataclass(frozen=True)
class _Phases:
    """What one program takes on its multiprocessor, if all have one, in seconds."""

    computing: Real
    """Of products and vector operations in loops, by groups of warps in turn."""
    before: Real
    """Those of it that run before loads of later iterations start."""
    loading: Real
    """Of loads in these loops."""
    others: Real
    """Of all else: vector operations, changes of layouts, loads and stores."""


def occupancy_of(work: KernelWork, device: Device) -> Real:
    """
    Return how many programs a multiprocessor runs at a time; 0 if not even one fits.

    At most one if programs exchange: `tile` makes no more programs than there are
    multiprocessors, so that all run at the same time.
    """
    limits = device.limits
    by_warps = limits.warps // np.maximum(work.warps, 1)
    by_registers = limits.register_bytes // np.maximum(work.registers, 1)
    shared = work.shared / tile_fraction(work, device.triton) + limits.reserved_bytes
    by_shared = (limits.shared_bytes + limits.reserved_bytes) // np.maximum(shared, 1)
    by_shared = np.maximum(by_shared, np.less_equal(work.shared, limits.shared_bytes))
    occupancy = np.minimum(np.minimum(by_warps, by_registers), by_shared)
    exchanging = np.greater(work.exchanges, 0)
    return np.where(exchanging, np.minimum(occupancy, 1), occupancy)


def tile_fraction(work: KernelWork, rules: TritonRules) -> Real:
    """
    Return which part of a program's shared memory has tiles.

    The rest is for reductions and conversions of layouts. With several stages these
    reuse the buffers of the pipeline, if copies fill them without registers: none of
    436 kernels compiled for sm_90 has more (`tests/data/registers.csv`).
    """
    reused = np.greater(work.stages, 1) * (not rules.copies.copies_pass_registers)
    return np.where(reused, 1.0, rules.limits.shared_fraction)


def wave_count(programs: Real, slots: Real) -> Real:
    """Return the number of waves of `programs`, `slots` of which run at a time."""
    return np.ceil(programs / np.maximum(slots, 1))


def kernel_time(
    work: KernelWork, device: Device, waiting: Waiting | None = None
) -> KernelTime:
    """
    Return the time of one launch.

    `waiting` is by default that for loads of the own device memory. Raises `CostError`
    if the device has no rate for the work's element type.
    """
    memory, times = device.memory, device.times
    waiting = waiting or waiting_time(work, device)
    occupancy = occupancy_of(work, device)
    fits = np.greater_equal(occupancy, 1) * 1.0
    used = device.multiprocessors // work.cluster * work.cluster
    slots = used * np.maximum(occupancy, 1)
    waves = wave_count(work.programs, slots)
    # A multiprocessor runs its programs in turn: the one with most programs counts.
    turns = wave_count(work.programs, used) * device.multiprocessors
    alone = turns * work.uneven_bytes / memory.l2_bandwidth
    full = np.floor(work.programs / slots) * slots / work.programs
    phases = _phases(work, device, occupancy)
    busy = busy_time(work, phases)
    # What loads the next tile ahead fills the pipeline once for all tiles.
    fills = 1 if work.loads_ahead or work.tiles_ahead else waves
    filling = waiting.filling
    if work.tiles_ahead:
        filling = waiting.loading + phases.loading
    running = program_time(work, device, phases, waiting)
    together = turns / device.multiprocessors * busy + waves * waiting.exposed
    return KernelTime(
        times.launch,
        turns * compute_time(work, device.units),
        turns * work.shared_reads / device.shared_bandwidth,
        turns * work.moved_bytes / memory.l2_bandwidth + alone,
        work.device_bytes / memory.hbm_bandwidth + alone,
        np.maximum(waves * running, together) + fills * filling,
        np.where(np.less(full, 1), running + filling, 0.0),
        full,
        waves * (times.exchange * work.exchanges)
        + waves * (times.rank_exchange * work.rank_exchanges)
        + waves * (times.cluster_exchange * work.cluster_exchanges),
        fits,
    )


def waiting_time(work: KernelWork, device: Device, latency: float = 0.0) -> Waiting:
    """
    Return what one program waits for loads that take `latency`, by default `device`'s.

    A software pipeline waits once to fill, and then in each iteration, for all loads of
    it; see `loops_time`.
    """
    latency = latency or device.times.load_latency
    pipelined = pipelined_rounds(work)
    fills = np.minimum(work.pipelines, pipelined)
    return Waiting(
        filling=latency * fills,
        loading=latency * np.maximum(pipelined - fills, 0),
        exposed=latency * work.exposed_rounds,
    )


def pipelined_rounds(work: KernelWork) -> Real:
    """Return how often one program waits for a software pipeline."""
    return np.maximum(work.rounds - work.exposed_rounds - work.joined_rounds, 0)


def loading_times(work: KernelWork, device: Device) -> tuple[Real, Real]:
    """
    Return the seconds of one program's loads in loops of contractions, and of others.

    That is if all multiprocessors with one load. Each has its part of the rate of L2;
    those that load share that of device memory, for what is not stored there.
    """
    loaded = work.moved_bytes - work.stored_bytes
    read = np.maximum(work.device_bytes - work.written_bytes, 0)
    read = read / np.maximum(work.programs, 1)
    loading = np.minimum(work.programs, device.multiprocessors)
    seconds = np.maximum(
        loaded * device.multiprocessors / device.memory.l2_bandwidth,
        read * loading / device.memory.hbm_bandwidth,
    )
    exposed = seconds * work.exposed_bytes / np.maximum(loaded, 1)
    return seconds - exposed, exposed


def busy_time(work: KernelWork, phases: _Phases) -> Real:
    """
    Return the seconds for which one program keeps its multiprocessor busy.

    Programs that start together run the same phases at the same time, so that those of
    one do not overlap with others of another: loops, what comes after, and stores,
    which L2 takes.
    """
    first = first_loads(work, phases.loading)
    loops = first + np.maximum(phases.computing, phases.loading - first)
    if work.tiles_ahead:
        return np.maximum(loops, phases.others)
    return loops + phases.others


def program_time(
    work: KernelWork, device: Device, phases: _Phases, waiting: Waiting
) -> Real:
    """
    Return the seconds of a program that has a multiprocessor for itself.

    Without the filling of pipelines. The control of iterations comes in addition.
    """
    loops = loops_time(work, device, phases, waiting)
    control = device.times.iteration * work.rounds
    if work.tiles_ahead:
        return np.maximum(loops, phases.others) + control
    return loops + phases.others + waiting.exposed + control


def loops_time(
    work: KernelWork, device: Device, phases: _Phases, waiting: Waiting
) -> Real:
    """
    Return the seconds of the loops of contractions of a program.

    In an iteration, Triton waits for the loads of it, all at a time, and issues the
    products; loads for the iteration `stages` - 1 later start behind those whose
    results the loop does not read (SASS of Triton 3.6 for sm_90, see
    docs/multi-gpu-model.md). So `stages` - 1 iterations take at least what comes before
    the loads of one, their latency, and their bytes. With one stage nothing overlaps.
    Where copies pass registers, loads start with the iteration. Producer warps load
    what they have buffers for.
    """
    reduces = np.greater(work.looped_operations, 0)
    dependent = np.where(reduces, device.times.dependent * work.rounds, 0.0)
    computing = np.maximum(phases.computing, dependent)
    first = first_loads(work, phases.loading)
    arriving = waiting.loading + phases.loading - first
    before = phases.before * (not device.triton.copies.copies_pass_registers)
    pipelined = np.where(
        np.greater(work.groups, 1),
        refilling(arriving, computing, work.stages),
        (before + arriving) / np.maximum(np.subtract(work.stages, 1), 1),
    )
    overlapped = longest((computing, pipelined, phases.loading - first))
    alone = computing + arriving
    return first + np.where(np.greater(work.stages, 1), overlapped, alone)


def first_loads(work: KernelWork, loading: Real) -> Real:
    """
    Return the seconds of the loads of the first iterations, which nothing overlaps.

    `loading` are those of all. There are none if producer warps load them ahead.
    """
    if work.loads_ahead:
        return 0.0
    rounds = np.maximum(pipelined_rounds(work), 1)
    return loading * np.minimum(work.pipelines, rounds) / rounds


def _phases(work: KernelWork, device: Device, occupancy: Real) -> _Phases:
    """Return the seconds of one program, `occupancy` of which run at a time."""
    own, units, memory = device.multiprocessors, device.units, device.memory
    looped = own * vector_seconds(work.looped_operations, units)
    vectors = own * vector_seconds(work.vector_operations, units)
    later = (vectors - looped) / vector_fraction(work, units, occupancy)
    products = own * product_seconds(work, units)
    read = work.read_operations / np.maximum(work.tensor_operations, 1)
    loading, exposed = loading_times(work, device)
    later = later + work.converted_bytes / memory.shared_per_clock / units.clock
    storing = own * work.stored_bytes / memory.l2_bandwidth
    return _Phases(
        computing=in_turns(products, looped, work.groups),
        before=looped + products * read,
        loading=loading,
        others=exposed + later + storing,
    )


def product_rate(element: str, units: Units) -> float:
    """
    Return the operations per second of products, infinite for a type without a rate.

    Exact f32 products run on vector lanes.
    """
    if element == "f32":
        return vector_rate(units)
    return units.tensor.get(element, inf)


def compute_time(work: KernelWork, units: Units) -> Real:
    """
    Return the seconds that one program would take on the whole device.

    Raises `CostError` if there is no rate for the work's element type.
    """
    looped = vector_seconds(work.looped_operations, units)
    later = vector_seconds(work.vector_operations, units) - looped
    return in_turns(product_seconds(work, units), looped, work.groups) + later


def product_seconds(work: KernelWork, units: Units) -> Real:
    """Return the seconds of the products, see `compute_time`."""
    if not np.count_nonzero(work.tensor_operations):
        return 0.0
    if (rate := units.tensor.get(work.element)) is None:
        names = ", ".join(units.tensor)
        raise CostError(
            f"the hardware file has no tensor_tflops for {work.element}; it has "
            f"{names}; add it, or take one of these element types"
        )
    return work.tensor_operations / rate


def vector_fraction(work: KernelWork, units: Units, occupancy: Real) -> Real:
    """
    Return the fraction of the rate of vector lanes that a multiprocessor reaches.

    That is outside of loops, where nothing else hides their latency. The concurrency
    that a rate needs is latency times rate (Volkov, "Understanding latency hiding on
    GPUs", 2016): fewer warps than that have the same fraction of it.
    """
    warps = work.warps * np.maximum(occupancy, 1)
    return np.minimum(warps / units.vector_warps, 1.0)


def vector_seconds(operations: Real, units: Units) -> Real:
    """Return the seconds that all vector lanes take for operations, in additions."""
    # A vector rate counts a fused multiply-add as two; most vector work is not fused.
    return operations / (vector_rate(units) / 2)


def vector_rate(units: Units) -> float:
    """Return the operations per second of vector lanes: in f32, else the most."""
    return units.vector.get("f32", max(units.vector.values()))
