"""
Lower bounds, by the model `paper`, of the mappings that complete a partial tile tree.

Some nodes have their final loops, and so have all temporal nodes around them. The
others are *open*: they have no loops yet, and leaves below them have the remaining
extents. A node that several nests share, such as the root, may be open for the
operations of some of them only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from comet.cost.accelerator.bindings import Group, lanes_of
from comet.cost.accelerator.compute import primitive_cycles
from comet.cost.accelerator.flow import Flow, Flows, leaf_steps
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.legality import check_rates
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.paper.fills import (
    Fills,
    fills_of,
    longest_fill,
    longest_once,
    nested_fills,
)
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
    what reuse above it may save: of the first reads of each node below, and of its own,
    those of tiles that are read once.

    - A unit: cutting a tile never lessens its work, since the ceilings of parts add up
      to at least the ceiling of the whole, and each part fills and drains the array.
    - An open node: its iterations repeat the nodes below, which take at least as long
      for all parts of a tile as for the whole tile. Its transfers cost at least 0;
      next to the root, its cycles are at least those for which the port of the root
      memory is busy. Cutting a transfer makes that no shorter: both memory and network
      take at least as long for k parts as for the whole.
    - A final node: its loops and the tiles that it moves are those of every completion.
      Let f(w) be the work w of its n iterations, with their stalls. If the window of an
      iteration grows, its stall shrinks by at most as much, so f grows, by no more than
      w. Other transfers on a shared port only shorten the window. Let M be the most
      that reuse saves below, once. The node saves S of its work, and nodes above save N
      of M, the part of tiles that it reads once; that part is not in S in the first
      iteration, so S + N is at most n M. Its work is then at least n W + N, W that of
      the nodes below. Nodes above save N even where a stall hides these reads; what is
      left is at least f(n W + N) - N, which shrinks if N grows. So N may be too large:
      first reads of whole tiles, as parts take no longer. Its own first reads are left
      as far as tiles are read more than once.
    - Groups that run one after the other add up; of groups that overlap, each is a
      bound for all. In a final node, a lane takes one iteration of every stage and
      repeats the longest; reuse leaves at least that of stages without first reads.
    - A node whose first reads count has the cycles of `latencies`, if no node below it
      is open.

    No node above those next to the root reuses tiles, so their first reads count.
    """
    return _Bound(Latency(mappings, hardware, flows), open_loops).root()


@dataclass(frozen=True)
class _Least:
    """One execution of a node."""

    cycles: Real
    """At least these, less what reuse above saves."""
    fills: tuple[Fills, ...] = ()
    """The first reads that it may save, at most; whole tiles in open nodes."""

    @staticmethod
    def one_after_other(parts: Sequence[_Least]) -> _Least:
        """Return the sum of several executions."""
        fills = tuple(fills for part in parts for fills in part.fills)
        return _Least(total(part.cycles for part in parts), fills)


