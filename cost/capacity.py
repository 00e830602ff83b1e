"""
How many bytes the tiles of a mapping need at each memory level.

Two rules: `summed_occupancy` is the COMET tool's, which adds up tile nodes by their
bindings; `live_occupancy` counts the values that are alive at the same time. Neither
doubles buffers unless asked to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from comet.cost.bindings import binding_kinds, binding_of
from comet.cost.problem import (
    BindingKind,
    Collective,
    CollectiveKind,
    Entry,
    Leaf,
    Node,
    Problem,
    Tile,
    walk_tiles,
)
from comet.cost.volume import elements


@dataclass(frozen=True)
class Occupancy:
    """What one level must hold at one place of the mapping."""

    level: str
    total: int
    """Bytes."""
    where: str
    parts: Mapping[str, int]
    """Bytes by tensor, of the tiles that meet at that place."""

    def tensors(self) -> str:
        """The tensors, largest first, with their bytes."""
        ordered = sorted(self.parts.items(), key=lambda item: (-item[1], item[0]))
        return ", ".join(f"{tensor} ({size} bytes)" for tensor, size in ordered)


def entry_extents(problem: Problem) -> Mapping[int, tuple[Mapping[str, int], ...]]:
    """
    The extents of each entry's tile above each node's loops, by node index and entry
    position.
    """
    walker = _Extents(problem)
    walker.visit(problem.root, None)
    return walker.result


@dataclass
class _Extents:
    problem: Problem
    reached: dict[tuple[str, str], dict[str, int]] = field(
        default_factory=dict[tuple[str, str], dict[str, int]]
    )
    result: dict[int, tuple[Mapping[str, int], ...]] = field(
        default_factory=dict[int, "tuple[Mapping[str, int], ...]"]
    )

    def visit(self, node: Node, parent: Tile | None) -> None:
        match node:
            case Tile():
                for child in node.children:
                    self.visit(child, node)
                self.result[node.index] = tuple(
                    self._grow(entry) for entry in node.entries
                )
            case Leaf():
                for tensor, sizes in node.steps.items():
                    self.reached[tensor, node.operation] = dict(sizes)
            case Collective():
                self._exchange(node, parent)

    def _grow(self, entry: Entry) -> Mapping[str, int]:
        extents = self.reached.setdefault(entry.key, {})
        for row in entry.factors:
            for dim, factor in row.items():
                extents[dim] = extents.get(dim, 0) * factor
        return dict(extents)

    def _exchange(self, node: Collective, parent: Tile | None) -> None:
        """
        A collective leaves its tensor under its own tag, larger by a gather (the
        instances are not known here).
        """
        known = sorted(key for key in self.reached if key[0] == node.input)
        if known and node.kind not in (
            CollectiveKind.GATHER,
            CollectiveKind.ALL_GATHER,
            CollectiveKind.SCATTER,
        ):
            self.reached[node.input, node.tag] = dict(self.reached[known[0]])


def tile_bytes(problem: Problem, entry: Entry, extents: Mapping[str, int]) -> int:
    """The bytes of one tile, single precision as the COMET tool has it."""
    count = elements(problem.projection(entry.tensor, entry.tag), extents)
    return int(np.float32(count) * np.float32(entry.bits / 8))


def node_bytes(
    problem: Problem, tile: Tile, extents: tuple[Mapping[str, int], ...]
) -> dict[str, dict[str, int]]:
    """
    The bytes of a temporal node's tiles by level and tensor; a tensor listed twice
    counts once, at its largest.
    """
    result: dict[str, dict[str, int]] = {}
    for entry, reached in zip(tile.entries, extents, strict=True):
        parts = result.setdefault(entry.source, {})
        parts[entry.tensor] = max(
            parts.get(entry.tensor, 0), tile_bytes(problem, entry, reached)
        )
    return result


def post_order(node: Node) -> Iterator[Tile]:
    """The tile nodes of a tree, children first."""
    if isinstance(node, Tile):
        for child in node.children:
            yield from post_order(child)
        yield node


def summed_occupancy(problem: Problem) -> Iterator[Occupancy]:
    """
    The COMET tool's demand of each level, running over temporal nodes in post-order.

    A node bound sequentially takes the maximum with what came before, a pipelined or
    unbound one adds, a parallel one is forgotten (a defect). An only child takes its
    parent's binding.
    """
    extents = entry_extents(problem)
    reached: dict[str, Occupancy] = {}
    for tile in post_order(problem.root):
        if tile.spatial or tile is problem.root:
            continue
        for level, parts in node_bytes(problem, tile, extents[tile.index]).items():
            own = Occupancy(level, sum(parts.values()), tile.name, parts)
            reached[level] = _combine(
                reached.get(level), own, _inherited_binding(problem, tile)
            )
            yield reached[level]


def _combine(
    before: Occupancy | None, own: Occupancy, binding: BindingKind | None
) -> Occupancy:
    if before is None:
        return own
    match binding:
        case BindingKind.SEQUENTIAL:
            return max(before, own, key=lambda occupancy: occupancy.total)
        case BindingKind.PARALLEL | BindingKind.SHARING:
            return before
        case _:
            parts = {
                t: before.parts.get(t, 0) + own.parts.get(t, 0)
                for t in (*before.parts, *own.parts)
            }
            return Occupancy(own.level, before.total + own.total, own.where, parts)


def _inherited_binding(problem: Problem, tile: Tile) -> BindingKind | None:
    parent = problem.parent.get(tile.index)
    if (own := binding_of(parent, tile)) is not None or parent is None:
        return own
    return binding_of(problem.parent.get(parent.index), parent)


def live_occupancy(
    problem: Problem, *, double_buffered: bool = False
) -> Iterator[Occupancy]:
    """
    The bytes alive at each level while each temporal node runs.

    A node's own tiles, the tiles that earlier nodes left for later ones, and the tiles
    of nodes that run at the same time. With `double_buffered`, tiles filled from or
    drained to another level count twice.
    """
    places = [
        t for t in walk_tiles(problem.root) if not t.spatial and t is not problem.root
    ]
    extents = entry_extents(problem)
    needs = {t.index: node_bytes(problem, t, extents[t.index]) for t in places}
    moved = _moved(problem)
    for place, tile in enumerate(places):
        for level, own in needs[tile.index].items():
            parts = dict(own)
            for tensor in own:
                if double_buffered and (level, tensor) in moved.get(tile.index, set()):
                    parts[tensor] *= 2
            for tensor, size in _carried(places, needs, moved, place, level):
                parts.setdefault(tensor, size)
            for other in _concurrent(problem, tile, places):
                for tensor, size in needs[other.index].get(level, {}).items():
                    parts[tensor] = max(parts.get(tensor, 0), size)
            yield Occupancy(level, sum(parts.values()), tile.name, parts)


def _moved(problem: Problem) -> dict[int, set[tuple[str, str]]]:
    """
    For each temporal node, the (level, tensor) pairs that the spatial node above it
    fills or drains.
    """
    result: dict[int, set[tuple[str, str]]] = {}
    for tile in walk_tiles(problem.root):
        parent = problem.parent.get(tile.index)
        if not tile.spatial and parent is not None and parent.spatial:
            keys = {e.key for e in tile.entries}
            result[tile.index] = {
                (e.destination, e.tensor) for e in parent.entries if e.key in keys
            }
    return result


def _carried(
    places: list[Tile],
    needs: Mapping[int, Mapping[str, Mapping[str, int]]],
    moved: Mapping[int, set[tuple[str, str]]],
    place: int,
    level: str,
) -> Iterator[tuple[str, int]]:
    """
    The tiles at a level that a node before `place` left there and a node after it uses
    without a new fill.
    """
    later = {
        tensor
        for tile in places[place + 1 :]
        for tensor in needs[tile.index].get(level, {})
        if (level, tensor) not in moved.get(tile.index, set())
    }
    for tile in places[:place]:
        for tensor, size in needs[tile.index].get(level, {}).items():
            if tensor in later:
                yield tensor, size


def _concurrent(problem: Problem, tile: Tile, places: list[Tile]) -> Iterator[Tile]:
    """
    The temporal nodes that run while `tile` does: those under siblings of its branch
    that bindings overlap with it.
    """
    node, parent = tile, problem.parent.get(tile.index)
    while parent is not None:
        if any(kind is not BindingKind.SEQUENTIAL for kind in binding_kinds(parent)):
            for sibling in parent.children:
                if sibling is not node:
                    yield from (
                        t for t in walk_tiles(sibling) if not t.spatial and t in places
                    )
        node, parent = parent, problem.parent.get(parent.index)
