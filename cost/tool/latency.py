"""
Cycles of every node, from the leaves up, as the COMET tool counts them.

A leaf hides its transfers behind steps of its unit. A spatial node hides its own behind
one execution of each group of children; a temporal node adds up its children, or
overlaps them where bindings say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from comet.cost import collectives
from comet.cost.bindings import (
    Group,
    binding_kinds,
    binding_of,
    group_children,
    may_hide,
)
from comet.cost.compute import leaf_cycles
from comet.cost.estimate import CostError
from comet.cost.hardware import Hardware
from comet.cost.noc import mesh_used, network_cycles, network_energy, tabled_hops
from comet.cost.problem import BindingKind, Collective, Node, Problem, Tile
from comet.cost.tool.levels import (
    LevelRecords,
    NodeTotals,
    PortUsage,
    blank,
    fold_levels,
    merge_streams,
)
from comet.cost.tool.nest import CollectiveSizes, Nests, build_nests
from comet.cost.tool.streams import Cycles, Setting, Stream, make_stream, single, u32


@dataclass(frozen=True)
class GroupCost:
    """What one group of children costs a node."""

    group: Group
    records: LevelRecords
    totals: NodeTotals
    streams: tuple[Stream, ...] = ()


@dataclass(frozen=True)
class CollectiveCost:
    """What one execution of a collective costs."""

    cycles: int
    memory_energy: float
    network_energy: float


@dataclass
class Latency:
    """The cost of every node, by node index."""

    problem: Problem
    hardware: Hardware
    nests: Nests
    cycles: dict[int, int] = field(default_factory=dict[int, int])
    groups: dict[int, tuple[GroupCost, ...]] = field(
        default_factory=dict[int, "tuple[GroupCost, ...]"]
    )
    collectives: dict[int, CollectiveCost] = field(
        default_factory=dict[int, CollectiveCost]
    )
    ramps: dict[int, dict[tuple[str, str], int]] = field(
        default_factory=dict[int, "dict[tuple[str, str], int]"]
    )
    reuse: dict[int, dict[tuple[str, str], tuple[int, int]]] = field(
        default_factory=dict[int, "dict[tuple[str, str], tuple[int, int]]"]
    )
    """Reuse and moves of every entry of a spatial or leaf node."""

    def iterations(self, tile: Tile) -> int:
        """The largest iteration count among a node's entries."""
        return self.nests.iterations(tile)


def latencies(problem: Problem, hardware: Hardware) -> Latency:
    """The cost of every node; raises `CostError` where the tool has no answer."""
    state = Latency(problem, hardware, build_nests(problem, hardware))
    _visit(state, problem.root)
    return state


def _visit(state: Latency, node: Node) -> None:
    if isinstance(node, Collective):
        _collective(state, node)
    elif isinstance(node, Tile):
        _tile(state, node)


def _tile(state: Latency, tile: Tile) -> None:
    if tile.spatial or tile.is_leaf:
        movements = state.nests.movements[tile.index]
        state.reuse[tile.index] = {m.entry.key: (m.reuse, m.moves) for m in movements}
    for child in tile.children:
        _visit(state, child)
    if tile.is_leaf:
        _leaf(state, tile)
    elif tile.spatial:
        _spatial(state, tile)
    else:
        _temporal(state, tile)


def _leaf(state: Latency, tile: Tile) -> None:
    movements = state.nests.movements[tile.index]
    iterations = state.iterations(tile)
    uneven = len({m.iterations for m in movements}) > 1
    streams: list[Stream] = []
    for movement in movements:
        step = u32(
            leaf_cycles(
                state.hardware.level(movement.entry.destination).unit, tile.leaf
            )
        )
        windows = np.full(iterations, step, dtype=np.int64)
        streams.append(
            make_stream(
                state.hardware, movement, Setting(windows, step, 0, uneven), hidden=True
            )
        )
    _finish(state, tile, Group((tile.leaf,), fused=False), streams, {})
    state.cycles[tile.index] = state.groups[tile.index][0].totals.cycles


def _finish(
    state: Latency, tile: Tile, group: Group, streams: list[Stream], usage: PortUsage
) -> None:
    iterations = state.iterations(tile)
    records = merge_streams(state.hardware, streams, iterations, usage)
    cost = GroupCost(group, records, fold_levels(records, iterations), tuple(streams))
    state.groups[tile.index] = (*state.groups.get(tile.index, ()), cost)
    _record_ramps(state, tile, streams)


