"""
Cycles of every node, from the leaves up, as the COMET tool counts them.

A leaf hides its transfers behind steps of its unit. A spatial node hides its own behind
one execution of each group of children; a temporal node adds up its children, or
overlaps them if bindings say so.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from comet.cost.accelerator.bindings import (
    Group,
    binding_kinds,
    binding_of,
    charged_level,
    group_children,
    may_hide,
    tags_of,
)
from comet.cost.accelerator.compute import leaf_cycles
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.problem import (
    Collective,
    Node,
    Problem,
    Tile,
    walk_tiles,
)
from comet.cost.accelerator.tool.levels import (
    PortUsage,
    blank,
    fold_levels,
    merge_streams,
)
from comet.cost.accelerator.tool.nest import build_nests
from comet.cost.accelerator.tool.network import tool_cost
from comet.cost.accelerator.tool.pipeline import pipeline_cycles
from comet.cost.accelerator.tool.reuse import port_usage, record_ramps, shrink
from comet.cost.accelerator.tool.state import GroupCost, Latency
from comet.cost.accelerator.tool.streams import (
    Setting,
    Stream,
    make_stream,
    u32,
)
from comet.cost.estimate import CostError, at_node
from comet.kinds import BindingKind


def latencies(problem: Problem, hardware: Hardware) -> Latency:
    """
    Return the cost of every node.

    Raises `CostError` if the tool cannot price it, or for more than `MOST_ITERATIONS`.
    """
    hardware = in_allocation_order(problem, hardware)
    state = Latency(problem, hardware, build_nests(problem, hardware))
    _check_iterations(state)
    _visit(state, problem.root)
    return state


MOST_ITERATIONS = 10_000_000
"""
The most iterations, summed over nodes, of a mapping that is priced: the model needs
about 200 bytes for each, 2 GB in all.
"""


def _check_iterations(state: Latency) -> None:
    counts = {
        tile.index: state.iterations(tile)
        for tile in walk_tiles(state.problem.root)
        if tile.spatial or tile.is_leaf
    }
    total = sum(counts.values())
    if total > MOST_ITERATIONS:
        raise CostError(
            f"the nodes of the mapping make {total} iterations together, and the model "
            f"`tool` prices up to {MOST_ITERATIONS} one by one; take larger tiles, or "
            "the model `paper`",
            max(counts, key=counts.__getitem__),
        )


LARGE_MAPPING = 64
"""Entries above which the tool visits levels in another order."""

EARLY_LEVELS = 4
"""The outermost levels that come last in that order."""


def in_allocation_order(problem: Problem, hardware: Hardware) -> Hardware:
    """
    Return the machine with its levels in the order in which the tool visits them.

    The tool sorts levels by heap address. That is the order of exploration, except that
    after a large mapping was read the first four levels come last. This is observed in
    recorded runs of 75 and 85 entries (none has 61 to 74), not derived.
    """
    entries = sum(len(tile.entries) for tile in walk_tiles(problem.root))
    if entries <= LARGE_MAPPING:
        return hardware
    levels = hardware.levels
    return replace(hardware, levels=levels[EARLY_LEVELS:] + levels[:EARLY_LEVELS])


def _visit(state: Latency, node: Node) -> None:
    with at_node(node.index):
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
    steps = {
        unit: u32(leaf_cycles(state.hardware.level(unit).unit, tile.leaf))
        for unit in {entry.destination for entry in tile.entries}
    }
    settings = {
        unit: Setting(iterations, u32(iterations * step), step, 0, uneven)
        for unit, step in steps.items()
    }
    streams = [
        make_stream(state.hardware, m, settings[m.entry.destination], hidden=True)
        for m in movements
    ]
    _finish(state, tile, Group((tile.leaf,), fused=False), streams, {})
    state.cycles[tile.index] = state.groups[tile.index][0].totals.cycles


def _finish(
    state: Latency, tile: Tile, group: Group, streams: list[Stream], usage: PortUsage
) -> None:
    iterations = state.iterations(tile)
    records = merge_streams(state.hardware, streams, iterations, usage)
    cost = GroupCost(group, records, fold_levels(records, iterations), tuple(streams))
    state.groups[tile.index] = (*state.groups.get(tile.index, ()), cost)
    record_ramps(state, tile, streams)


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
        state.cycles[tile.index] = pipeline_cycles(state, tile)


def _spatial_group(state: Latency, tile: Tile, group: Group) -> None:
    work = u32(sum(state.cycles[node.index] for node in group.members))
    iterations = state.iterations(tile)
    windows = np.full(iterations, work, dtype=np.int64)
    shrink(state, tile, group, windows)
    movements = state.nests.movements[tile.index]
    uneven = len({m.iterations for m in movements}) > 1
    setting = Setting(iterations, u32(int(windows.sum())), None, work, uneven)
    binding = binding_of(state.problem.parent.get(tile.index), tile)
    streams: list[Stream] = []
    for member in group.members:
        tags = tags_of(member)
        for movement in movements:
            if movement.entry.tag not in tags:
                continue
            hidden = may_hide(member, group, binding, dependent=movement.dependent)
            streams.append(make_stream(state.hardware, movement, setting, hidden))
    if not streams and not group.fused:
        _compute_only(state, tile, group, work)
        return
    _finish(state, tile, group, streams, port_usage(state, tile, group))


def _compute_only(state: Latency, tile: Tile, group: Group, work: int) -> None:
    """Count a child that no stream feeds as work on both ports of the level above."""
    iterations = state.iterations(tile)
    ports = blank(iterations)
    for port in ports:
        port.compute = u32(iterations * work)
    level = charged_level(tile, group.members[0])
    assert level is not None  # as check_tool has checked
    records = {level: ports}
    state.groups[tile.index] = (
        *state.groups.get(tile.index, ()),
        GroupCost(group, records, fold_levels(records, iterations)),
    )


def _temporal(state: Latency, tile: Tile) -> None:
    kinds = binding_kinds(tile)
    if not kinds:
        state.cycles[tile.index] = state.cycles.get(tile.children[-1].index, 0)
        return
    iterations = state.iterations(tile)
    state.groups[tile.index] = tuple(
        _collective_in(state, node, group, iterations)
        for group in group_children(tile)
        for node in group.members
        if isinstance(node, Collective)
    )
    if BindingKind.SEQUENTIAL in kinds:
        state.cycles[tile.index] = _sequential_cycles(state, tile)
    else:
        state.cycles[tile.index] = pipeline_cycles(state, tile)


def _collective_in(
    state: Latency, node: Collective, group: Group, iterations: int
) -> GroupCost:
    """Return a collective below a temporal node as work on both ports of its level."""
    ports = blank(iterations)
    for port in ports:
        port.busy = port.compute = u32(iterations * state.cycles[node.index])
    records = {node.level: ports}
    totals = fold_levels(records, iterations)
    return GroupCost(Group((node,), group.fused), records, totals)


def _sequential_cycles(state: Latency, tile: Tile) -> int:
    """Return the sum over all children; collectives outside of groups count 0."""
    collectives = {
        cost.group.members[0].index: cost.totals.compute
        for cost in state.groups[tile.index]
    }
    return u32(
        sum(
            collectives.get(child.index, 0)
            if isinstance(child, Collective)
            else state.cycles[child.index]
            for child in tile.children
        )
    )


def _collective(state: Latency, node: Collective) -> None:
    exchange = state.nests.collectives[node.index]
    level = state.hardware.level(node.level)
    cost = tool_cost(exchange, level, node.bits / 8, node.reduction)
    state.cycles[node.index] = u32(cost.cycles)
    state.collectives[node.index] = cost