class _Bound:
    """The bounds of the nodes of a tree."""

    def __init__(self, state: Latency, open_loops: OpenLoops):
        self._state = state
        self._open_loops = open_loops

    def root(self) -> Real:
        """Return the bound of the tree, first reads of the outermost nodes included."""
        root = self._state.mappings.template.root
        return self._tile(root, first_reads=True).cycles

    def _node(self, node: Node) -> _Least:
        match node:
            case Leaf():
                return _Least(0.0)
            case Collective():
                return _Least(collective_cost(self._state, node).cycles)
            case Tile():
                return self._tile(node)

    def _tile(self, tile: Tile, *, first_reads: bool = False) -> _Least:
        if first_reads and not any(map(self._is_open, walk_tiles(tile))):
            visit_nodes(self._state, tile)
            return _Least(self._state.nodes[tile.index].cycles)
        if tile.is_leaf:
            return self._leaf(tile, first_reads=first_reads)
        lanes = [
            [self._group(tile, group, first_reads=first_reads) for group in lane]
            for lane in lanes_of(tile)
        ]
        fills = tuple(f for lane in lanes for stage in lane for f in stage.fills)
        cycles = [[stage.cycles for stage in lane] for lane in lanes]
        if any(tile.index == index for index, _ in self._open_loops):
            return _Least(longest(stage for lane in cycles for stage in lane), fills)
        iterations = self._state.flows.iterations(tile)
        lanes_take = longest(
            lane[0] if len(lane) == 1 else pipelined(lane, iterations)
            for lane in cycles
        )
        return _Least(lanes_take, fills)

    def _leaf(self, tile: Tile, *, first_reads: bool) -> _Least:
        state = self._state
        unit = state.hardware.level(tile.entries[0].destination)
        step = primitive_cycles(unit.unit, tile.leaf, state.mappings)
        iterations = state.flows.iterations(tile)
        work = iterations * leaf_steps(state.mappings, tile.leaf) * step
        flows = state.flows.flows[tile.index]
        streams = [stream_of(state.hardware, flow, hidden=True) for flow in flows]
        if self._is_open(tile):
            return _Least(work, (fills_of(streams),))
        return self._nest(streams, iterations, _Least(work), first_reads=first_reads)

    def _group(self, tile: Tile, group: Group, *, first_reads: bool) -> _Least:
        if tile.spatial:
            return self._repeated(tile, group, first_reads=first_reads)
        parts = [self._member(tile, n, first_reads=first_reads) for n in group.members]
        return _Least.one_after_other(parts)

    def _member(self, tile: Tile, node: Node, *, first_reads: bool) -> _Least:
        if isinstance(node, Tile) and node.spatial:
            return self._tile(node, first_reads=first_reads)
        if isinstance(node, Collective):
            iterations = self._state.flows.iterations(tile)
            return _Least(self._node(node).cycles * iterations)
        group = Group((node,), fused=False)
        return self._repeated(tile, group, first_reads=first_reads)

    def _repeated(self, tile: Tile, group: Group, *, first_reads: bool) -> _Least:
        iterations = self._state.flows.iterations(tile)
        once = _Least.one_after_other([self._node(node) for node in group.members])
        streams = group_streams(self._state, tile, group)
        work = replace(once, cycles=iterations * once.cycles)
        if self._is_open(tile):
            hardware = self._state.hardware
            busy = port_cycles(hardware, streams) if first_reads else 0.0
            fills = fills_of(streams), *nested_fills(streams, once.fills)
            return _Least(longest((work.cycles, busy)), fills)
        return self._nest(streams, iterations, work, first_reads=first_reads)

    def _is_open(self, tile: Tile) -> bool:
        """Return whether `tile` is open for an operation whose tensors it moves."""
        return any((tile.index, e.tag) in self._open_loops for e in tile.entries)

    def _nest(
        self,
        streams: Sequence[Stream],
        iterations: Real,
        work: _Least,
        *,
        first_reads: bool,
    ) -> _Least:
        """Return the bound of a final node; `work` has all of its iterations."""
        hardware, least = self._state.hardware, work.cycles
        if first_reads:
            return _Least(nest_cost(hardware, streams, iterations, least, {}).cycles)
        own, nested = fills_of(streams), nested_fills(streams, work.fills)
        hidden = total(longest_once(fills) for fills in nested)
        nest = nest_cost(hardware, streams, iterations, least + hidden, {})
        again = longest_fill(own, {fill.key: 1.0 for fill in own})
        return _Least(nest.cycles - nest.fill + again - hidden, (own, *nested))


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
    the transfer makes it no shorter. Raises CostError if the hardware file lacks a rate
    between the levels.
    """
    check_rates("a tensor moves", hardware, levels, writes=writes)
    entry = Entry("", "", *levels, bits, accumulates=False, factors=())
    flow = Flow(entry, writes, False, elements, 1.0, 1.0, *instances, False)
    return stream_of(hardware, flow, hidden=True)
