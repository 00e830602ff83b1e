"""
Energy of every node in the model `paper`.

A node spends energy in every execution on every instance. A transfer costs a read at
one end, a write at the other (once per receiving instance), and the network between.
The COMET tool takes the memories' energies of the wrong side, omits the first network
and counts one network for all instances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from comet.cost.accelerator.compute import primitive_energy
from comet.cost.accelerator.flow import Flow, Flows, leaf_steps
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.noc import mesh_bits_energy, phases
from comet.cost.accelerator.problem import Collective, Tile
from comet.cost.accelerator.visits import Visit, visits
from comet.cost.collectives.formulas import (
    CollectiveTraffic,
    link_network,
    memory_energy,
)
from comet.cost.reals import Real, Terms, Truth, add_to, choose, larger, times, total


@dataclass
class Energy:
    """The pJ of a mapping by level, by unit and operation, and by network."""

    mappings: Mappings
    hardware: Hardware
    flows: Flows
    networks: bool
    terms: dict[str, Terms] = field(default_factory=dict[str, Terms])
    """Energy of memories and units: by level, or by unit and operation."""
    every: Terms = field(default_factory=Terms)
    """The sum of all `terms`, in which equal arrays are multiplied once."""
    by_network: dict[str, Real] = field(default_factory=dict[str, Real])
    runs: dict[int, Real] = field(default_factory=dict[int, Real])
    """How often each node runs, by node index."""

    @property
    def total(self) -> Real:
        """The pJ of the whole mapping, networks included."""
        return total((self.without_networks, *self.by_network.values()))

    @property
    def without_networks(self) -> Real:
        """The pJ of memories and units."""
        return self.every.value

    @property
    def by_level(self) -> dict[str, Real]:
        """The pJ of memories and units, by level, or unit and operation."""
        return {name: terms.value for name, terms in self.terms.items()}

    def spend(self, name: str, value: Real, weight: Real) -> None:
        """Add `value` times `weight` pJ to what `name` spends."""
        self.terms.setdefault(name, Terms()).add(value, weight)
        self.every.add(value, weight)


def energies(
    mappings: Mappings,
    hardware: Hardware,
    flows: Flows,
    visited: Iterable[Visit] | None = None,
    *,
    networks: bool = True,
) -> Energy:
    """
    Return the energy of mappings, of which `flows` are known; networks are optional.

    `visited` are the nodes with their executions, if these are known, too.
    """
    state = Energy(mappings, hardware, flows, networks)
    for visit in visits(mappings, flows) if visited is None else visited:
        state.runs[visit.node.index] = visit.runs
        _visit(visit, lambda _: state)
    return state


def energies_by_cause(
    mappings: Mappings, hardware: Hardware, flows: Flows, *, networks: bool
) -> dict[str, Energy]:
    """
    Return the energy by tensor (its transfers and collectives) and by operation.

    Their sum is the result of `energies`.
    """
    states: dict[str, Energy] = {}

    def state_of(cause: str) -> Energy:
        empty = Energy(mappings, hardware, flows, networks)
        return states.setdefault(cause, empty)

    for visit in visits(mappings, flows):
        _visit(visit, state_of)
    return states


def _visit(visit: Visit, state_of: Callable[[str], Energy]) -> None:
    """Add the energy of a node to the states of its tensors and operations."""
    if isinstance(visit.node, Collective):
        _collective(state_of(visit.node.input), visit.node, visit)
        return
    for flow, moved in zip(visit.flows, visit.moved, strict=True):
        _transfer(state_of(flow.entry.tensor), flow, visit, moved)
    if isinstance(visit.node, Tile) and visit.node.is_leaf:
        _work(state_of(visit.node.leaf.operation), visit.node, visit)


@dataclass(frozen=True)
class Access:
    """The reads or the writes of a flow at one of its two levels."""

    level: str
    writes: bool
    reads_back: Truth
    """Whether the written tile was read before, to add to it."""
    tiles: Real
    """Tiles that are read or written at the same time, on one copy of the node."""
    energy: Real
    """pJ per byte."""


def accesses(hardware: Hardware, flow: Flow) -> Iterator[Access]:
    """
    Yield the accesses of a flow at its source, then at its destination.

    A unit has no memory, so its accesses are not counted.
    """
    entry = flow.entry
    network = hardware.network(entry.source, entry.destination)
    source = hardware.level(entry.source).memory
    supported = network.reduction if flow.writes else network.broadcast
    near = flow.unique if supported else larger(flow.unique, flow.spatial)
    back: Truth = flow.accumulates if flow.writes else False
    per_block: Real = (
        source.child_write_energy if flow.writes else source.child_read_energy
    )
    if back is not False:
        per_block = per_block + choose(back, source.child_read_energy, 0.0)
    yield Access(entry.source, flow.writes, back, near, per_block / source.width)
    destination = hardware.level(entry.destination)
    if destination.is_unit:
        return
    memory = destination.memory
    far = memory.parent_read_energy if flow.writes else memory.parent_write_energy
    per_byte = far / memory.width
    yield Access(entry.destination, not flow.writes, False, flow.spatial, per_byte)


def _transfer(state: Energy, flow: Flow, visit: Visit, moved: Real) -> None:
    hardware, entry = state.hardware, flow.entry
    for access in accesses(hardware, flow):
        weight = times(visit.copies, access.tiles * access.energy)
        state.spend(access.level, moved, weight)
    if hardware.level(entry.destination).is_unit or not state.networks:
        return
    network = hardware.network(entry.source, entry.destination)
    bits = flow.size * flow.element_bytes * 8
    wires = (
        visit.executions * flow.moves * mesh_bits_energy(network, bits, flow.spatial, 1)
    )
    add_to(state.by_network, f"{entry.destination}<->{entry.destination}", wires)


def _work(state: Energy, tile: Tile, visit: Visit) -> None:
    unit = state.hardware.level(tile.entries[0].destination)
    steps = leaf_steps(state.mappings, tile.leaf)
    count = visit.executions * visit.iterations * steps
    spent = primitive_energy(unit.unit, tile.leaf, state.mappings)
    state.spend(f"{unit.name}-{tile.leaf.operation}", count, spent)


def exchanges_of(visit: Visit, exchange: CollectiveTraffic) -> Real:
    """Return how often a collective runs: once per group of `sources` instances."""
    return visit.runs * np.maximum(visit.copies / exchange.sources, 1.0)


def _collective(state: Energy, node: Collective, visit: Visit) -> None:
    level = state.hardware.level(node.level)
    network = link_network(level)
    exchange = state.flows.exchanges[node.index]
    if exchange.sources == 1:
        return
    times = exchanges_of(visit, exchange)
    state.spend(level.name, times, memory_energy(exchange, level.memory, network))
    if not state.networks:
        return
    bits = exchange.read_bytes * 8
    wires = mesh_bits_energy(network, bits, exchange.sources, phases(node.kind))
    name = f"{level.name}<->{level.name}-{node.kind.upper()}"
    add_to(state.by_network, name, times * wires)
