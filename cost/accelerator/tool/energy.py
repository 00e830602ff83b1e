"""
Access counts and energy of every node, as the COMET tool counts them.

The walk goes down the tree with two tables per (tag, tensor): how often the enclosing
nodes run (`runs`), and over how many instances they spread (`copies`). Only spatial
nodes, leaves and collectives spend energy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from comet.cost.accelerator.compute import MAC_ENERGY, primitive_extents, vector_energy
from comet.cost.accelerator.hardware import Unit
from comet.cost.accelerator.problem import Collective, Leaf, Tile
from comet.cost.accelerator.tool.state import Latency
from comet.cost.accelerator.tool.streams import Stream
from comet.cost.estimate import CostError

Counts: TypeAlias = dict[tuple[str, str], int]
"""A count by (tag, tensor)."""


@dataclass
class AccessRecord:
    """Accesses of one level for one stream, or the work of a leaf's unit."""

    level: str
    count: int
    stream: Stream
    at_source: bool
    is_work: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """Tag and tensor."""
        return self.stream.movement.entry.tag, self.stream.movement.entry.tensor


@dataclass
class Energy:
    """The pJ of every node, by node index, and the counts they come from."""

    latency: Latency
    access: dict[int, list[AccessRecord]] = field(
        default_factory=dict[int, list[AccessRecord]]
    )
    memory: dict[int, dict[str, float]] = field(
        default_factory=dict[int, dict[str, float]]
    )
    """By level, units included."""
    network: dict[int, dict[str, float]] = field(
        default_factory=dict[int, dict[str, float]]
    )
    runs: dict[int, int] = field(default_factory=dict[int, int])
    """How often a node runs, if the tool counts it."""
    exchanges: dict[int, int] = field(default_factory=dict[int, int])
    """How often a collective under a temporal node runs."""


def energies(latency: Latency) -> Energy:
    """Return the energy of every node of a mapping, of which the latency is known."""
    state = Energy(latency)
    for index, cost in latency.collectives.items():
        node = next(n for n in latency.problem.nodes if n.index == index)
        level = node.level if isinstance(node, Collective) else ""
        state.memory[index] = {level: cost.memory_energy}
        state.network[index] = {f"{level}<->{level}": cost.network_energy}
    _visit(state, latency.problem.root, {}, {})
    return state


def _visit(state: Energy, tile: Tile, copies: Counts, runs: Counts) -> None:
    copies, runs = dict(copies), dict(runs)
    current: Counts = {}
    if tile.spatial or tile.is_leaf:
        current = _account(state, tile, copies, runs)
        if tile.is_leaf:
            return
        for key, count in current.items():
            runs[key] = runs.get(key, 1) * count
    for position, child in enumerate(tile.children):
        if isinstance(child, Tile):
            _visit(state, child, copies, runs)
        elif isinstance(child, Collective):
            _collective(state, tile, child, position, current, runs)


def _records(state: Energy, tile: Tile) -> list[AccessRecord]:
    """
    A node's access records in the tool's order: per stream its source then its
    destination; a leaf ends with its unit.
    """
    result: list[AccessRecord] = []
    for cost in state.latency.groups.get(tile.index, ()):
        for stream in cost.streams:
            result.append(
                AccessRecord(
                    stream.source, len(stream.transfers), stream, at_source=True
                )
            )
            if not tile.is_leaf:
                result.append(
                    AccessRecord(
                        stream.destination,
                        len(stream.transfers),
                        stream,
                        at_source=False,
                    )
                )
    if tile.is_leaf:
        first = result[0].stream
        count = max(record.count for record in result)
        result.append(
            AccessRecord(first.destination, count, first, at_source=False, is_work=True)
        )
    return result


def _account(state: Energy, tile: Tile, copies: Counts, runs: Counts) -> Counts:
    parent = state.latency.problem.parent[tile.index]
    below_root = parent is state.latency.problem.root
    nearby = [*_left_tensors(parent, tile), *(e.tensor for e in tile.entries)]
    records = _records(state, tile)
    state.access[tile.index] = records
    memory = state.memory.setdefault(tile.index, {})
    network = state.network.setdefault(tile.index, {})
    current: Counts = {}
    for record in records:
        if record.at_source:
            current[record.key] = record.count
        if not record.is_work and not below_root:
            _scale(state, tile, record, nearby, runs, network)
        spread = _spread(tile, record, nearby, copies, below_root)
        spent = (
            _work_energy(state, tile, record, spread, runs)
            if record.is_work
            else _memory_energy(state, record, spread)
        )
        memory[record.level] = memory.get(record.level, 0.0) + spent
    sources = [record for record in records if record.at_source]
    for position, record in enumerate(sources):
        copies[record.key] = (
            copies.get(record.key, 1)
            * state.latency.nests.movements[tile.index][position].spatial
        )
    return current


