"""
Lower bounds, by the model `paper`, of the mappings that complete a partial tile tree.

Some nodes have their final loops, and so have all temporal nodes around them. The
others are *open*: they have no loops yet, and leaves below them have the remaining
extents. A node that several nests share, such as the root, may be open for the
operations of some of them only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

from comet.cost.accelerator.bindings import Group, lanes_of
from comet.cost.accelerator.compute import primitive_cycles
from comet.cost.accelerator.flow import Flow, Flows, leaf_steps
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.paper.latency import (
    Latency,
    collective_cost,
    group_streams,
    pipelined,
    visit_nodes,
)
from comet.cost.accelerator.paper.nest import (
    READ,
    WRITE,
    NestCost,
    Stream,
    nest_cost,
    stream_of,
)
from comet.cost.accelerator.problem import (
    Collective,
    Entry,
    Leaf,
    Node,
    Tile,
    walk_tiles,
)
from comet.cost.reals import Real, larger, longest, times, total

OpenLoops: TypeAlias = Collection[tuple[int, str]]
"""The open nodes, by index, each with an operation for which it is open."""


def least_cycles(
    mappings: Mappings, hardware: Hardware, flows: Flows, open_loops: OpenLoops
) -> Real:
    """
    Return a lower bound in cycles of every completion of `mappings`.

    `flows` are of `mappings`.

    Proof, from the leaves up. Let W be the cycles of one execution of a node without
    the first reads of it and of all nodes below, which reuse may save.

    - A unit: cutting a tile never lessens its work, since the ceilings of parts add up
      to at least the ceiling of the whole, and each part fills and drains the array.
    - An open node: its iterations repeat the nodes below, which take at least as long
      for all parts of a tile as for the whole tile. Its transfers cost at least 0;
      next to the root, its cycles are at least those for which the port of the root
      memory is busy. Cutting a transfer makes that no shorter: both memory and network
      take at least as long for k parts as for the whole.
    - A final node: its loops and the tiles that it moves are those of every completion.
      Its cycles grow with the work below: if the window of an iteration grows, its
      stall shrinks by at most as much. Other transfers on a shared port only shorten
      the window.
    - Groups that run one after the other add up; of groups that overlap, each is a
      bound for all. In a final node, a lane takes one iteration of every stage and
      repeats the longest; reuse leaves at least that of stages without first reads.
    - A node whose first reads count has the cycles of `latencies`, if no node below it
      is open.

    Reuse at a node saves at most the first reads below it. No node above those next to
    the root reuses tiles, so their first reads count.
    """
    return _Bound(Latency(mappings, hardware, flows), open_loops).root()


class _Bound:
    """The bounds of the nodes of a tree."""

    def __init__(self, state: Latency, open_loops: OpenLoops):
        self._state = state
        self._open_loops = open_loops

    def root(self) -> Real:
        """Return the bound of the tree, first reads of the outermost nodes included."""
        return self._tile(self._state.mappings.template.root, first_reads=True)

    def _node(self, node: Node) -> Real:
        match node:
            case Leaf():
                return 0.0
            case Collective():
                return collective_cost(self._state, node).cycles
            case Tile():
                return self._tile(node)

    def _tile(self, tile: Tile, *, first_reads: bool = False) -> Real:
        if first_reads and not any(map(self._is_open, walk_tiles(tile))):
            visit_nodes(self._state, tile)
            return self._state.nodes[tile.index].cycles
        if tile.is_leaf:
            return self._leaf(tile, first_reads=first_reads)
        lanes = [
            [self._group(tile, group, first_reads=first_reads) for group in lane]
            for lane in lanes_of(tile)
        ]
        if any(tile.index == index for index, _ in self._open_loops):
            return longest(stage for lane in lanes for stage in lane)
        iterations = self._state.flows.iterations(tile)
        return longest(
            lane[0] if len(lane) == 1 else pipelined(lane, iterations) for lane in lanes
        )

    def _leaf(self, tile: Tile, *, first_reads: bool) -> Real:
        state = self._state
        unit = state.hardware.level(tile.entries[0].destination)
        step = primitive_cycles(unit.unit, tile.leaf, state.mappings)
        iterations = state.flows.iterations(tile)
        work = iterations * leaf_steps(state.mappings, tile.leaf) * step
        if self._is_open(tile):
            return work
        flows = state.flows.flows[tile.index]
        streams = [stream_of(state.hardware, flow, hidden=True) for flow in flows]
        return self._nest(streams, iterations, work, first_reads=first_reads)

    def _group(self, tile: Tile, group: Group, *, first_reads: bool) -> Real:
        if tile.spatial:
            return self._repeated(tile, group, first_reads=first_reads)
        return total(
            self._member(tile, node, first_reads=first_reads) for node in group.members
        )

    def _member(self, tile: Tile, node: Node, *, first_reads: bool) -> Real:
        if isinstance(node, Tile) and node.spatial:
            return self._tile(node, first_reads=first_reads)
        if isinstance(node, Collective):
            return self._node(node) * self._state.flows.iterations(tile)
        group = Group((node,), fused=False)
        return self._repeated(tile, group, first_reads=first_reads)

    def _repeated(self, tile: Tile, group: Group, *, first_reads: bool) -> Real:
        iterations = self._state.flows.iterations(tile)
        work = iterations * total(self._node(node) for node in group.members)
        streams = group_streams(self._state, tile, group)
        hardware = self._state.hardware
        if self._is_open(tile):
            busy = port_cycles(hardware, streams) if first_reads else 0.0
            return longest((work, busy))
        return self._nest(streams, iterations, work, first_reads=first_reads)

    def _is_open(self, tile: Tile) -> bool:
        """Return whether `tile` is open for an operation whose tensors it moves."""
        return any((tile.index, e.tag) in self._open_loops for e in tile.entries)

    def _nest(
        self,
        streams: Sequence[Stream],
        iterations: Real,
        work: Real,
        *,
        first_reads: bool,
    ) -> Real:
        nest: NestCost = nest_cost(self._state.hardware, streams, iterations, work, {})
        return nest.cycles if first_reads else nest.cycles - nest.fill


def port_cycles(hardware: Hardware, streams: Iterable[Stream]) -> Real:
    """
    Return a lower bound of the cycles for which the port of the root memory is busy.

    A transfer occupies it until the network has delivered the tile.
    """
    root = hardware.levels[0]
    crossing = [s for s in streams if s.flow.entry.source == root.name]
    read, written = (
        total(times(s.flow.moves, s.further) for s in crossing if s.port == port)
        for port in (READ, WRITE)
    )
    return read + written if root.memory.one_bus else larger(read, written)


def whole_stream(
    hardware: Hardware,
    levels: tuple[str, str],
    elements: float,
    bits: int,
    instances: tuple[float, float],
    *,
    writes: bool,
) -> Stream:
    """
    Return a tensor as one transfer between two levels, the outer one first.

    `elements` are those of one instance's part, each of `bits` bits. `instances` has
    the number of instances that take part, and that of their different parts. Cutting
    the transfer makes it no shorter.
    """
    entry = Entry("", "", *levels, bits, accumulates=False, factors=())
    flow = Flow(entry, writes, False, elements, 1.0, 1.0, *instances, False)
    return stream_of(hardware, flow, hidden=True)
