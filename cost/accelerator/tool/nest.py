"""
The loop nests of a mapping as the COMET tool builds them: tile sizes, iteration counts
and collective sizes.

Leaves come first: each tile node multiplies the extents of its subtree, per tensor and
tag, so a node's extents depend on the nodes before it in post-order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.mappings import Extents
from comet.cost.accelerator.problem import (
    Collective,
    Entry,
    Leaf,
    Node,
    Problem,
    Tile,
)
from comet.cost.accelerator.volume import (
    Transfer,
    elements_of,
    exchanged,
    relevant,
    reuse,
)
from comet.cost.collectives.formulas import CollectiveTraffic
from comet.cost.estimate import CostError
from comet.cost.reals import Real


@dataclass(frozen=True)
class Movement:
    """The transfers of one entry of a node, as the COMET tool counts them."""

    entry: Entry
    writes: bool
    dependent: bool
    iterations: int
    """Iterations of the nest that the tool counts for the entry."""
    steps: int
    """Steps of the leaf below per iteration."""
    spatial: int
    """Instances the entry is spread over."""
    size: int
    """Elements of the tile of one child."""
    length: int
    """Iterations of the nest above, in which tiles may move."""
    period: int
    """A tile moves in every `period`-th iteration."""
    unique: int
    """Distinct tiles that move at the same time: one if all instances share it."""

    @cached_property
    def moves(self) -> int:
        """How often a tile moves."""
        return math.ceil(self.length / self.period)

    @cached_property
    def reuse(self) -> int:
        """Iterations per move, at least 1."""
        return max(1, self.iterations // self.moves)

    def transfer(self, unique: int) -> Transfer:
        """One transfer of `unique` distinct tiles."""
        e = self.entry
        return Transfer(
            self.size, unique, self.spatial, e.bits / 8, self.writes, e.accumulates
        )


@dataclass(frozen=True)
class Nests:
    """
    The movements of every tile node, by node index and entry position, and the sizes of
    every collective.
    """

    movements: Mapping[int, tuple[Movement, ...]]
    collectives: Mapping[int, CollectiveTraffic]

    def iterations(self, tile: Tile) -> int:
        """The largest iteration count among a node's entries."""
        return max(m.iterations for m in self.movements[tile.index])


@dataclass(frozen=True, slots=True)
class _Loops:
    """
    One entry's loops: extents below and above the node's first row and above its last,
    and its counts.
    """

    inner: Extents
    outer: Extents
    iterations: int
    spatial: int
    steps: int


def build_nests(problem: Problem, hardware: Hardware) -> Nests:
    """
    The nests of a problem; raises `CostError` for a collective without its tile and for
    an entry that its parent does not have.
    """
    loops = _Builder(problem, hardware)
    loops.visit(problem.root)
    movements: dict[int, tuple[Movement, ...]] = {}
    _move(problem, loops.loops, problem.root, None, movements)
    return Nests(movements, loops.collectives)


