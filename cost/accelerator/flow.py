"""
The transfers of each node, in numbers or arrays, which `paper` and `ideal` price.

A `Flow` is one entry of a node that moves data: its tile, how often it moves during one
execution of the node, and over how many instances. Factors come from `Mappings`, so one
pass over the tree prices one mapping, or thousands of mappings of one template.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.mappings import Extents, Mappings
from comet.cost.accelerator.problem import (
    Collective,
    Entry,
    Leaf,
    Node,
    Problem,
    Tile,
)
from comet.cost.accelerator.volume import elements_of, exchanged, relevant, reuse
from comet.cost.collectives.formulas import CollectiveTraffic
from comet.cost.estimate import CostError
from comet.cost.reals import (
    Products,
    Real,
    Truth,
    identity,
    larger,
    longest,
    ratio,
    times,
)

TileExtents: TypeAlias = Mapping[int, tuple[Extents, ...]]
"""The extents of each entry's tile above each node's loops, by node index."""


@dataclass(frozen=True)
class Flow:
    """One entry's data during one execution of its node."""

    entry: Entry
    writes: bool
    dependent: bool
    size: Real
    """Elements of one child's tile."""
    iterations: Real
    """Iterations of the nest, with or without a transfer."""
    moves: Real
    """How often a new tile moves."""
    spatial: Real
    """Instances the entry goes to."""
    unique: Real
    """Distinct tiles among them."""
    accumulates: Truth
    """Whether a written tile is read back first, to add to it."""

    @property
    def element_bytes(self) -> float:
        """Bytes of one element."""
        return self.entry.bits / 8

    @cached_property
    def bytes_moved(self) -> Real:
        """Bytes that one instance receives or sends in one execution."""
        return times(times(self.moves, self.size), self.element_bytes)


@dataclass(frozen=True)
class Flows:
    """The flows of every tile node and the tiles of every collective, by node index."""

    flows: Mapping[int, tuple[Flow, ...]]
    exchanges: Mapping[int, CollectiveTraffic]
    tiles: TileExtents

    def iterations(self, tile: Tile) -> Real:
        """The largest iteration count among a node's entries."""
        return longest(flow.iterations for flow in self.flows[tile.index])


def build_flows(mappings: Mappings, hardware: Hardware) -> Flows:
    """
    The flows of every node of the template.

    Raises `CostError` if the temporal node above a spatial entry does not list it (the
    COMET tool then reads another entry's counts), and if a collective reads a tensor
    that no node before it holds at its level.
    """
    builder = _Builder(mappings, hardware)
    builder.visit(mappings.template.root)
    flows: dict[int, tuple[Flow, ...]] = {}
    _connect(builder, mappings.template.root, {}, flows)
    return Flows(flows, builder.exchanges, builder.tiles)


def tile_extents(mappings: Mappings, hardware: Hardware) -> TileExtents:
    """The extents of each entry's tile above each node's loops, by node index."""
    builder = _Builder(mappings, hardware)
    builder.visit(mappings.template.root)
    return builder.tiles


@dataclass
class _Builder:
    """Computes the extents below and above every entry's loops, leaves first."""

    mappings: Mappings
    hardware: Hardware
    reached: dict[tuple[str, str], dict[str, Real]] = field(
        default_factory=dict[tuple[str, str], dict[str, Real]]
    )
    held: dict[tuple[str, str], Extents] = field(
        default_factory=dict[tuple[str, str], Extents]
    )
    """The last tile of a tensor at a level, by level and tensor."""
    exchanges: dict[int, CollectiveTraffic] = field(
        default_factory=dict[int, CollectiveTraffic]
    )
    below: dict[int, tuple[Extents, ...]] = field(
        default_factory=dict[int, tuple[Extents, ...]]
    )
    tiles: dict[int, tuple[Extents, ...]] = field(
        default_factory=dict[int, tuple[Extents, ...]]
    )
    products: Products = field(default_factory=Products)
    """Most entries have the same factors, so most products are known."""

    def visit(self, node: Node) -> None:
        if isinstance(node, Leaf):
            for tensor in node.steps:
                key = tensor, node.operation
                self.reached[key] = self.mappings.tile_steps(node, tensor)
        elif isinstance(node, Tile):
            for child in node.children:
                self.visit(child)
            self.below[node.index] = tuple(self._now(e) for e in node.entries)
            for position in range(len(node.entries)):
                self._grow(node, position)
            self.tiles[node.index] = tuple(self._now(e) for e in node.entries)
            for entry, tile in zip(node.entries, self.tiles[node.index], strict=True):
                self.held[entry.source, entry.tensor] = tile
        else:
            self._exchange(node)

    def _exchange(self, node: Collective) -> None:
        """An all-gather enlarges the tile along its dimension, a scatter divides it."""
        problem, tile = self.mappings.template, self.held.get((node.level, node.input))
        got, traffic = exchanged(problem, self.hardware, node, tile)
        self.held[node.level, node.output] = got
        if node.writes_back:
            self.reached[node.input, node.tag] = dict(got)
        self.exchanges[node.index] = traffic.group

    def _now(self, entry: Entry) -> Extents:
        if entry.key not in self.reached:
            # Other tags name a collective, whose tile is that of the producer.
            keys = [k for k in self.reached if k[0] == entry.tensor]
            self.reached[entry.key] = dict(self.reached[keys[-1]]) if keys else {}
        return dict(self.reached[entry.key])

    def _grow(self, tile: Tile, position: int) -> None:
        extents = self.reached[tile.entries[position].key]
        for row in range(len(tile.entries[position].factors)):
            for dim, factor in self.mappings.row(tile, position, row).items():
                before = extents.setdefault(dim, 0.0)
                if not (isinstance(factor, float) and factor == 1.0):
                    extents[dim] = self.products.times(before, factor)