def _record_ramps(state: Latency, tile: Tile, streams: list[Stream]) -> None:
    """Remembers the read ramps of the level (or levels) where they add up to most."""
    by_level: dict[str, dict[tuple[str, str], int]] = {}
    for stream in streams:
        if not stream.movement.writes:
            by_level.setdefault(stream.source, {})[stream.movement.entry.key] = (
                stream.ramp_up
            )
    if not by_level:
        return
    sums = {level: u32(sum(ramps.values())) for level, ramps in by_level.items()}
    largest = max(sums.values())
    known = state.ramps.setdefault(tile.index, {})
    for level, ramps in by_level.items():
        if sums[level] == largest:
            known.update(ramps)


def _spatial(state: Latency, tile: Tile) -> None:
    groups = group_children(tile)
    if not groups:
        raise CostError(
            f"{tile.name} binds its children in parallel or by sharing only, which the "
            "COMET tool never finishes; pipeline some"
        )
    for group in groups:
        _spatial_group(state, tile, group)
    if all(kind is BindingKind.SEQUENTIAL for kind in binding_kinds(tile)):
        state.cycles[tile.index] = state.groups[tile.index][0].totals.cycles
    else:
        from comet.cost.tool.pipeline import pipeline_cycles

        state.cycles[tile.index] = pipeline_cycles(state, tile)


def _spatial_group(state: Latency, tile: Tile, group: Group) -> None:
    work = u32(sum(state.cycles[node.index] for node in group.members))
    windows = np.full(state.iterations(tile), work, dtype=np.int64)
    _shrink(state, tile, group, windows)
    movements = state.nests.movements[tile.index]
    setting = Setting(windows, None, work, len({m.iterations for m in movements}) > 1)
    own = binding_of(state.problem.parent.get(tile.index), tile)
    streams: list[Stream] = []
    for member in group.members:
        tags = (
            {member.tag}
            if isinstance(member, Collective)
            else {e.tag for e in _entries(member)}
        )
        for movement in movements:
            if movement.entry.tag not in tags:
                continue
            hidden = may_hide(member, group, own, dependent=movement.dependent)
            streams.append(make_stream(state.hardware, movement, setting, hidden))
    if not streams and not group.fused:
        _compute_only(state, tile, group, work)
        return
    _finish(state, tile, group, streams, _usage(state, tile, group))


def _entries(node: Node):
    return node.entries if isinstance(node, Tile) else ()


def _compute_only(state: Latency, tile: Tile, group: Group, work: int) -> None:
    """
    A child that no stream feeds still takes its time, on both ports of the level above
    it.
    """
    member = group.members[0]
    levels = (
        {member.level}
        if isinstance(member, Collective)
        else {e.source for e in _entries(member)}
    )
    fed = [e.source for e in tile.entries if e.destination in levels]
    iterations = state.iterations(tile)
    ports = blank(iterations)
    for port in ports:
        port.compute = u32(iterations * work)
    records = {fed[-1] if fed else tile.entries[-1].source: ports}
    state.groups[tile.index] = (
        *state.groups.get(tile.index, ()),
        GroupCost(group, records, fold_levels(records, iterations)),
    )


def _shrink(state: Latency, tile: Tile, group: Group, windows: Cycles) -> None:
    """
    A tensor that the node reuses need not be filled again below: its ramp leaves the
    windows of reused iterations.
    """
    if group.fused:
        for member in group.members:
            _shrink_by(state, tile, member, windows)
        return
    member = group.members[0]
    if not isinstance(member, Tile):
        return
    if member.is_leaf:
        _shrink_by(state, tile, member, windows)
        return
    for child in member.children:
        for _ in range(_shrink_by(state, tile, child, windows)):
            for grandchild in child.children if isinstance(child, Tile) else ():
                _shrink_by(state, tile, grandchild, windows)


def _shrink_by(state: Latency, tile: Tile, member: Node, windows: Cycles) -> int:
    """Shrinks by one member's ramps; returns how many entries matched."""
    below = state.reuse.get(member.index, {})
    matched = 0
    for key, (reuse, _) in state.reuse[tile.index].items():
        if reuse == 1 or key not in below or below[key][1] != 1:
            continue
        matched += 1
        ramp = state.ramps.get(member.index, {}).get(key, 0)
        reused = np.arange(len(windows)) % reuse != 0
        windows[reused] = (windows[reused] - ramp) & 0xFFFFFFFF
    return matched


