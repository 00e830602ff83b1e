"""
What `paper` says at least about the mappings that complete a part of a tile tree.

Some nodes have their final loops, and so have all temporal nodes around them. The
others are *open*: they have no loops yet, and leaves below them have all that is left.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from comet.cost.accelerator.bindings import Group, lanes_of
from comet.cost.accelerator.compute import primitive_cycles
from comet.cost.accelerator.flow import Flows, leaf_steps
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.paper.latency import (
    Latency,
    collective_cost,
    group_streams,
)
from comet.cost.accelerator.paper.nest import (
    READ,
    WRITE,
    NestCost,
    Stream,
    nest_cost,
    stream_of,
)
from comet.cost.accelerator.problem import Collective, Leaf, Node, Tile
from comet.cost.reals import Real, larger, longest, total


def least_cycles(
    mappings: Mappings, hardware: Hardware, flows: Flows, final: Collection[int]
) -> Real:
    """
    Return a lower bound in cycles of every completion of `mappings`.

    `final` are the indices of the nodes that are not open; `flows` are of `mappings`.

    Proof, from the leaves up. Let W be the cycles of one execution of a node without
    the first reads of it and of all nodes below, which reuse may save.

    - A unit: cutting a tile never lessens its work, since the ceilings of parts add up
      to at least the ceiling of the whole, and each part fills and drains the array.
    - An open node: its iterations repeat what is below, and what is below for the
      whole tile is at most that for all of its parts. Its transfers cost at least
      nothing; next to the root, all of the tile crosses the port of the root memory.
    - A final node: its loops and the tiles that it moves are those of every completion.
      Its cycles grow with the work below: a stall shrinks by at most what the window of
      its iteration grows. Other transfers on a shared port only shorten the window.
    - Groups in turn add up; of groups that overlap, each is a bound for all.

    What reuse saves at a node is at most the first reads below it. The nodes next to
    the root are below none that reuses, so their first reads count.
    """
    return _Bound(Latency(mappings, hardware, flows), frozenset(final)).root()


class _Bound:
    """The bounds of the nodes of a tree."""

    def __init__(self, state: Latency, final: frozenset[int]):
        self._state = state
        self._final = final

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
        if tile.is_leaf:
            return self._leaf(tile, first_reads=first_reads)
        lanes = lanes_of(tile)
        groups = [group for lane in lanes for group in lane]
        return longest(
            self._group(tile, group, first_reads=first_reads) for group in groups
        )

    def _leaf(self, tile: Tile, *, first_reads: bool) -> Real:
        state = self._state
        unit = state.hardware.level(tile.entries[0].destination)
        step = primitive_cycles(unit.unit, tile.leaf, state.mappings)
        iterations = state.flows.iterations(tile)
        work = iterations * leaf_steps(state.mappings, tile.leaf) * step
        if tile.index not in self._final:
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
        if self._loops_of(tile) not in self._final:
            return longest((work, self._crossing(streams))) if first_reads else work
        return self._nest(streams, iterations, work, first_reads=first_reads)

    def _loops_of(self, tile: Tile) -> int:
        """Return the temporal node whose loops `tile` runs."""
        parent = self._state.mappings.template.parent.get(tile.index)
        return parent.index if tile.spatial and parent is not None else tile.index

    def _crossing(self, streams: Sequence[Stream]) -> Real:
        """Return how long the port of the root memory is busy with whole tiles."""
        root = self._state.hardware.levels[0]
        moved: dict[int, Real] = {READ: 0.0, WRITE: 0.0}
        for stream in streams:
            flow = stream.flow
            if flow.entry.source == root.name:
                size = flow.size * flow.unique * flow.element_bytes
                moved[stream.port] = moved[stream.port] + size
        read = moved[READ] / root.memory.child_read_bandwidth
        written = moved[WRITE] / root.memory.child_write_bandwidth
        return read + written if root.memory.one_bus else larger(read, written)

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
