"""
Reuse of tiles in the nodes below, and the use of their ports (COMET tool).

A tile that a node reuses over iterations need not be filled again below, which shortens
the windows of those iterations; a level with shared ports has less time for one side
while it serves the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from comet.cost.accelerator.bindings import Group
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.problem import Collective, Node, Tile
from comet.cost.accelerator.tool.levels import PortRecord, PortUsage, blank
from comet.cost.accelerator.tool.state import Latency
from comet.cost.accelerator.tool.streams import Cycles, Stream, u32


def record_ramps(state: Latency, tile: Tile, streams: list[Stream]) -> None:
    """Record the read ramps of the level (or levels) where their sum is largest."""
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
    recorded = state.ramps.setdefault(tile.index, {})
    for level, ramps in by_level.items():
        if sums[level] == largest:
            recorded.update(ramps)


def shrink(state: Latency, tile: Tile, group: Group, windows: Cycles) -> None:
    """
    Subtract from windows the ramps below of tensors that the node reuses.

    They need not be read again in the iterations that reuse them.
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
    """Subtract one member's ramps; return how many entries matched."""
    below = state.reuse.get(member.index, {})
    matched = 0
    for key, (reuse, _) in state.reuse[tile.index].items():
        if reuse == 1 or key not in below or below[key][1] != 1:
            continue
        matched += 1
        ramp = state.ramps.get(member.index, {}).get(key, 0)
        if ramp:
            first = windows[::reuse].copy()
            windows -= ramp
            windows &= 0xFFFFFFFF
            windows[::reuse] = first
    return matched


def port_usage(state: Latency, tile: Tile, group: Group) -> PortUsage:
    """
    Return the busy cycles of the ports below, on their other side, if any is shared.
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


def level_records(
    state: Latency, node: Node
) -> Iterator[tuple[str, tuple[PortRecord, PortRecord]]]:
    """All level records of a node, group by group."""
    if isinstance(node, Collective):
        ports = blank(1)
        for port in ports:
            port.busy = state.collectives[node.index].cycles
        yield node.level, ports
    for cost in state.groups.get(node.index, ()):
        yield from cost.records.items()


def _shares(hardware: Hardware, name: str) -> bool:
    level = hardware.level(name)
    return not level.is_unit and level.memory.shares_ports