def _usage(state: Latency, tile: Tile, group: Group) -> PortUsage:
    """
    Cycles the ports of the levels below are busy on their other side, if any of them is
    shared.
    """
    if not any(_shares(state.hardware, e.destination) for e in tile.entries):
        return {}
    nodes: tuple[Node, ...] = group.members
    if not group.fused and isinstance(nodes[0], Tile) and not nodes[0].is_leaf:
        nodes = nodes[0].children
    usage: dict[tuple[str, int], int] = {}
    for node in nodes:
        for level, ports in level_records(state, node):
            usage[level, 1] = u32(
                usage.get((level, 1), 0) + ports[0].busy + ports[0].ramp_up
            )
            usage[level, 0] = u32(
                usage.get((level, 0), 0) + ports[1].busy + ports[1].ramp_down
            )
    return usage


def level_records(state: Latency, node: Node):
    """All level records of a node, group by group."""
    if isinstance(node, Collective):
        ports = blank(1)
        for port in ports:
            port.busy = state.collectives[node.index].cycles
        return [(node.level, ports)]
    return [
        item
        for cost in state.groups.get(node.index, ())
        for item in cost.records.items()
    ]


def _shares(hardware: Hardware, name: str) -> bool:
    level = hardware.level(name)
    return not level.is_unit and level.memory.shares_ports


def _temporal(state: Latency, tile: Tile) -> None:
    kinds = binding_kinds(tile)
    if not kinds:
        state.cycles[tile.index] = state.cycles.get(tile.children[-1].index, 0)
        return
    iterations = state.iterations(tile)
    for group in group_children(tile):
        for node in group.members:
            if isinstance(node, Collective):
                ports = blank(iterations)
                for port in ports:
                    port.busy = port.compute = u32(
                        iterations * state.cycles[node.index]
                    )
                records = {node.level: ports}
                own = GroupCost(
                    Group((node,), group.fused),
                    records,
                    fold_levels(records, iterations),
                )
                state.groups[tile.index] = (*state.groups.get(tile.index, ()), own)
    if BindingKind.SEQUENTIAL in kinds:
        charged = {
            cost.group.members[0].index: cost.totals.compute
            for cost in state.groups.get(tile.index, ())
        }
        state.cycles[tile.index] = u32(
            sum(
                charged.get(c.index, 0)
                if isinstance(c, Collective)
                else state.cycles[c.index]
                for c in tile.children
            )
        )
        return
    from comet.cost.tool.pipeline import pipeline_cycles

    state.cycles[tile.index] = pipeline_cycles(state, tile)


def _collective(state: Latency, node: Collective) -> None:
    level = state.hardware.level(node.level)
    network = collectives.link_network(level)
    sizes = state.nests.collectives[node.index]
    exchange = exchange_of(node, sizes)
    memory = int(collectives.memory_cycles(exchange, level.memory, network))
    hop, energy = 0, 0.0
    if sizes.sources > 1:
        mesh = mesh_used(network, sizes.sources)
        hops = tabled_hops(mesh)
        bits = node.bits / 8
        cycles = network_cycles(
            node.kind,
            network,
            hops,
            sizes.read,
            sizes.sources,
            bits,
            explicit=True,
            reduces=node.reduction is not None,
            real=single,
        )
        hop = int(cycles)
        energy = network_energy(
            node.kind,
            network,
            mesh,
            hops,
            sizes.read,
            sizes.sources,
            bits,
            explicit=True,
            reduction=node.reduction,
        )
    state.cycles[node.index] = u32(memory + hop)
    stored = collectives.memory_energy(exchange, level.memory, network)
    state.collectives[node.index] = CollectiveCost(memory + hop, stored, energy)


def exchange_of(node: Collective, sizes: CollectiveSizes) -> collectives.Exchange:
    """A collective node in numbers."""
    element_bytes = node.bits / 8
    factor = node.spatial_factor or sizes.sources
    return collectives.Exchange(
        node.kind,
        sizes.read * element_bytes,
        sizes.written * element_bytes,
        sizes.sources,
        sizes.destinations,
        factor,
    )


def node_cycles(state: Latency) -> Mapping[str, int]:
    """
    Cycles of one execution of every node, by the node's name in the tool's report.
    """
    return {
        n.name: state.cycles.get(n.index, 0)
        for n in state.problem.nodes
        if not hasattr(n, "primitive")
    }
