"""The state of the tool's model while it walks a mapping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from comet.cost.accelerator.bindings import Group
from comet.cost.accelerator.hardware import Hardware
from comet.cost.accelerator.problem import Leaf, Problem, Tile
from comet.cost.accelerator.tool.levels import LevelRecords, NodeTotals
from comet.cost.accelerator.tool.nest import Nests
from comet.cost.accelerator.tool.network import CollectiveCost
from comet.cost.accelerator.tool.streams import Stream


@dataclass(frozen=True)
class GroupCost:
    """The cost of a node for one group of children."""

    group: Group
    records: LevelRecords
    totals: NodeTotals
    streams: tuple[Stream, ...] = ()


@dataclass
class Latency:
    """The cost of every node, by node index."""

    problem: Problem
    hardware: Hardware
    nests: Nests
    cycles: dict[int, int] = field(default_factory=dict[int, int])
    groups: dict[int, tuple[GroupCost, ...]] = field(
        default_factory=dict[int, "tuple[GroupCost, ...]"]
    )
    collectives: dict[int, CollectiveCost] = field(
        default_factory=dict[int, CollectiveCost]
    )
    ramps: dict[int, dict[tuple[str, str], int]] = field(
        default_factory=dict[int, "dict[tuple[str, str], int]"]
    )
    reuse: dict[int, dict[tuple[str, str], tuple[int, int]]] = field(
        default_factory=dict[int, "dict[tuple[str, str], tuple[int, int]]"]
    )
    """Reuse and moves of every entry of a spatial or leaf node."""

    def iterations(self, tile: Tile) -> int:
        """The largest iteration count among a node's entries."""
        return self.nests.iterations(tile)


def node_cycles(state: Latency) -> Mapping[str, int]:
    """
    Cycles of one execution of every node, by the node's name in the tool's report.
    """
    return {
        n.name: state.cycles.get(n.index, 0)
        for n in state.problem.nodes
        if not isinstance(n, Leaf)
    }
