"""
The bytes that the tiles of a mapping need at each memory level.

Two rules: `summed_occupancy` is the COMET tool's, which adds up tile nodes by their
bindings; `live_occupancy` counts the tensors that are alive at the same time. Sizes
are numbers, or arrays for many mappings. Only the rule of tile trees, in
`from_ir/capacity.py`, counts two buffers for double buffering.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from comet.cost.accelerator.bindings import binding_kinds, binding_of
from comet.cost.accelerator.flow import TileExtents
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.mappings import Extents
from comet.cost.accelerator.problem import (
    Entry,
    Node,
    Problem,
    Tile,
    walk_tiles,
)
from comet.cost.accelerator.volume import elements_of
from comet.cost.reals import Real, Truth, total
from comet.kinds import ROOT_MEMORY, BindingKind


@dataclass(frozen=True)
class Occupancy:
    """The bytes that one level holds while one node of the mapping runs."""

    level: str
    where: str
    """The name of the node."""
    tiles: Mapping[str, Real]
    """Bytes by tensor."""

    @property
    def total(self) -> Real:
        """All bytes."""
        return total(self.tiles.values())

    def tensors(self) -> str:
        """Return the tensors of one mapping with their bytes as text, largest first."""
        sizes = {tensor: float(size) for tensor, size in self.tiles.items() if size}
        ordered = sorted((-size, tensor) for tensor, size in sizes.items())
        return ", ".join(f"{tensor} ({int(-size)} bytes)" for size, tensor in ordered)


def fits(occupancies: Iterable[Occupancy], hardware: Hardware) -> Truth:
    """Return whether all tiles fit, at every level but the root memory."""
    room: Truth = True
    for occupancy, capacity in limited(occupancies, hardware):
        room = room & np.less_equal(np.floor(occupancy.total), capacity)
    return room


def limited(
    occupancies: Iterable[Occupancy], hardware: Hardware
) -> Iterator[tuple[Occupancy, int]]:
    """Yield the occupancy of levels below the root memory, with their capacities."""
    for occupancy in occupancies:
        if occupancy.level != ROOT_MEMORY:
            yield occupancy, hardware.level(occupancy.level).memory.capacity


def summed_occupancy(problem: Problem, extents: TileExtents) -> Iterator[Occupancy]:
    """
    The COMET tool's demand of each level, after each temporal node in post-order.

    A node bound sequentially takes the maximum with the nodes before it, a pipelined or
    unbound one is added, a parallel one is ignored (a defect). An only child takes its
    parent's binding.
    """
    reached: dict[str, Occupancy] = {}
    for tile in _post_order(problem.root):
        if tile.spatial or tile is problem.root:
            continue
        needs = _node_bytes(problem, tile, extents[tile.index], whole=True)
        for level, tiles in needs.items():
            demand = Occupancy(level, tile.name, tiles)
            binding = _inherited_binding(problem, tile)
            reached[level] = _combine(reached.get(level), demand, binding)
            yield reached[level]


def _combine(
    before: Occupancy | None, demand: Occupancy, binding: BindingKind | None
) -> Occupancy:
    if before is None:
        return demand
    match binding:
        case BindingKind.SEQUENTIAL:
            larger = np.greater_equal(before.total, demand.total)
            tiles = {
                t: np.where(larger, before.tiles.get(t, 0.0), demand.tiles.get(t, 0.0))
                for t in (*before.tiles, *demand.tiles)
            }
            return Occupancy(demand.level, _where(larger, before, demand), tiles)
        case BindingKind.PARALLEL | BindingKind.SHARING:
            return before
        case _:
            names = (*before.tiles, *demand.tiles)
            tiles = {t: before.tiles.get(t, 0) + demand.tiles.get(t, 0) for t in names}
            return Occupancy(demand.level, demand.where, tiles)


def _where(larger: Real, before: Occupancy, demand: Occupancy) -> str:
    """Name the node of the larger demand; of many mappings, the later node."""
    return before.where if np.ndim(larger) == 0 and larger else demand.where


def _inherited_binding(problem: Problem, tile: Tile) -> BindingKind | None:
    parent = problem.parent.get(tile.index)
    if (binding := binding_of(parent, tile)) is not None or parent is None:
        return binding
    return binding_of(problem.parent.get(parent.index), parent)


def _post_order(node: Node) -> Iterator[Tile]:
    if isinstance(node, Tile):
        for child in node.children:
            yield from _post_order(child)
        yield node


def _node_bytes(
    problem: Problem, tile: Tile, extents: tuple[Extents, ...], *, whole: bool = False
) -> dict[str, dict[str, Real]]:
    """
    A temporal node's bytes by level and tensor; a tensor listed twice counts once.
    """
    result: dict[str, dict[str, Real]] = {}
    for entry, reached in zip(tile.entries, extents, strict=True):
        size = _tile_bytes(problem, entry, reached)
        tiles = result.setdefault(entry.source, {})
        if (previous := tiles.get(entry.tensor)) is not None:
            size = np.maximum(previous, size)
        tiles[entry.tensor] = np.floor(size) if whole else size
    return result


def _tile_bytes(problem: Problem, entry: Entry, extents: Extents) -> Real:
    projection = problem.projection(entry.tensor, entry.tag)
    return elements_of(projection, extents) * (entry.bits / 8)


def live_occupancy(problem: Problem, extents: TileExtents) -> Iterator[Occupancy]:
    """
    The bytes alive at each level while each temporal node runs.

    These are the tiles of the node, tiles of earlier nodes that later nodes use, and
    the tiles of nodes that run at the same time.
    """
    tiles = [t for t in walk_tiles(problem.root) if t is not problem.root]
    nodes = [t for t in tiles if not t.spatial]
    live = _Live(
        problem,
        nodes,
        {t.index: _node_bytes(problem, t, extents[t.index]) for t in nodes},
        _moved(problem),
    )
    for position, tile in enumerate(nodes):
        for level in live.needs[tile.index]:
            held = dict(live.needs[tile.index][level])
            for tensor, size in live.from_earlier(position, level):
                held.setdefault(tensor, size)
            for tensor, size in live.at_the_same_time(tile, level):
                held[tensor] = np.maximum(held.get(tensor, 0.0), size)
            yield Occupancy(level, tile.name, held)


@dataclass(frozen=True)
class _Live:
    """The tiles of every temporal node, and which of them the node above transfers."""

    problem: Problem
    nodes: list[Tile]
    needs: Mapping[int, Mapping[str, Mapping[str, Real]]]
    moved: Mapping[int, set[tuple[str, str]]]

    def from_earlier(self, position: int, level: str) -> Iterator[tuple[str, Real]]:
        """Tiles of earlier nodes at a level that later nodes use without a new fill."""
        later = {
            tensor
            for tile in self.nodes[position + 1 :]
            for tensor in self.needs[tile.index].get(level, ())
            if (level, tensor) not in self.moved.get(tile.index, ())
        }
        for tile in self.nodes[:position]:
            for tensor, size in self.needs[tile.index].get(level, {}).items():
                if tensor in later:
                    yield tensor, size

    def at_the_same_time(self, tile: Tile, level: str) -> Iterator[tuple[str, Real]]:
        """Tiles of nodes that run at the same time as `tile`."""
        node, parent = tile, self.problem.parent.get(tile.index)
        while parent is not None:
            kinds = binding_kinds(parent)
            if any(kind is not BindingKind.SEQUENTIAL for kind in kinds):
                siblings = [child for child in parent.children if child is not node]
                for sibling in (t for s in siblings for t in walk_tiles(s)):
                    yield from self.needs.get(sibling.index, {}).get(level, {}).items()
            node, parent = parent, self.problem.parent.get(parent.index)


def _moved(problem: Problem) -> dict[int, set[tuple[str, str]]]:
    """The (level, tensor) pairs that the spatial node above a node fills or drains."""
    result: dict[int, set[tuple[str, str]]] = {}
    for tile in walk_tiles(problem.root):
        parent = problem.parent.get(tile.index)
        if not tile.spatial and parent is not None and parent.spatial:
            keys = {e.key for e in tile.entries}
            pairs = {(e.destination, e.tensor) for e in parent.entries if e.key in keys}
            result[tile.index] = pairs
    return result
