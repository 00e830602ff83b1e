"""
The time of one GPU kernel: a roofline, and the programs of a multiprocessor in turn.

The slowest resource limits the throughput (Williams, Waterman and Patterson,
"Roofline", CACM 2009). A kernel also takes at least as long as the programs that a
multiprocessor runs one after another: each fills its software pipeline, computes, and
stores, and these phases of one program do not overlap. The last, partial wave takes as
long as one more program. Times are seconds, rates per second, sizes bytes; counts may
be numpy arrays, one element per choice of block sizes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from comet.cost.estimate import CostError
from comet.cost.gpu.device import Device, Units
from comet.cost.gpu.spent import Spent, either, longest_of
from comet.cost.gpu.triton_rules import TritonRules
from comet.cost.gpu.warp_groups import in_turns, refilling
from comet.cost.gpu.work import KernelWork, Loops, Operations
from comet.cost.reals import Real


@dataclass(frozen=True)
class KernelTime:
    """Where the time of one launch goes, in seconds."""

    launch: Spent
    compute: Spent
    """
    Tensor cores, then vector lanes, with multiprocessors that idle in the last wave.
    """
    shared: Spent
    l2: Spent
    device: Spent
    latency: Spent
    """
    The programs of a multiprocessor, which wait for loads, compute and store. Programs
    that run at the same time are in the same phase.
    """
    last: Spent
    """The time of one program of the last, partial wave, 0 if all waves are full."""
    full: Real
    """The fraction of the programs that run in the full waves before it."""
    exchange: Spent
    """Waiting for values of other programs; nothing overlaps this time."""
    fits: Real
    """1 if one program fits a multiprocessor, else 0."""

    @property
    def overlapping(self) -> Mapping[str, Spent]:
        """The times that overlap each other, by resource."""
        return {
            "compute": self.compute,
            "shared memory": self.shared,
            "L2": self.l2,
            "device memory": self.device,
            "latency": self.latency,
        }

    @cached_property
    def body(self) -> Spent:
        """The time of the programs, without the launch and exchanges."""
        throughput = longest_of(self.compute, self.shared, self.l2, self.device)
        last = throughput.lasting(self.full * throughput.seconds) + self.last
        return longest_of(*self.overlapping.values(), last)

    @cached_property
    def spent(self) -> Spent:
        """The time of the launch; infinite if a program does not fit."""
        whole = self.launch + self.body + self.exchange
        seconds = np.where(np.greater(self.fits, 0), whole.seconds, np.inf)
        return Spent(seconds, whole.divided)

    @property
    def seconds(self) -> Real:
        """The time of the launch; infinite if a program does not fit."""
        return self.spent.seconds


@dataclass(frozen=True)
class Waiting:
    """The time that one program waits for loads, in seconds."""

    filling: Real
    """Until its software pipelines are filled."""
    loading: Real
    """After that; with several stages, the program computes meanwhile."""
    exposed: Real = 0.0
    """Outside of loops of contractions."""


@dataclass(frozen=True)
class _Phases:
    """The times of the phases of a program, one on each multiprocessor, in seconds."""

    computing: Spent
    """Of products, and of vector operations in their loops."""
    before: Spent
    """The part of `computing` that ends before loads of later iterations start."""
    loading: Spent
    """Of the loads in these loops."""
    others: Spent
    """Outside of these loops: vector operations, layout conversions, loads, stores."""


@dataclass(frozen=True)
class _Turns:
    """How the programs of a launch are distributed over multiprocessors."""

    count: Real
    """
    The most programs that one multiprocessor runs, times the number of multiprocessors.
    """
    waves: Real
    full: Real
    """The fraction of the programs that run in full waves."""
    idle: Real
    """The fraction of `count` for which multiprocessors are idle."""
    idle_last: Real
    """The fraction of the multiprocessors that idle in the last wave."""

    @classmethod
    def of(cls, work: KernelWork, multiprocessors: int, occupancy: Real) -> _Turns:
        """Return the distribution of programs if `occupancy` of them run at a time."""
        used = np.maximum(multiprocessors // work.together, 1) * work.together
        slots = used * np.maximum(occupancy, 1)
        waves = wave_count(work.programs, slots)
        count = wave_count(work.programs, used) * multiprocessors
        last = work.programs - (waves - 1) * slots
        return cls(
            count,
            waves,
            np.floor(work.programs / slots) * slots / work.programs,
            1 - work.programs / count,
            1 - np.minimum(last, multiprocessors) / multiprocessors,
        )


def occupancy_of(work: KernelWork, device: Device) -> Real:
    """
    Return how many programs a multiprocessor runs at a time; 0 if not even one fits.

    At most one if programs exchange: `tile` makes no more programs than there are
    multiprocessors, so that all run at the same time.
    """
    limits, needs = device.limits, work.needs
    by_warps = limits.warps // np.maximum(needs.warps, 1)
    by_registers = limits.register_bytes // np.maximum(needs.registers, 1)
    tiles = tile_fraction(work.loops.stages, device.triton)
    shared = needs.shared / tiles + limits.reserved_bytes
    by_shared = (limits.shared_bytes + limits.reserved_bytes) // np.maximum(shared, 1)
    by_shared = np.maximum(by_shared, np.less_equal(needs.shared, limits.shared_bytes))
    occupancy = np.minimum(np.minimum(by_warps, by_registers), by_shared)
    exchanging = np.greater(work.exchanges.programs, 0)
    return np.where(exchanging, np.minimum(occupancy, 1), occupancy)


def resident_programs(work: KernelWork, device: Device) -> Real:
    """Return how many programs run at a time, at least one on each multiprocessor."""
    return device.multiprocessors * np.maximum(occupancy_of(work, device), 1)


def tile_fraction(stages: Real, rules: TritonRules) -> Real:
    """
    Return which part of a program's shared memory has tiles.

    The rest is for reductions and conversions of layouts. With several stages these
    reuse the buffers of the pipeline, if copies fill them without registers: none of
    436 kernels compiled for sm_90 has more (`tests/data/registers.csv`).
    """
    reused = np.greater(stages, 1) * (not rules.copies.copies_pass_registers)
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
    memory, times, moved = device.memory, device.times, work.moved
    occupancy, exchanges = occupancy_of(work, device), work.exchanges
    turns = _Turns.of(work, device.multiprocessors, occupancy)
    waiting = waiting or waiting_time(work, device)
    latency, last = _in_turn(work, device, turns, occupancy, waiting)
    computing = compute_time(work, device.units)
    shared = turns.count * moved.shared / device.shared_bandwidth
    l2 = turns.count * moved.l2 / memory.l2_bandwidth
    alone = Spent.on("L2", turns.count * moved.uneven / memory.l2_bandwidth)
    exchanging = (
        turns.waves * (times.exchange * exchanges.programs)
        + turns.waves * (times.rank_exchange * exchanges.ranks)
        + turns.waves * (times.cluster_exchange * exchanges.clusters)
    )
    return KernelTime(
        Spent.on("launch", times.launch),
        computing.lasting(turns.count * computing.seconds).idling(turns.idle),
        Spent.on("shared memory", shared).idling(turns.idle),
        Spent.on("L2", l2).idling(turns.idle) + alone,
        Spent.on("device memory", moved.device / memory.hbm_bandwidth) + alone,
        latency,
        last,
        turns.full,
        Spent.on("exchange", exchanging),
        np.greater_equal(occupancy, 1) * 1.0,
    )


def _in_turn(
    work: KernelWork,
    device: Device,
    turns: _Turns,
    occupancy: Real,
    waiting: Waiting,
) -> tuple[Spent, Spent]:
    """Return `latency` and `last` of a `KernelTime`."""
    loops, waves = work.loops, turns.waves
    phases = _phases(work, device, occupancy)
    filling = Spent.on("load latency", waiting.filling)
    if loops.tiles_ahead:
        filling = Spent.on("load latency", waiting.loading) + phases.loading
    # What loads the next tile ahead fills the pipeline once for all tiles.
    fills = 1 if loops.loads_ahead or loops.tiles_ahead else waves
    busy, running = busy_time(work, phases), program_time(work, device, phases, waiting)
    in_waves = running.lasting(waves * running.seconds)
    together = busy.lasting(turns.count / device.multiprocessors * busy.seconds)
    exposed = Spent.on("load latency", waves * waiting.exposed)
    latency = longest_of(
        in_waves.idling(turns.idle_last / waves), together.idling(turns.idle) + exposed
    )
    last = running + filling
    partial = np.where(np.less(turns.full, 1), last.seconds, 0.0)
    return (
        latency + filling.lasting(fills * filling.seconds),
        last.lasting(partial).idling(turns.idle_last),
    )


def waiting_time(work: KernelWork, device: Device, latency: float = 0.0) -> Waiting:
    """
    Return the time that a program waits for loads with a latency, `device`'s by
    default.

    A software pipeline waits once until it is filled, and then once in each iteration,
    for all loads of the iteration; see `loops_time`.
    """
    latency = latency or device.times.load_latency
    loops, pipelined = work.loops, work.loops.pipelined
    fills = np.minimum(loops.pipelines, pipelined)
    return Waiting(
        filling=latency * fills,
        loading=latency * np.maximum(pipelined - fills, 0),
        exposed=latency * loops.exposed,
    )


def loading_times(work: KernelWork, device: Device) -> tuple[Spent, Spent]:
    """
    Return the time of one program's loads in loops of contractions, and of its others.

    All multiprocessors with a program load at the same time. Each has an equal part of
    the bandwidth of L2; those with a program share the bandwidth of device memory.
    """
    moved = work.moved
    loaded = moved.l2 - moved.stored
    read = np.maximum(moved.device - moved.written, 0)
    read = read / np.maximum(work.programs, 1)
    loading = np.minimum(work.programs, device.multiprocessors)
    l2 = loaded * device.multiprocessors / device.memory.l2_bandwidth
    loads = longest_of(
        Spent.on("device memory", read * loading / device.memory.hbm_bandwidth),
        Spent.on("L2", l2),
    )
    exposed = loads.seconds * moved.exposed / np.maximum(loaded, 1)
    return loads.lasting(loads.seconds - exposed), loads.lasting(exposed)


def busy_time(work: KernelWork, phases: _Phases) -> Spent:
    """
    Return the time for which one program keeps its multiprocessor busy.

    Programs that start together run the same phase at the same time. So the loops of
    one program do not overlap with the epilogue or the stores of another one.
    """
    first = first_loads(work.loops, phases.loading)
    later = phases.loading.lasting(phases.loading.seconds - first.seconds)
    loops = first + longest_of(phases.computing, later)
    if work.loops.tiles_ahead:
        return longest_of(loops, phases.others)
    return loops + phases.others


def program_time(
    work: KernelWork, device: Device, phases: _Phases, waiting: Waiting
) -> Spent:
    """
    Return the time of a program that has a multiprocessor for itself.

    The time to fill pipelines is not included; that of loop control is.
    """
    loops = loops_time(work, device, phases, waiting)
    control = Spent.on("loop control", device.times.iteration * work.loops.rounds)
    if work.loops.tiles_ahead:
        return longest_of(loops, phases.others) + control
    exposed = Spent.on("load latency", waiting.exposed)
    return loops + phases.others + exposed + control


def loops_time(
    work: KernelWork, device: Device, phases: _Phases, waiting: Waiting
) -> Spent:
    """
    Return the time of the loops of contractions of a program.

    An iteration of Triton's code waits once, for all its loads, and issues its
    products. Then it starts the loads of the iteration `stages` - 1 later; but first it
    waits for products whose results the loop reads (SASS of Triton 3.6 for sm_90, see
    docs/multi-gpu-model.md). So `stages` - 1 iterations take at least the time before
    the loads of one iteration, the latency of these, and the time to move their bytes.
    With one stage nothing overlaps. If copies pass through registers, loads start at
    the beginning of an iteration. Producer warps load as soon as a buffer is free.
    """
    stages, reduces = work.loops.stages, np.greater(work.operations.looped, 0)
    dependent = np.where(reduces, device.times.dependent * work.loops.rounds, 0.0)
    computing = longest_of(
        phases.computing, Spent.on("dependent instructions", dependent)
    )
    first = first_loads(work.loops, phases.loading)
    later = phases.loading.lasting(phases.loading.seconds - first.seconds)
    arrived = Spent.on("load latency", waiting.loading) + phases.loading
    arriving = arrived.lasting(arrived.seconds - first.seconds)
    passed = phases.before.seconds * (not device.triton.copies.copies_pass_registers)
    behind = phases.before.lasting(passed) + arriving
    ahead = np.maximum(np.subtract(stages, 1), 1)
    refilled = refilling(arriving.seconds, computing.seconds, stages)
    pipelined = either(
        np.greater(work.needs.groups, 1),
        (arriving + computing).lasting(refilled),
        behind.lasting(behind.seconds / ahead),
    )
    overlapped = longest_of(computing, pipelined, later)
    alone = computing + arriving
    return first + either(np.greater(stages, 1), overlapped, alone)


def first_loads(loops: Loops, loading: Spent) -> Spent:
    """
    Return the time of the loads of the first iterations, with which nothing overlaps.

    `loading` is the time of all loads. 0 if producer warps load the first ones ahead.
    """
    if loops.loads_ahead:
        return loading.lasting(0.0)
    rounds = np.maximum(loops.pipelined, 1)
    first = loading.seconds * np.minimum(loops.pipelines, rounds) / rounds
    return loading.lasting(first)


def _phases(work: KernelWork, device: Device, occupancy: Real) -> _Phases:
    """Return the times of one program, `occupancy` of which run at a time."""
    own, units, memory = device.multiprocessors, device.units, device.memory
    operations, warps = work.operations, work.needs.warps
    looped = own * vector_seconds(operations.looped, units)
    vectors = own * vector_seconds(operations.vector, units)
    later = (vectors - looped) / vector_fraction(warps, units, occupancy)
    products = own * product_seconds(operations, units)
    read = operations.read / np.maximum(operations.tensor, 1)
    loading, exposed = loading_times(work, device)
    converting = work.moved.converted / memory.shared_per_clock / units.clock
    storing = own * work.moved.stored / memory.l2_bandwidth
    in_loops = Spent.on("vector lanes", looped)
    return _Phases(
        computing=_computing(products, looped, work),
        before=in_loops + Spent.on("tensor cores", products * read),
        loading=loading,
        others=exposed
        + (Spent.on("vector lanes", later) + Spent.on("shared memory", converting))
        + Spent.on("L2", storing),
    )


def _computing(products: Real, looped: Real, work: KernelWork) -> Spent:
    """Return the time of products and vector operations, alternating in warp groups."""
    both = Spent.on("tensor cores", products) + Spent.on("vector lanes", looped)
    return both.lasting(in_turns(products, looped, work.needs.groups))


def product_rate(element: str, units: Units) -> float:
    """
    Return the operations per second of products, infinite for a type without a rate.

    Exact f32 products run on vector lanes.
    """
    if element == "f32":
        return vector_rate(units)
    return units.tensor.get(element, inf)


def compute_time(work: KernelWork, units: Units) -> Spent:
    """
    Return the time that one program would take on the whole device.

    Raises `CostError` if there is no rate for the work's element type.
    """
    operations = work.operations
    looped = vector_seconds(operations.looped, units)
    later = vector_seconds(operations.vector, units) - looped
    products = product_seconds(operations, units)
    return _computing(products, looped, work) + Spent.on("vector lanes", later)


def product_seconds(operations: Operations, units: Units) -> Real:
    """Return the seconds of the products, see `compute_time`."""
    if not np.count_nonzero(operations.tensor):
        return 0.0
    if (rate := units.tensor.get(operations.element)) is None:
        names = ", ".join(units.tensor)
        raise CostError(
            f"the hardware file has no tensor_tflops for {operations.element}; it "
            f"has {names}; add it, or take one of these element types"
        )
    return operations.tensor / rate


def vector_fraction(warps: Real, units: Units, occupancy: Real) -> Real:
    """
    Return the fraction of the rate of vector lanes that a multiprocessor reaches.

    That is outside of loops, where nothing else hides their latency. The concurrency
    that a rate needs is latency times rate (Volkov, "Understanding latency hiding on
    GPUs", 2016): fewer warps than that have the same fraction of it.
    """
    resident = warps * np.maximum(occupancy, 1)
    return np.minimum(resident / units.vector_warps, 1.0)


def vector_seconds(operations: Real, units: Units) -> Real:
    """Return the seconds that all vector lanes take for operations, in additions."""
    # A vector rate counts a fused multiply-add as two; most vector work is not fused.
    return operations / (vector_rate(units) / 2)


def vector_rate(units: Units) -> float:
    """Return the operations per second of vector lanes: in f32, else the most."""
    return units.vector.get("f32", max(units.vector.values()))
