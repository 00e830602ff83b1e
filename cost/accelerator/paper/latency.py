"""
Cycles of every node in the model `paper`, from the leaves up.

Differences from the COMET tool, all listed in docs/cost-model.md: iterations of a
temporal node count with or without a spatial node below it; reads and writes of a level
combine by maximum; pipelines pass every stage once and repeat the longest; siblings
that overlap share ports and units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from comet.cost.accelerator.bindings import (
    Group,
    binding_of,
    lanes_of,
    may_hide,
    tags_of,
)
from comet.cost.accelerator.compute import primitive_cycles
from comet.cost.accelerator.flow import Flows, leaf_steps
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.paper.fills import (
    Fills,
    fills_of,
    most_saved,
    nested_fills,
    saved_cycles,
)
from comet.cost.accelerator.paper.nest import (
    READ,
    NestCost,
    Ports,
    Stream,
    add_ports,
    nest_cost,
    stream_of,
    used_ports,
)
from comet.cost.accelerator.problem import Collective, Leaf, Node, Tile
from comet.cost.collectives.formulas import exchange_cycles
from comet.cost.reals import Real, add_to, longest, total


@dataclass(frozen=True)
class NodeCost:
    """One execution of a node, in cycles; the last three parts add up to `cycles`."""

    cycles: Real
    window: Real
    """Work of units."""
    compulsory: Real
    """Fill, drain, collectives, and transfers that may not overlap."""
    optional: Real
    """Transfers that outlast the work they overlap."""
    ports: Ports
    """Busy cycles of the ports that the nodes directly below a memory level use."""
    busy: Ports
    """Busy cycles of all ports and units in the subtree."""
    fills: tuple[Fills, ...] = ()
    """First reads that reuse in nodes above may save, one tuple per node."""
    savable: Real | None = None
    """The cycles that reuse saves at most; None if it saves all first reads in full."""

    def times(self, count: Real) -> NodeCost:
        """Return the cost of `count` executions, one after the other."""
        return NodeCost(
            self.cycles * count,
            self.window * count,
            self.compulsory * count,
            self.optional * count,
            add_ports([(self.ports, count)]),
            add_ports([(self.busy, count)]),
            self.fills,
        )

    @property
    def most_saved(self) -> Real:
        """The cycles that reuse in nodes above saves at most."""
        return most_saved(self.fills) if self.savable is None else self.savable


@dataclass
class Latency:
    """The cost of every node of a template, by node index."""

    mappings: Mappings
    hardware: Hardware
    flows: Flows
    nodes: dict[int, NodeCost] = field(default_factory=dict[int, NodeCost])
    nests: dict[int, list[NestCost]] = field(default_factory=dict[int, list[NestCost]])
    """The transfers of each node, one entry per group of children."""
    collectives: bool = True
    """Whether collectives take time."""

    @property
    def root(self) -> NodeCost:
        """The cost of the whole mapping."""
        return self.nodes[self.mappings.template.root.index]


def latencies(
    mappings: Mappings, hardware: Hardware, flows: Flows, *, collectives: bool = True
) -> Latency:
    """
    Return the cost of every node; without `collectives` these take no time.

    Raises `CostError` if the mapping cannot be priced.
    """
    state = Latency(mappings, hardware, flows, collectives=collectives)
    visit_nodes(state, mappings.template.root)
    return state


def visit_nodes(state: Latency, node: Node) -> None:
    """Add the cost of a node and of those below it to `state`."""
    match node:
        case Leaf():
            return
        case Collective():
            state.nodes[node.index] = collective_cost(state, node)
        case Tile():
            for child in node.children:
                visit_nodes(state, child)
            visit = _leaf if node.is_leaf else _inner
            state.nodes[node.index] = visit(state, node)


def collective_cost(state: Latency, node: Collective) -> NodeCost:
    level = state.hardware.level(node.level)
    exchange, reduces = state.flows.exchanges[node.index], node.reduction is not None
    cycles: Real = 0.0
    if state.collectives:
        cycles = exchange_cycles(exchange, level, node.bits / 8, reduces=reduces)
    ports = {(node.level, 0): cycles, (node.level, 1): cycles}
    return NodeCost(cycles, 0.0, cycles, 0.0, ports, ports)


def _leaf(state: Latency, tile: Tile) -> NodeCost:
    unit = state.hardware.level(tile.entries[0].destination)
    step = primitive_cycles(unit.unit, tile.leaf, state.mappings)
    iterations = state.flows.iterations(tile)
    work = iterations * leaf_steps(state.mappings, tile.leaf) * step
    flows = state.flows.flows[tile.index]
    streams = [stream_of(state.hardware, flow, hidden=True) for flow in flows]
    nest = nest_cost(state.hardware, streams, iterations, work, {})
    state.nests.setdefault(tile.index, []).append(nest)
    ports = used_ports(streams)
    busy = add_ports([(ports, 1.0), ({(unit.name, READ): work}, 1.0)])
    compulsory = nest.fill + nest.drain + nest.forced
    return NodeCost(
        nest.cycles, work, compulsory, nest.stalls, ports, busy, (fills_of(streams),)
    )


def _inner(state: Latency, tile: Tile) -> NodeCost:
    """
    A node with lanes of groups; lanes run in parallel, a lane's groups in a pipeline.
    """
    iterations = state.flows.iterations(tile)
    lanes = [
        [_group(state, tile, group, iterations) for group in lane]
        for lane in lanes_of(tile)
    ]
    if len(lanes) == 1 and len(lanes[0]) == 1:
        return lanes[0][0]
    return _overlap(state.hardware, lanes, iterations)


def _group(state: Latency, tile: Tile, group: Group, iterations: Real) -> NodeCost:
    if tile.spatial:
        return _repeated(state, tile, group, iterations)
    parts = [_member(state, tile, node, iterations) for node in group.members]
    return _one_after_other(parts)


def _member(state: Latency, tile: Tile, node: Node, iterations: Real) -> NodeCost:
    """
    Return the cost of all iterations of a child of a temporal node.

    A spatial child iterates itself, so they are in its cost.
    """
    if isinstance(node, Tile) and node.spatial:
        return state.nodes[node.index]
    if isinstance(node, Collective):
        return state.nodes[node.index].times(iterations)
    return _repeated(state, tile, Group((node,), fused=False), iterations)


def _one_after_other(parts: Sequence[NodeCost]) -> NodeCost:
    overlap = any(part.savable is not None for part in parts)
    return NodeCost(
        total(p.cycles for p in parts),
        total(p.window for p in parts),
        total(p.compulsory for p in parts),
        total(p.optional for p in parts),
        add_ports([(p.ports, 1.0) for p in parts]),
        add_ports([(p.busy, 1.0) for p in parts]),
        tuple(fills for p in parts for fills in p.fills),
        total(p.most_saved for p in parts) if overlap else None,
    )


def _repeated(state: Latency, tile: Tile, group: Group, iterations: Real) -> NodeCost:
    """Return the cost of a group of children with the node's transfers for them."""
    once = _one_after_other([state.nodes[node.index] for node in group.members])
    streams = group_streams(state, tile, group)
    node_fills, nested = fills_of(streams), nested_fills(streams, once.fills)
    saved, savable = saved_cycles(streams, once.fills, iterations), once.savable
    if savable is not None:
        saved = np.minimum(saved, (iterations - 1) * savable)
        savable = most_saved((node_fills,)) + np.minimum(most_saved(nested), savable)
    work = iterations * once.cycles - saved
    nest = nest_cost(
        state.hardware, streams, iterations, work, _shared(state, once.ports)
    )
    state.nests.setdefault(tile.index, []).append(replace(nest, saved=saved))
    ports = used_ports(streams)
    ramps = nest.fill + nest.drain + nest.forced
    return NodeCost(
        nest.cycles,
        iterations * once.window,
        iterations * once.compulsory - saved + ramps,
        iterations * once.optional + nest.stalls,
        ports,
        add_ports([(ports, 1.0), (once.busy, iterations)]),
        (node_fills, *nested),
        savable,
    )