def _left_tensors(parent: Tile, tile: Tile) -> list[str]:
    """The tensors of the tile nodes to the left of a node."""
    tensors: list[str] = []
    for child in parent.children:
        if child is tile:
            break
        if isinstance(child, Tile):
            tensors += [entry.tensor for entry in child.entries]
    return tensors


def _scale(
    state: Energy,
    tile: Tile,
    record: AccessRecord,
    nearby: Iterable[str],
    runs: Counts,
    network: dict[str, float],
) -> None:
    """
    Multiply a record by the runs of the nodes above.

    These are the maximum over all nearby tensors with any tag.
    """
    largest = _largest(runs, nearby)
    if largest is None:
        raise CostError(
            f"{tile.name} moves tensors that no enclosing node moves, so the COMET "
            "tool cannot count its runs"
        )
    record.count *= largest
    runs[record.key] = largest
    state.runs[tile.index] = max(state.runs.get(tile.index, 0), largest)
    if not record.at_source:
        name = f"{record.level}<->{record.level}"
        network[name] = network.get(name, 0.0) + record.stream.network_energy * largest


def _spread(
    tile: Tile,
    record: AccessRecord,
    nearby: Iterable[str],
    copies: Counts,
    below_root: bool,
) -> int:
    """Return over how many instances the nodes above spread a record's tensor."""
    tag, _ = record.key
    if record.key in copies:
        return copies[record.key]
    if any(known == tag for known, _ in copies):
        spread = max([1, *(copies.get((tag, e.tensor), 1) for e in tile.entries)])
        copies[record.key] = spread
        return spread
    if below_root:
        return 1
    spread = _largest(copies, nearby)
    if spread is None:
        raise CostError(
            f"{tile.name} moves tensors that no enclosing node spreads, so the COMET "
            "tool cannot count its instances"
        )
    return spread


def _largest(counts: Counts, tensors: Iterable[str]) -> int | None:
    """The largest count of any of the tensors, at least 1; None if none has one."""
    wanted = set(tensors)
    found = [count for (_, tensor), count in counts.items() if tensor in wanted]
    return max([1, *found]) if found else None


def _memory_energy(state: Energy, record: AccessRecord, spread: int) -> float:
    movement = record.stream.movement
    memory = state.latency.hardware.level(record.level).memory
    if movement.writes:
        per_block = (
            memory.parent_write_energy if record.at_source else memory.child_read_energy
        )
    else:
        per_block = (
            memory.parent_read_energy if record.at_source else memory.child_write_energy
        )
    unique = max(1, movement.unique)
    bits = spread * record.count * movement.size * unique * movement.entry.bits
    energy = float(np.float32(bits) * np.float32(per_block)) / (memory.width * 8.0)
    return energy * 2 if movement.entry.accumulates else energy


def _work_energy(
    state: Energy, tile: Tile, record: AccessRecord, spread: int, runs: Counts
) -> float:
    level = state.latency.hardware.level(record.level)
    tag, _ = record.key
    tag_runs = {key: count for key, count in runs.items() if key[0] == tag}
    largest = _largest(tag_runs or runs, (e.tensor for e in tile.entries))
    record.count *= 1 if largest is None else largest
    return unit_energy(level.unit, tile.leaf, spread * record.count, level.instances)


def unit_energy(unit: Unit, leaf: Leaf, primitives: int, instances: int) -> float:
    """
    The pJ of `primitives` tile primitives on a unit, single precision (COMET tool).
    """
    if unit.kind == "SystolicArray":
        return float(
            np.float32(primitives)
            * np.float32(math.prod(primitive_extents(leaf)) * MAC_ENERGY)
        )
    if unit.kind == "VSIMD":
        return float(
            np.float32(primitives)
            * np.float32(vector_energy(unit, leaf.kind))
            * np.float32(unit.width)
        )
    return float(
        np.float32(primitives) * np.float32(unit.energy) * np.float32(instances)
    )


def _collective(
    state: Energy,
    tile: Tile,
    node: Collective,
    position: int,
    current: Counts,
    runs: Counts,
) -> None:
    earlier = [child for child in tile.children[:position] if isinstance(child, Tile)]
    tags = [e.tag for child in earlier for e in child.entries if e.tensor == node.input]
    if not tags:
        raise CostError(
            f"{node.name} exchanges tensor {node.input}, which no tile to its left "
            "moves; place it after its producer"
        )
    if tile.spatial:
        count = 1
        for tag in sorted(set(tags)):
            count = runs.get((tag, node.input), count)
        scaled = tile.index
    else:
        for record in state.access.get(earlier[-1].index, ()):
            if record.at_source:
                current[record.key] = record.count
        count = current.get((tags[-1], node.input), 0)
        state.exchanges[node.index] = count
        scaled = node.index
    state.runs[node.index] = count
    for table in (state.memory, state.network):
        table[scaled] = {
            level: energy * count for level, energy in table.get(scaled, {}).items()
        }
