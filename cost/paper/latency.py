"""
Cycles of every node under the mended model, from the leaves up.

Differences from the COMET tool, each a mend that docs/cost-model.md lists: iterations of
a temporal node count whether or not a spatial node stands below it; reads and writes of a
level combine by maximum; pipelines pass every stage once and repeat the longest; siblings
that overlap share ports and units.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from comet.cost.bindings import Group, binding_of, lanes_of, may_overlap
from comet.cost.collectives import exchange_cycles
from comet.cost.compute import primitive_cycles
from comet.cost.flow import Flow, Flows, Mappings, Real, build_flows, leaf_steps
from comet.cost.hardware import Hardware
from comet.cost.paper.nest import (
    READ,
    NestCost,
    Ports,
    Stream,
    add_ports,
    nest_cost,
    stream_of,
)
from comet.cost.problem import Collective, Leaf, Node, Tile


@dataclass(frozen=True)
class Fill:
    """The first read of one stream of a node, which a reuse above may make needless."""

    key: tuple[str, str]
    level: str
    cycles: Real
    once: Real
    """1 where the node reads the tile once per execution, else 0."""


@dataclass(frozen=True)
class NodeCost:
    """One execution of a node, in cycles; the three parts add up to `cycles`."""

    cycles: Real
    window: Real
    """Work of units that nothing else delays."""
    compulsory: Real
    optional: Real
    ports: Ports
    """Busy cycles of the ports this node's own transfers use."""
    busy: Ports
    """Busy cycles of all ports and units in the subtree."""
    fills: tuple[tuple[Fill, ...], ...] = ()
    """The first reads of the nodes right below, one tuple per node."""


@dataclass
class Latency:
    """The cost of every node of a template, by node index."""

    mappings: Mappings
    hardware: Hardware
    flows: Flows
    nodes: dict[int, NodeCost] = field(default_factory=dict[int, NodeCost])
    nests: dict[int, list[NestCost]] = field(default_factory=dict[int, list[NestCost]])
    """The node's own transfers, one entry per group of children."""

    def own(self, index: int, nest: NestCost) -> None:
        """Keeps the nest of one group of a node's children."""
        self.nests.setdefault(index, []).append(nest)


def latencies(mappings: Mappings, hardware: Hardware) -> Latency:
    """The cost of every node; raises `CostError` where the mapping cannot be priced."""
    state = Latency(mappings, hardware, build_flows(mappings))
    _visit(state, mappings.template.root)
    return state


def _visit(state: Latency, node: Node) -> None:
    if isinstance(node, Collective):
        state.nodes[node.index] = _collective(state, node)
    elif isinstance(node, Tile):
        for child in node.children:
            _visit(state, child)
        if node.is_leaf:
            state.nodes[node.index] = _leaf(state, node)
        elif node.spatial:
            state.nodes[node.index] = _spatial(state, node)
        else:
            state.nodes[node.index] = _temporal(state, node)


def _collective(state: Latency, node: Collective) -> NodeCost:
    cycles = exchange_cycles(state.hardware, node, input_tile(state, node))
    ports = {(node.level, 0): cycles, (node.level, 1): cycles}
    return NodeCost(cycles, 0.0, cycles, 0.0, ports, ports)


def input_tile(state: Latency, node: Collective) -> Flow:
    """The flow whose tile, above its node's loops, a collective exchanges."""
    found: Flow | None = None
    problem = state.mappings.template
    for tile in _before(problem.root, node):
        for place, flow in enumerate(state.flows.flows[tile.index]):
            if flow.entry.tensor == node.input and flow.entry.source == node.level:
                extents = state.flows.tiles[tile.index][place]
                found = _whole(state, flow, extents)
    if found is None:
        raise_missing(node)
    return found


def _leaf(state: Latency, tile: Tile) -> NodeCost:
    leaf = tile.leaf
    flows = state.flows.flows[tile.index]
    unit = state.hardware.level(tile.entries[0].destination)
    step = primitive_cycles(unit.unit, leaf, state.mappings)
    work = state.flows.iterations(tile) * leaf_steps(state.mappings, leaf) * step
    streams = [stream_of(state.hardware, flow, hidden=True) for flow in flows]
    nest = nest_cost(streams, state.flows.iterations(tile), work, {})
    state.own(tile.index, nest)
    return _loop(streams, nest, [], {(unit.name, READ): work}, 1.0)
