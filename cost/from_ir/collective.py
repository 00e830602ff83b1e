"""
The price of one collective on the attached hardware.

On GPUs it is that of the fastest algorithm, or of a requested one, on their links. On
accelerators it is what a model prices for the COMET files, which name no algorithm; a
requested algorithm is priced on the mesh of the instances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Protocol

from xdsl.ir import SSAValue

from comet.cost.accelerator.hardware import Hardware, Level, Network
from comet.cost.accelerator.noc import REDUCING, mesh_bits_energy, phases
from comet.cost.accelerator.tool.network import tool_cost
from comet.cost.collectives.algorithms import (
    HIERARCHICAL,
    TIMES,
    Fabric,
    Hierarchy,
    cheapest,
    collective_time,
)
from comet.cost.collectives.formulas import (
    CollectiveTraffic,
    exchange_cycles,
    link_network,
    memory_energy,
)
from comet.cost.estimate import ModelName
from comet.cost.from_ir.hardware import hardware_of
from comet.dialects.arch import SystemOp, find_system
from comet.dialects.collective.base import Algorithm, CollectiveOp, TokenType
from comet.dialects.compound import ReduceKindAttr
from comet.dialects.compound.dims import bits_of, elements_of
from comet.dialects.cost import Figures, Model, TimeUnit
from comet.kinds import CollectiveKind

IN_FILES: dict[str, CollectiveKind] = {
    "all_reduce": CollectiveKind.ALL_REDUCE,
    "all_gather": CollectiveKind.ALL_GATHER,
    "broadcast": CollectiveKind.BROADCAST,
    "reduce": CollectiveKind.REDUCTION,
    "gather": CollectiveKind.GATHER,
    "scatter": CollectiveKind.SCATTER,
}
"""The kinds of COMET files, by the names of `comet.cost.collectives.algorithms`."""


@dataclass(frozen=True)
class Payload:
    """The whole (gathered) value of a collective."""

    elements: int
    element_bytes: float

    @property
    def bytes(self) -> float:
        """The size in bytes."""
        return self.elements * self.element_bytes


def payload_of(value: SSAValue, copies: int = 1) -> Payload:
    """Return the payload of `copies` values of the type of `value`."""
    return Payload(copies * elements_of(value), bits_of(value) / 8)


def price_of(op: CollectiveOp, pricer: Pricer) -> CollectivePrice:
    """
    Return the price of a collective for the larger of its operand and its results.

    Raises CostError as the pricer does.
    """
    values = [v for v in (op.input, *op.results) if not isinstance(v.type, TokenType)]
    payload = max(map(payload_of, values), key=lambda payload: payload.elements)
    return pricer.price(op.name.split(".")[-1], payload)


@dataclass(frozen=True)
class CollectivePrice:
    """How one collective is executed, and what it costs."""

    algorithm: Algorithm | None
    """None leaves the choice to the target."""
    figures: Figures | None
    """None if no model prices it."""
    energy: float = 0.0
    """pJ; 0 if unknown."""

    @property
    def time(self) -> float:
        """The latency; 0 if unknown."""
        return 0.0 if self.figures is None else self.figures.latency


class Pricer(Protocol):
    """Prices collectives over one group of instances."""

    def price(self, kind: str, payload: Payload) -> CollectivePrice:
        """
        Price a collective, its kind named as in `comet.cost.collectives.algorithms`.

        Raises CostError for an algorithm that does not run on these instances.
        """
        ...


@dataclass(frozen=True)
class Unpriced:
    """Without hardware: the requested algorithm, without a price."""

    algorithm: Algorithm | None

    def price(self, kind: str, payload: Payload) -> CollectivePrice:
        """Return a price without figures."""
        del payload
        return CollectivePrice(
            self.algorithm if _has(kind, self.algorithm) else None, None
        )


@dataclass(frozen=True)
class ByAlgorithm:
    """The formulas of `cost.collectives.algorithms`, for one or the fastest."""

    fabric: Fabric | Hierarchy
    unit: TimeUnit
    algorithm: Algorithm | None

    def price(self, kind: str, payload: Payload) -> CollectivePrice:
        """Return the price by the algorithm; the fastest for kinds without it."""
        if kind not in TIMES:
            return CollectivePrice(None, None)
        algorithm = self.algorithm
        if algorithm is None or not _has(kind, algorithm):
            name, time = cheapest(kind, self.fabric, payload.bytes)
            algorithm = None if name is None else Algorithm(name)
        else:
            name = str(algorithm)
            time = float(collective_time(kind, name, self.fabric, payload.bytes))
        return CollectivePrice(algorithm, Figures(Model.PAPER, self.unit, time))


def _has(kind: str, algorithm: Algorithm | None) -> bool:
    return algorithm in (*TIMES.get(kind, ()), HIERARCHICAL)


@dataclass(frozen=True)
class ByFiles:
    """The formulas by which a model prices COMET files."""

    level: Level
    ranks: int
    model: ModelName
    reduction: str | None
    """The reduction, such as max, if the collective reduces."""

    def price(self, kind: str, payload: Payload) -> CollectivePrice:
        """Return the price; none for a collective that the files cannot express."""
        if (named := IN_FILES.get(kind)) is None:
            return CollectivePrice(None, None)
        shard = payload.bytes / self.ranks
        gathers = named in (CollectiveKind.GATHER, CollectiveKind.ALL_GATHER)
        scatters = named is CollectiveKind.SCATTER
        exchange = CollectiveTraffic(
            named,
            shard if gathers else payload.bytes,
            shard if scatters else payload.bytes,
            self.ranks,
            self.ranks,
            self.ranks,
        )
        cycles, energy = self._cost(exchange, payload.element_bytes)
        figures = Figures(Model(self.model), TimeUnit.CYCLES, cycles)
        return CollectivePrice(None, figures, energy)

    def _cost(
        self, exchange: CollectiveTraffic, element_bytes: float
    ) -> tuple[float, float]:
        """Return the cycles and the pJ of one execution."""
        level, reduces = self.level, exchange.kind in REDUCING
        if self.model == "tool":
            combined = self.reduction if reduces else None
            cost = tool_cost(exchange, level, element_bytes, combined)
            return cost.cycles, cost.memory_energy + cost.network_energy
        network = link_network(level)
        stored = float(memory_energy(exchange, level.memory, network))
        if self.model == "ideal":  # whose networks take no time and spend nothing
            return 0.0, stored
        cycles = exchange_cycles(exchange, level, element_bytes, reduces=reduces)
        bits, rounds = exchange.read_bytes * 8, phases(exchange.kind)
        wires = float(mesh_bits_energy(network, bits, self.ranks, rounds))
        return float(cycles), stored + wires


def pricer_for(
    op: CollectiveOp, algorithm: Algorithm | None, model: ModelName
) -> Pricer:
    """
    Return the pricer of collectives over the instances of `op`, at its memory level.

    `model` prices COMET files. Raises CostError if the hardware file lacks a field that
    a price needs.
    """
    system, axes = find_system(op), op.axis_names
    if system is None or not set(axes) <= set(system.axes) | {"rank"}:
        return Unpriced(algorithm)
    if system.gpu is not None:
        from comet.cost.from_ir.gpus import machine_of

        fabric = machine_of(system, op.group_size).net.fabric
        rate, latency = fabric.bandwidth * 1e-9, fabric.latency * 1e9
        fabric = replace(fabric, bandwidth=rate, latency=latency)
        return ByAlgorithm(fabric, TimeUnit.NS, algorithm)
    assert op.to_level is not None
    at = op.to_level.data
    if algorithm is not None:
        known = set(axes) <= set(system.axes)
        if not known or prod(system.axes[axis] for axis in axes) != op.group_size:
            return Unpriced(algorithm)  # it is a mesh that the file does not have
        return ByAlgorithm(mesh_fabric(system, axes, at), TimeUnit.CYCLES, algorithm)
    level, kind = hardware_of(system).level(at), op.properties.get("kind")
    reduction = str(kind.data) if isinstance(kind, ReduceKindAttr) else None
    return (
        Unpriced(None)
        if level.link is None
        else ByFiles(level, op.group_size, model, reduction)
    )


def mesh_fabric(system: SystemOp, axes: Sequence[str], at: str) -> Fabric | Hierarchy:
    """
    Return the fabric of the instances along `axes`: a mesh for each level.

    `at` is the level of the buffers. If it is below the level of an axis, messages pass
    the links between, whose hops add to their latency.
    """
    levels = dict.fromkeys(system.axis_levels[axis] for axis in axes)
    fabrics = [
        _level_fabric(system, [a for a in axes if system.axis_levels[a] == name], at)
        for name in levels
    ]
    if len(fabrics) == 1:
        return fabrics[0]
    return Hierarchy(inner=fabrics[-1], outer=fabrics[0])


def _level_fabric(system: SystemOp, axes: Sequence[str], at: str) -> Fabric:
    """Return the mesh along axes of one level; the last axis is a row of the mesh."""
    hardware = hardware_of(system)
    name = system.axis_levels[axes[0]]
    network = _entrance(hardware, name)
    memory = hardware.level(at).memory
    sides = [system.axes[axis] for axis in reversed(axes)]
    columns, rows = (*sides, 1)[:2]
    bandwidth = min(network.bandwidth, network.channel_width / 8)
    ports = [w for w in (memory.link_read_bandwidth, memory.link_write_bandwidth) if w]
    below = system.route(name, at)[1:]
    links = [_entrance(hardware, level) for level in below]
    return Fabric(
        "mesh",
        (columns, rows),
        latency=2.0 * sum(link.hop_latency + link.queuing_delay for link in links),
        hop=network.hop_latency + network.queuing_delay,
        bandwidth=min(bandwidth, *ports),
    )


def _entrance(hardware: Hardware, name: str) -> Network:
    """Return the network between the instances of a level, or that to its parent."""
    level = hardware.level(name)
    return level.link or hardware.network(level.parent or "", name)