def group_streams(state: Latency, tile: Tile, group: Group) -> list[Stream]:
    """The node's flows to the group: those with a tag of one of its members."""
    binding = binding_of(state.mappings.template.parent.get(tile.index), tile)
    streams: list[Stream] = []
    seen: set[tuple[str, str]] = set()
    for member in group.members:
        tags = tags_of(member)
        for flow in state.flows.flows[tile.index]:
            if flow.entry.tag in tags and flow.entry.key not in seen:
                seen.add(flow.entry.key)
                hidden = may_hide(member, group, binding, dependent=flow.dependent)
                streams.append(stream_of(state.hardware, flow, hidden=hidden))
    return streams


def _shared(state: Latency, below: Ports) -> Ports:
    """Return the busy cycles per iteration of the ports that both sides share."""
    return {
        (level, 1 - port): busy
        for (level, port), busy in below.items()
        if not state.hardware.level(level).is_unit
        and state.hardware.level(level).memory.shares_ports
    }


def _overlap(
    hardware: Hardware, lanes: Sequence[Sequence[NodeCost]], iterations: Real
) -> NodeCost:
    """
    Return the cost of lanes in parallel, each a pipeline of its groups.

    A lane takes one iteration of every stage and repeats the longest. The sum takes at
    least as long as the busiest port, bus or unit that the groups share. First reads
    that other groups hide are not saved by reuse: what is left is that of lanes whose
    stages have none, or the busiest unit.
    """
    groups = [group for lane in lanes for group in lane]
    busy = add_ports([(g.busy, 1.0) for g in groups])
    lanes_take = longest(
        pipelined([stage.cycles for stage in lane], iterations) for lane in lanes
    )
    longest_possible = total(group.cycles for group in groups)
    # A collective counts at both ports, so the bus may seem busy for longer than that.
    bus = np.minimum(_busiest_bus(hardware, busy), longest_possible)
    cycles = np.maximum(np.maximum(lanes_take, longest(busy.values())), bus)
    window, compulsory = _of_slowest(groups)
    without = (
        pipelined([stage.cycles - stage.most_saved for stage in lane], iterations)
        for lane in lanes
    )
    work = (
        unit_cycles
        for (name, _), unit_cycles in busy.items()
        if hardware.level(name).is_unit
    )
    return NodeCost(
        cycles,
        window,
        compulsory,
        cycles - window - compulsory,
        add_ports([(g.ports, 1.0) for g in groups]),
        busy,
        tuple(fills for g in groups for fills in g.fills),
        cycles - longest((*without, *work)),
    )


def _of_slowest(groups: Sequence[NodeCost]) -> tuple[Real, Real]:
    """Return the window and the compulsory cycles of the group with most cycles."""
    first = groups[0]
    slowest, window, compulsory = first.cycles, first.window, first.compulsory
    for group in groups[1:]:
        longer = np.greater(group.cycles, slowest)
        slowest = np.where(longer, group.cycles, slowest)
        window = np.where(longer, group.window, window)
        compulsory = np.where(longer, group.compulsory, compulsory)
    return window, compulsory


def _busiest_bus(hardware: Hardware, busy: Ports) -> Real:
    """Return the cycles of the busiest memory that reads and writes on one bus."""
    buses: dict[str, Real] = {}
    for (name, _), cycles in busy.items():
        level = hardware.level(name)
        if not level.is_unit and level.memory.one_bus:
            add_to(buses, name, cycles)
    return longest((0.0, *buses.values()))


def pipelined(stages: Sequence[Real], iterations: Real) -> Real:
    """Return the cycles of stages, each given by those of all its iterations."""
    once = [cycles / iterations for cycles in stages]
    return total(once) + (iterations - 1) * longest(once)