@dataclass
class _Builder:
    """Walks in post-order with the extents reached so far."""

    problem: Problem
    hardware: Hardware
    extents: dict[tuple[str, str], dict[str, Real]] = field(
        default_factory=dict[tuple[str, str], dict[str, Real]]
    )
    steps: dict[tuple[str, str], int] = field(
        default_factory=dict[tuple[str, str], int]
    )
    produced: dict[tuple[str, str], dict[str, Real]] = field(
        default_factory=dict[tuple[str, str], dict[str, Real]]
    )
    loops: dict[int, tuple[_Loops, ...]] = field(
        default_factory=dict[int, tuple[_Loops, ...]]
    )
    collectives: dict[int, CollectiveTraffic] = field(
        default_factory=dict[int, CollectiveTraffic]
    )

    def visit(self, node: Node) -> None:
        match node:
            case Tile():
                for child in node.children:
                    self.visit(child)
                self.loops[node.index] = tuple(
                    self._entry(entry, node) for entry in node.entries
                )
                self._produce(node)
            case Leaf():
                self._leaf(node)
            case Collective():
                self._collective(node)

    def _leaf(self, leaf: Leaf) -> None:
        primitive = dict(leaf.primitive).items()
        for tensor, sizes in leaf.steps.items():
            key = tensor, leaf.operation
            counts = (sizes.get(dim, 0) // size for dim, size in primitive)
            self.extents[key] = dict(sizes)
            self.steps[key] = math.prod(counts) if leaf.kind == "gemm" else 1

    def _entry(self, entry: Entry, tile: Tile) -> _Loops:
        extents = self.extents.setdefault(entry.key, {})
        steps = self.steps.setdefault(entry.key, 0)
        inner: dict[str, Real] = {}
        count = 1
        for row, factors in enumerate(entry.factors):
            if row == 0:
                inner = {dim: extents.get(dim, 0) for dim in factors}
            for dim, factor in factors.items():
                extents[dim] = extents.get(dim, 0) * factor
                count *= factor
        outer = {dim: extents[dim] for dim in entry.factors[-1]}
        if tile.spatial:
            return _Loops(inner, outer, 1, count, steps)
        self.steps[entry.key] = steps * count
        return _Loops(inner, outer, count, 1, steps)

    def _produce(self, tile: Tile) -> None:
        for entry, loops in zip(tile.entries, self.loops[tile.index], strict=True):
            if entry.tensor in self.problem.produced:
                self.produced[entry.source, entry.tensor] = dict(loops.outer)

    def _collective(self, node: Collective) -> None:
        tile = self.produced.get((node.level, node.input))
        got, traffic = exchanged(self.problem, self.hardware, node, tile)
        if (node.level, node.output) in self.produced:
            self.produced[node.level, node.output] = got
        if node.writes_back:
            self.extents[node.input, node.tag] = dict(got)
            self.steps[node.input, node.tag] = 1
        self.collectives[node.index] = traffic


def _move(
    problem: Problem,
    loops: Mapping[int, tuple[_Loops, ...]],
    tile: Tile,
    parent: Tile | None,
    movements: dict[int, tuple[Movement, ...]],
) -> None:
    if tile.spatial:
        if parent is None:
            raise CostError(
                f"{tile.name} is a spatial root; the root of a mapping must be temporal"
            )
        movements[tile.index] = _spatial(
            problem, loops, tile, parent, movements[parent.index]
        )
    else:
        movements[tile.index] = tuple(
            _temporal(problem, tile, entry, entry_loops)
            for entry, entry_loops in zip(tile.entries, loops[tile.index], strict=True)
        )
    for child in tile.children:
        if isinstance(child, Tile):
            _move(problem, loops, child, tile, movements)


def _temporal(
    problem: Problem, tile: Tile, entry: Entry, entry_loops: _Loops
) -> Movement:
    projection = problem.projection(entry.tensor, entry.tag)
    return Movement(
        entry,
        problem.writes(entry.tensor, entry.tag),
        problem.is_dependent(entry.tensor),
        entry_loops.iterations,
        entry_loops.steps,
        1,
        int(elements_of(projection, entry_loops.inner)),
        entry_loops.iterations,
        int(reuse(tile.order, entry.factors[-1], relevant(projection))),
        1,
    )


def _spatial(
    problem: Problem,
    loops: Mapping[int, tuple[_Loops, ...]],
    tile: Tile,
    parent: Tile,
    above: tuple[Movement, ...],
) -> tuple[Movement, ...]:
    """
    Spatial entries move when their parent's entry does; one that the parent does not
    have follows the entry listed before it.
    """
    positions = {m.entry.key: i for i, m in reversed(list(enumerate(above)))}
    counts = {m.entry.key: m.iterations for m in above}
    result: list[Movement] = []
    position: int | None = None
    for entry, entry_loops in zip(tile.entries, loops[tile.index], strict=True):
        exact = positions.get(entry.key)
        position = position if exact is None else exact
        if position is None:
            raise CostError(
                f"{tile.name} moves tensor {entry.tensor} for {entry.tag}, which "
                f"{parent.name} does not list; list it there"
            )
        followed = above[position]
        counted = entry.key in counts and followed.entry.source == entry.source
        count = counts[entry.key] if counted else 1
        result.append(_spread(problem, entry, entry_loops, count, followed))
    return tuple(result)


def _spread(
    problem: Problem,
    entry: Entry,
    entry_loops: _Loops,
    iterations: int,
    followed: Movement,
) -> Movement:
    """A spatial entry that moves whenever `followed` does."""
    projection = problem.projection(entry.tensor, entry.tag)
    dims = relevant(projection)
    rows = (row.items() for row in entry.factors)
    return Movement(
        entry,
        problem.writes(entry.tensor, entry.tag),
        problem.is_dependent(entry.tensor),
        iterations,
        entry_loops.steps,
        entry_loops.spatial,
        int(elements_of(projection, entry_loops.inner)),
        followed.iterations,
        followed.period,
        math.prod(f for row in rows for dim, f in row if dim in dims),
    )
