"""
Energy of every node under the mended model.

A node spends for every execution on every instance. A transfer costs a read at one end, a
write at the other (once per instance that gets a tile), and the network between; the
COMET tool takes the memories' energies for the wrong side, forgets the first network and
counts one network for all instances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from comet.cost.collectives import link_network, memory_energy
from comet.cost.compute import primitive_energy
from comet.cost.flow import Flow, Real, leaf_steps
from comet.cost.noc import mesh_bits_energy, phases
from comet.cost.paper.latency import Latency
from comet.cost.problem import Collective, Node, Tile


@dataclass
class Energy:
    """The pJ of a mapping by level, unit and operation, and network."""

    latency: Latency
    by_level: dict[str, Real] = field(default_factory=dict[str, Real])
    runs: dict[int, Real] = field(default_factory=dict[int, Real])
    """How often each node runs, by node index."""

    @property
    def total(self) -> Real:
        """The pJ of the whole mapping."""
        total: Real = 0.0
        for value in self.by_level.values():
            total = total + value
        return total

    def add(self, name: str, energy: Real) -> None:
        """Adds to a level, unit or network."""
        self.by_level[name] = self.by_level.get(name, 0.0) + energy


def energies(latency: Latency) -> Energy:
    """The energy of a mapping whose latencies are known."""
    state = Energy(latency)
    _visit(state, latency.mappings.template.root, 1.0, 1.0)
    return state


def _visit(state: Energy, node: Node, runs: Real, copies: Real) -> None:
    state.runs[node.index] = runs
    if isinstance(node, Collective):
        _collective(state, node, runs, copies)
    elif isinstance(node, Tile):
        _tile(state, node, runs, copies)


def _tile(state: Energy, tile: Tile, runs: Real, copies: Real) -> None:
    iterations = state.latency.flows.iterations(tile)
    spread: Real = 1.0
    for flow in _charged(state, tile):
        _transfer(state, flow, runs * copies)
        spread = np.maximum(spread, flow.spatial)
    if tile.is_leaf:
        _work(state, tile, runs * copies * iterations)
        return
    for child in tile.children:
        inherits = not tile.spatial and isinstance(child, Tile) and child.spatial
        _visit(state, child, runs * (1.0 if inherits else iterations), copies * spread)


def _charged(state: Energy, tile: Tile) -> list[Flow]:
    """The entries that really move: of temporal nodes those no spatial child moves."""
    flows = state.latency.flows.flows[tile.index]
    if tile.spatial or tile.is_leaf:
        return list(flows)
    bare = [c for c in tile.children if isinstance(c, Tile) and not c.spatial]
    tags = {entry.tag for child in bare for entry in child.entries}
    return [flow for flow in flows if flow.entry.tag in tags]


def _transfer(state: Energy, flow: Flow, runs: Real) -> None:
    hardware, entry = state.latency.hardware, flow.entry
    network = hardware.network(entry.source, entry.destination)
    source = hardware.level(entry.source).memory
    supported = network.reduction if flow.writes else network.broadcast
    near = flow.unique if supported else np.maximum(flow.unique, flow.spatial)
    moved = runs * flow.moves * flow.size * flow.element_bytes
    if flow.writes:
        per_block = source.child_write_energy
        per_block += source.child_read_energy if entry.accumulates else 0
    else:
        per_block = source.child_read_energy
    state.add(entry.source, moved * near * per_block / source.width)
    destination = hardware.level(entry.destination)
    if not destination.is_unit:
        memory = destination.memory
        far = memory.parent_read_energy if flow.writes else memory.parent_write_energy
        state.add(entry.destination, moved * flow.spatial * far / memory.width)
        bits = flow.size * flow.element_bytes * 8
        wires = mesh_bits_energy(network, bits, flow.spatial, 1)
        name = f"{entry.destination}<->{entry.destination}"
        state.add(name, runs * flow.moves * wires)


def _work(state: Energy, tile: Tile, runs: Real) -> None:
    mappings = state.latency.mappings
    unit = state.latency.hardware.level(tile.entries[0].destination)
    count = runs * leaf_steps(mappings, tile.leaf)
    spent = count * primitive_energy(unit.unit, tile.leaf, mappings)
    state.add(f"{unit.name}-{tile.leaf.operation}", spent)


def _collective(state: Energy, node: Collective, runs: Real, copies: Real) -> None:
    """As many exchanges as the instances in use make groups of sources."""
    level = state.latency.hardware.level(node.level)
    network = link_network(level)
    exchange = state.latency.flows.exchanges[node.index]
    if exchange.sources == 1:
        return
    members = math.prod(
        state.latency.hardware.level(name).instances for name in node.sources
    )
    times = runs * np.maximum(copies / members, 1.0)
    state.add(level.name, times * memory_energy(exchange, level.memory, network))
    wires = mesh_bits_energy(
        network, exchange.read_bytes * 8, exchange.sources, phases(node.kind)
    )
    name = f"{level.name}<->{level.name}-{node.kind.value.upper()}"
    state.add(name, times * wires)
