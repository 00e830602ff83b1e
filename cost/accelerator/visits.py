"""The executions of every node of a mapping, and the instances that run it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from comet.cost.accelerator.flow import Flow, Flows
from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.problem import Node, Tile
from comet.cost.reals import Real, longest, times


@dataclass(frozen=True)
class Visit:
    """One node with its executions and instances."""

    node: Node
    flows: tuple[Flow, ...]
    """The entries the node itself moves; none for a collective or an operation."""
    runs: Real
    """Executions, one after the other, on one instance."""
    copies: Real
    """Instances that run it at the same time."""
    iterations: Real
    """Iterations of one execution."""

    @cached_property
    def executions(self) -> Real:
        """Executions on all instances."""
        return times(self.runs, self.copies)

    @cached_property
    def moved(self) -> tuple[Real, ...]:
        """Bytes of each flow that one instance moves in all its executions."""
        return tuple(times(self.runs, flow.bytes_moved) for flow in self.flows)


def visits(mappings: Mappings, flows: Flows) -> Iterator[Visit]:
    """Every tile node and collective of a mapping, parents first."""
    yield from _visit(flows, mappings.template.root, 1.0, 1.0)


def _visit(flows: Flows, node: Node, runs: Real, copies: Real) -> Iterator[Visit]:
    if not isinstance(node, Tile):
        yield Visit(node, (), runs, copies, 1.0)
        return
    iterations = flows.iterations(node)
    moved = moved_flows(flows, node)
    yield Visit(node, moved, runs, copies, iterations)
    if node.is_leaf:
        return
    spread = longest((1.0, *(flow.spatial for flow in moved)))
    for child in node.children:
        iterates = not node.spatial and isinstance(child, Tile) and child.spatial
        repeats = 1.0 if iterates else iterations  # a spatial child has them itself
        yield from _visit(flows, child, times(runs, repeats), times(copies, spread))


def moved_flows(flows: Flows, tile: Tile) -> tuple[Flow, ...]:
    """The flows that a node moves itself: a spatial child moves those of its parent."""
    listed = flows.flows[tile.index]
    if tile.spatial or tile.is_leaf:
        return listed
    bare = [c for c in tile.children if isinstance(c, Tile) and not c.spatial]
    tags = {entry.tag for child in bare for entry in child.entries}
    return tuple(flow for flow in listed if flow.entry.tag in tags)
