"""
One GPU as numbers: its rates and capacities, and how Triton compiles tiles for it.

Times are seconds, rates per second, sizes bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from comet.cost.gpu.triton_rules import TritonRules


@dataclass(frozen=True)
class Units:
    """The compute units of the multiprocessors; rates are those of all together."""

    clock: float
    tensor: Mapping[str, float]
    """Dense matrix operations by element type; a fused multiply-add counts two."""
    vector: Mapping[str, float]
    """Other floating-point operations by element type."""
    function_costs: Mapping[str, float]
    """Costs of elementwise functions and reductions, in additions; by default 1."""
    special_units: frozenset[str]
    """The functions that units of their own compute, beside the vector lanes."""
    vector_warps: float
    """
    Warps of a multiprocessor with which its vector lanes reach their rate: with fewer,
    lanes wait for the results of earlier operations.
    """


@dataclass(frozen=True)
class Memory:
    """The rates and sizes of memories, and of what one access takes."""

    hbm_bandwidth: float
    l2_bytes: int
    l2_bandwidth: float
    shared_per_clock: int
    """Bytes one multiprocessor reads from shared memory per clock."""
    load_bytes: int
    """The largest vector width, in bytes."""


@dataclass(frozen=True)
class Limits:
    """The capacities of one multiprocessor, and of one program on it."""

    register_bytes: int
    """Bytes of registers of one multiprocessor."""
    shared_bytes: int
    """Bytes of shared memory that one program can have."""
    reserved_bytes: int
    """Bytes of shared memory that each program takes in addition."""
    warps: int
    """Warps that one multiprocessor can hold."""
    warp_threads: int
    """Threads of a warp."""
    most_cluster_blocks: int
    """The most thread blocks of a cluster, 1 if the GPU or Triton has no clusters."""


@dataclass(frozen=True)
class Times:
    """The seconds that latencies, control and synchronization take."""

    launch: float
    """To start one kernel."""
    load_latency: float
    """From a load of tiles in device memory to its use."""
    flag_latency: float
    """
    From an instruction on one number of the GPU's own memory to its result: a read of
    a flag, an atomic, or a fence.
    """
    iteration: float
    """The time that control and synchronization add to an iteration of a loop."""
    dependent: float
    """
    The least time between two waits for loads in a loop that reduces what its
    products give: each instruction waits for the one before.
    """
    exchange: float
    """From storing a value for other programs of the same GPU until they load it."""
    rank_exchange: float
    """The same for programs of other GPUs."""
    cluster_exchange: float
    """From storing a value for other blocks of a cluster, past a barrier, to a load."""


@dataclass(frozen=True)
class Device:
    """One GPU, or the part of it that a rank has."""

    multiprocessors: int
    units: Units
    memory: Memory
    limits: Limits
    times: Times
    triton: TritonRules
    exposed_fraction: float
    mean_length: float
    """The mean of lengths that are known at run time, over the longest."""
    sharing: int = 1
    """How many ranks share the GPU, of which this is one rank's part."""

    @property
    def shared_bandwidth(self) -> float:
        """Bytes per second that all multiprocessors read from shared memory."""
        return self.memory.shared_per_clock * self.units.clock * self.multiprocessors
