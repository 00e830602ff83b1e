"""
The time of every stream of a node, iteration by iteration, as the COMET tool counts it.

A stream is one entry of a spatial or leaf node. Its first read and its last write
cannot overlap with work (`ramp_up`, `ramp_down`); every other transfer is one element
of `transfers`, to be hidden behind the window of its iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.noc import Crossing, network_cycles
from comet.cost.accelerator.tool.nest import Movement
from comet.cost.accelerator.tool.network import mesh_used, network_energy, tabled_hops
from comet.cost.accelerator.volume import Route, memory_cycles, transfer_kind
from comet.cost.estimate import CostError
from comet.cost.reals import single

MOST_CYCLES = 1 << 63
"""One transfer takes fewer cycles than this."""

Cycles: TypeAlias = NDArray[np.int64]
"""Cycles per iteration."""


def u32(value: int) -> int:
    """Return the value modulo 2^32, as the tool counts cycles."""
    return value & 0xFFFFFFFF


@dataclass(frozen=True)
class Stream:
    """One entry's transfers during one execution of its node."""

    movement: Movement
    source: str
    destination: str
    hidden: bool
    """Whether transfers may overlap with the work below."""
    reuse: int
    moves: int
    window: int
    """Cycles of work per move that may hide a transfer."""
    compute: int
    """Cycles of work below, all iterations."""
    transfers: Cycles
    ramp_up: int
    ramp_down: int
    network_energy: float

    @property
    def port(self) -> int:
        """0 for reads, 1 for writes."""
        return int(self.movement.writes)

    @property
    def busy(self) -> int:
        """Cycles of all transfers but the ramps."""
        return int(self.transfers.sum())


@dataclass(frozen=True, slots=True)
class Setting:
    """The values of a node that all its streams use."""

    iterations: int
    """The maximum of all entries."""
    compute: int
    """Cycles of work below, all iterations."""
    step_window: int | None
    """
    Cycles of one step at a leaf; None elsewhere, where one iteration's work is `work`.
    """
    work: int
    uneven: bool
    """Whether the node's entries have different iteration counts."""


def make_stream(
    hardware: Hardware, movement: Movement, setting: Setting, hidden: bool
) -> Stream:
    """
    Return the stream of one entry.

    Raises `CostError` if no link joins its levels, the mesh has no hop count, or the
    tool reads or writes outside its vectors.
    """
    entry = movement.entry
    route = Route.of(hardware, entry.source, entry.destination)
    reuse, moves = movement.reuse, movement.moves
    if setting.iterations % reuse:
        raise CostError(
            f"tensor {entry.tensor} at {entry.source} stays for {reuse} iterations, "
            f"which do not divide the {setting.iterations} of other tensors, and the "
            "COMET tool reads past the end of its windows; give all entries of the "
            "node the same factors"
        )
    times, energy = _transfer_times(route, movement, setting.uneven)
    up, down, transfers = _split_ramps(movement, times, reuse, setting.uneven)
    work = (
        setting.work
        if setting.step_window is None
        else u32(movement.steps * setting.step_window)
    )
    return Stream(
        movement,
        entry.source,
        entry.destination,
        hidden,
        reuse,
        moves,
        u32(work * reuse),
        setting.compute,
        transfers,
        up,
        down,
        energy,
    )


def _transfer_times(
    route: Route, movement: Movement, uneven: bool
) -> tuple[Cycles, float]:
    """
    Return the cycles of each iteration's transfer, and the network's pJ for all.

    Only if entries have different iteration counts, the tool counts writes in
    iterations in which no tile moves.
    """
    busy, energy = _one_transfer(route, movement, movement.unique)
    idle = 0
    if movement.writes and (uneven or movement.period != movement.reuse):
        idle = _one_transfer(route, movement, 0)[0][0]
    (memory, network), period = busy, movement.period
    times = np.full(movement.length, idle, dtype=np.int64)
    times[::period] = memory + network
    if route.source.contiguous:  # the network counts for the first and the last
        times[period:-1:period] = memory
    return times, float(energy) * movement.moves


def _one_transfer(
    route: Route, movement: Movement, unique: int
) -> tuple[tuple[int, int], float]:
    transfer, source = movement.transfer(unique), route.source
    read, write = source.child_read_bandwidth, source.child_write_bandwidth
    if (min(read, write) if movement.writes else read) < source.ports:
        raise CostError(
            f"memory type {source.kind} has more ports than bytes per cycle, so "
            "the COMET tool gives a port none; raise its bandwidth or lower its ports"
        )
    memory = int(memory_cycles(route, transfer, ported=True, real=single))
    if unique == 0 or movement.spatial == 1:
        return (memory, 0), 0.0
    mesh = mesh_used(route.network.mesh, movement.spatial)
    hops = tabled_hops(mesh)
    kind, width = transfer_kind(movement.writes, unique), movement.entry.bits / 8
    crossing = Crossing(kind, hops, movement.size, movement.spatial, width)
    cycles = int(network_cycles(route.network, crossing, real=single))
    if memory + cycles >= MOST_CYCLES:
        raise CostError(
            f"a transfer takes {float(memory + cycles):.3g} cycles, more than 63 bits "
            "hold; lower hop_latency or queuing_delay, or use model paper"
        )
    return (memory, cycles), network_energy(route.network, mesh, crossing)


def _split_ramps(
    movement: Movement, times: Cycles, reuse: int, uneven: bool
) -> tuple[int, int, Cycles]:
    """
    Return the first read, the last write, and the others by overlapped iteration.

    A read starts one iteration ahead, a write ends one iteration later. Raises
    `CostError` if the tool would write outside its vectors: an accumulator reused over
    iterations in a node that has entries with other iteration counts.
    """
    step = 1 if uneven else reuse
    result = np.zeros(
        movement.length if uneven else movement.length // reuse, dtype=np.int64
    )
    if not movement.writes:
        overlapped = times[step::step]
        result[: len(overlapped)] = overlapped
        return int(times[0]), 0, result
    last = movement.length - reuse
    positions = np.arange(0, movement.length, step)
    positions = positions[positions != last]
    targets = positions // step + 1
    if len(targets) and targets[-1] >= len(result):
        raise CostError(
            f"tensor {movement.entry.tensor} at {movement.entry.source} is written "
            f"after {reuse} iterations beside tensors with "
            "other iteration counts, which the COMET tool cannot price; give all "
            "entries of the node the same factors"
        )
    result[targets] = times[positions]
    return 0, int(times[last]) if last >= 0 else 0, result