def _connect(
    builder: _Builder,
    tile: Tile,
    above: Mapping[tuple[str, str], Flow],
    flows: dict[int, tuple[Flow, ...]],
) -> None:
    """Add the flows of a node and of those below it; `above` are its parent's."""
    periods: dict[tuple[object, ...], Real] = {}
    node_flows = tuple(
        _flow(builder, tile, position, above, periods)
        for position in range(len(tile.entries))
    )
    flows[tile.index] = node_flows
    by_key = {flow.entry.key: flow for flow in node_flows}
    for child in tile.children:
        if isinstance(child, Tile):
            _connect(builder, child, by_key, flows)


def _flow(
    builder: _Builder,
    tile: Tile,
    position: int,
    above: Mapping[tuple[str, str], Flow],
    periods: dict[tuple[object, ...], Real],
) -> Flow:
    """Return the flow of one entry; a spatial one moves as often as that above it."""
    mappings, entry = builder.mappings, tile.entries[position]
    problem = mappings.template
    projection = problem.projection(entry.tensor, entry.tag)
    dims, multiply = relevant(projection), builder.products.of
    size = elements_of(projection, builder.below[tile.index][position], multiply)
    writes = problem.writes(entry.tensor, entry.tag)
    dependent = problem.is_dependent(entry.tensor)
    back = mappings.accumulates(tile, position)
    rows = [mappings.row(tile, position, row) for row in range(len(entry.factors))]
    if not tile.spatial:
        count = multiply(f for row in rows for f in row.values())
        moves = ratio(count, _cached_reuse(periods, tile.order, rows[0], dims))
        return Flow(entry, writes, dependent, size, count, moves, 1.0, 1.0, back)
    if (outer := above.get(entry.key)) is None:
        raise CostError(
            f"{tile.name} moves tensor {entry.tensor} for {entry.tag}, but the "
            "temporal node above it has no such entry; list it there, or price it by "
            "the model tool alone, which takes another tensor's counts"
        )
    spread = multiply(f for row in rows for f in row.values())
    unique = multiply(f for row in rows for dim, f in row.items() if dim in dims)
    return Flow(
        entry,
        writes,
        dependent,
        size,
        outer.iterations,
        outer.moves,
        spread,
        unique,
        back,
    )


def _cached_reuse(
    cache: dict[tuple[object, ...], Real],
    order: tuple[str, ...],
    factors: Extents,
    dims: frozenset[str],
) -> Real:
    """`reuse`, computed once for entries of a node that have the same factors."""
    key = *(identity(factors[dim]) for dim in order), dims
    if key not in cache:
        cache[key] = reuse(order, factors, dims)
    return cache[key]


def leaf_steps(mappings: Mappings, leaf: Leaf) -> Real:
    """
    How many tile primitives one iteration of a leaf's loops covers, at least 1.

    A dimension that the primitive lacks counts one primitive per position.
    """
    primitive = mappings.primitive(leaf)
    steps = [mappings.tile_steps(leaf, tensor) for tensor in leaf.tensors]
    result: Real = 1.0
    for dim in sorted(leaf_dims(mappings.template, leaf)):
        size = primitive.get(dim, 1.0)
        largest: Real = size
        for sizes in steps:
            largest = larger(largest, sizes.get(dim, size))
        if largest is not size:
            result = result * np.ceil(largest / size)
    return result


def leaf_dims(problem: Problem, leaf: Leaf) -> frozenset[str]:
    """The dimensions that some tensor of a leaf depends on."""
    op = problem.operation[leaf.operation]
    dims = [relevant(a.projection) for a in op.accesses]
    return frozenset(dim for found in dims for dim in found)
