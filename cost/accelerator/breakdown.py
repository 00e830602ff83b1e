"""
The parts of the latency and of the energy of one mapping, under `paper` or `ideal`.

The terms of the latency add up to it, and so do the energies of levels and causes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from comet.cost.accelerator.capacity import Occupancy, limited, live_occupancy
from comet.cost.accelerator.flow import Flows, build_flows
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.ideal import Component, IdealCost, ideal_cost
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.paper.energy import (
    accesses,
    energies_by_cause,
    exchanges_of,
)
from comet.cost.accelerator.paper.latency import latencies
from comet.cost.accelerator.problem import Collective, Problem, Tile
from comet.cost.accelerator.visits import Visit, visits
from comet.cost.collectives.formulas import access_tiles, link_network, written_tile
from comet.cost.estimate import ModelName
from comet.cost.reals import Real, add_to

WORK, READS, WRITES = "compute", "first reads", "last writes"
DEPENDENT, LONG, NETWORK = "dependent transfers", "long transfers", "network delays"
EXPOSED, HIDDEN = "collectives, exposed", "collectives, hidden"
OVERLAP = "overlap"

MEANINGS = {
    WORK: "units work",
    READS: "the first tiles of a node arrive (ramp)",
    WRITES: "the last tiles of a node leave (ramp)",
    DEPENDENT: "tiles move between a producer and its consumer, which wait for them",
    LONG: "transfers take longer than the work beside them",
    NETWORK: "routers and queues of networks make all of this longer",
    EXPOSED: "collectives; the run would be that much shorter without them",
    HIDDEN: "collectives beside transfers or work that would take as long without them",
    OVERLAP: "nodes run at the same time, so that the terms above count time twice",
}
"""The terms of the latency under `paper`, in order, and what happens in the time."""


@dataclass(frozen=True)
class Term:
    """A part of the latency."""

    name: str
    cycles: float
    """Negative for what overlaps."""
    meaning: str


@dataclass(frozen=True)
class Traffic:
    """Reads and writes of a tensor at a memory level, summed over all instances."""

    level: str
    tensor: str
    read: float
    """Bytes."""
    written: float
    """Bytes."""
    energy: float
    """pJ of these accesses, by the level's energy per byte."""


@dataclass(frozen=True)
class Breakdown:
    """The parts of the costs of one mapping."""

    terms: tuple[Term, ...]
    """They add up to the latency."""
    busy: Mapping[Component, float]
    """Cycles that each component needs at least; they overlap."""
    traffic: tuple[Traffic, ...]
    energy: Mapping[str, Mapping[str, float]]
    """
    pJ by level, unit or network, as in `Estimate.energy_by_level`, then by tensor or
    operation.
    """
    occupancy: tuple[Occupancy, ...]
    """The largest demand of each level that has a capacity."""


def breakdown(problem: Problem, hardware: Hardware, model: ModelName) -> Breakdown:
    """
    Return the parts of the costs of a mapping, for the models `paper` and `ideal`.

    Raises `CostError` as `build_flows` does.
    """
    mappings = Mappings(problem)
    flows = build_flows(mappings, hardware)
    ideal = ideal_cost(mappings, hardware, flows)
    return Breakdown(
        _slowest(ideal) if model == "ideal" else _terms(mappings, hardware, flows),
        {part: float(cycles) for part, cycles in ideal.total_busy.items()},
        tuple(_traffic(mappings, hardware, flows)),
        _energy(mappings, hardware, flows, networks=model != "ideal"),
        _largest(problem, hardware, flows),
    )


def _slowest(ideal: IdealCost) -> tuple[Term, ...]:
    """The terms of `ideal`: for every operation its slowest component."""
    sums: dict[Component, Real] = {}
    for parts in ideal.busy.values():
        add_to(sums, *max(parts.items(), key=lambda item: float(item[1])))
    return tuple(
        Term(" ".join(part), float(cycles), "the slowest component of some operations")
        for part, cycles in sums.items()
    )


def _terms(mappings: Mappings, hardware: Hardware, flows: Flows) -> tuple[Term, ...]:
    """
    The terms of `paper`: those of a machine without network delays, and the delays.

    A term is the sum over nodes of the cycles of one execution, times the executions.
    The last term makes the sum the latency if nodes overlap.
    """
    cycles = float(latencies(mappings, hardware, flows).root.cycles)
    quick = without_delays(hardware)
    latency = latencies(mappings, quick, flows)
    silent = latencies(mappings, quick, flows, collectives=False)
    sums = dict.fromkeys(MEANINGS, 0.0)
    for visit in visits(mappings, flows):
        runs, node = float(visit.runs), visit.node
        if isinstance(node, Collective):
            sums[HIDDEN] += runs * float(latency.nodes[node.index].cycles)
        for nest in latency.nests.get(node.index, ()):
            if isinstance(node, Tile) and node.is_leaf:
                sums[WORK] += runs * float(nest.work)
            sums[READS] += runs * float(nest.fill - nest.saved)
            sums[WRITES] += runs * float(nest.drain)
            sums[DEPENDENT] += runs * float(nest.forced)
            sums[LONG] += runs * float(nest.stalls)
    sums[EXPOSED] = float(latency.root.cycles - silent.root.cycles)
    sums[HIDDEN] -= sums[EXPOSED]
    sums[NETWORK] = cycles - float(latency.root.cycles)
    sums[OVERLAP] = cycles - sum(sums.values())
    return tuple(Term(name, sums[name], text) for name, text in MEANINGS.items())


def without_delays(hardware: Hardware) -> Hardware:
    """Return the machine whose networks have neither hop latency nor queues."""
    networks = {
        ends: replace(network, hop_latency=0, queuing_delay=0)
        for ends, network in hardware.networks.items()
    }
    return replace(hardware, networks=networks)


def _traffic(mappings: Mappings, hardware: Hardware, flows: Flows) -> Iterator[Traffic]:
    """Yield the traffic of each level and tensor, in the order of levels."""
    sums: dict[tuple[str, str], Traffic] = {}
    for visit in visits(mappings, flows):
        for part in _accessed(hardware, flows, visit):
            key = part.level, part.tensor
            sums[key] = _sum(sums[key], part) if key in sums else part
    yield from sorted(sums.values(), key=lambda part: hardware.rank[part.level])


def _sum(first: Traffic, second: Traffic) -> Traffic:
    return replace(
        first,
        read=first.read + second.read,
        written=first.written + second.written,
        energy=first.energy + second.energy,
    )


def _accessed(hardware: Hardware, flows: Flows, visit: Visit) -> Iterator[Traffic]:
    """Yield the reads and writes of one node, in all its executions."""
    if isinstance(visit.node, Collective):
        yield from _exchanged(hardware, flows, visit, visit.node)
    for flow, moved in zip(visit.flows, visit.moved, strict=True):
        for access in accesses(hardware, flow):
            size = float(moved * visit.copies * access.tiles)
            yield Traffic(
                access.level,
                flow.entry.tensor,
                size if access.reads_back or not access.writes else 0.0,
                size if access.writes else 0.0,
                size * float(access.energy),
            )


def _exchanged(
    hardware: Hardware, flows: Flows, visit: Visit, node: Collective
) -> Iterator[Traffic]:
    level, exchange = hardware.level(node.level), flows.exchanges[node.index]
    if exchange.sources == 1:
        return
    memory, count = level.memory, float(exchanges_of(visit, exchange))
    reads, writes = access_tiles(exchange, link_network(level))
    read = count * reads * float(exchange.read_bytes)
    written = count * writes * float(written_tile(exchange))
    spent = read * memory.child_read_energy + written * memory.child_write_energy
    yield Traffic(level.name, node.input, read, written, spent / memory.width)


def _energy(
    mappings: Mappings, hardware: Hardware, flows: Flows, *, networks: bool
) -> dict[str, dict[str, float]]:
    """pJ by level, unit or network, then by tensor or operation."""
    table: dict[str, dict[str, float]] = {}
    spent = energies_by_cause(mappings, hardware, flows, networks=networks)
    for cause, energy in spent.items():
        for name, value in {**energy.by_level, **energy.by_network}.items():
            table.setdefault(name, {})[cause] = float(value)
    return table


def _largest(
    problem: Problem, hardware: Hardware, flows: Flows
) -> tuple[Occupancy, ...]:
    """The largest demand of each level that has a capacity, in the order of levels."""
    largest: dict[str, Occupancy] = {}
    for demand, _ in limited(live_occupancy(problem, flows.tiles), hardware):
        previous = largest.get(demand.level)
        if previous is None or float(demand.total) > float(previous.total):
            largest[demand.level] = demand
    return tuple(
        sorted(largest.values(), key=lambda demand: hardware.rank[demand.level])
    )
