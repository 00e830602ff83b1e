"""
The cost of children that overlap, as the COMET tool counts it.

The longest stage runs without a break. The cycles of other stages before its first and
after its last iteration are added, and so are the cycles by which the busiest shared
port exceeds that.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from comet.cost.accelerator.problem import Collective, Tile
from comet.cost.accelerator.tool.levels import NodeTotals
from comet.cost.accelerator.tool.state import Latency
from comet.cost.accelerator.tool.streams import u32


@dataclass(frozen=True, slots=True)
class _Stage:
    """One stage of a pipeline: its cycles in all, and its cost by iteration."""

    total: int
    totals: NodeTotals | None
    """None for a collective, which has no ramps."""

    def slot(self, position: int, iterations: int) -> int:
        """Cycles of the stage's iteration `position`."""
        if self.totals is None:
            return self.total // iterations
        cycles = self.totals.compute // iterations + int(self.totals.stalls[position])
        if position == 0:
            cycles += self.totals.ramp_up
        elif position == iterations - 1:
            cycles += self.totals.ramp_down
        return u32(cycles)


def pipeline_cycles(state: Latency, tile: Tile) -> int:
    """Cycles of one execution of a node whose children are not all sequential."""
    stages = _stages(state, tile)
    iterations = state.iterations(tile)
    longest = max(range(len(stages)), key=lambda i: (stages[i].total, -i))
    last = iterations + len(stages) - 1
    leftover = 0
    for slot in (*range(longest), *range(longest + iterations, last)):
        active = [
            stage.slot(slot - position, iterations)
            for position, stage in enumerate(stages)
            if position != longest and 0 <= slot - position < iterations
        ]
        leftover += max(active, default=0)
    without = u32(stages[longest].total + leftover)
    return u32(without + _conflicts(state, tile, without))


def _stages(state: Latency, tile: Tile) -> list[_Stage]:
    if tile.spatial:
        return [
            _Stage(cost.totals.cycles, cost.totals) for cost in state.groups[tile.index]
        ]
    stages: list[_Stage] = []
    costs = {c.group.members[0].index: c for c in state.groups.get(tile.index, ())}
    for child in tile.children:
        if isinstance(child, Collective):
            cost = costs.get(child.index)
            charged = (
                cost.totals.compute if cost is not None and not cost.group.fused else 0
            )
            stages.append(_Stage(charged, None))
        else:
            stages += [
                _Stage(cost.totals.cycles, cost.totals)
                for cost in state.groups.get(child.index, ())
            ]
    return stages


def _conflicts(state: Latency, tile: Tile, without: int) -> int:
    """
    Return the cycles by which the busiest port of each tree depth exceeds `without`.

    A port that only one stage uses does not count.
    """
    needed: dict[int, dict[tuple[str, int], list[int]]] = {}
    counts: dict[int, int] = {}
    queue = deque([(tile, 0)])
    while queue:
        node, depth = queue.popleft()
        counts[depth] = state.iterations(node)
        for cost in state.groups.get(node.index, ()):
            for level, ports in cost.records.items():
                for port, record in enumerate(ports):
                    busy = record.busy + (record.ramp_down if port else record.ramp_up)
                    if busy > 0:
                        needed.setdefault(depth, {}).setdefault(
                            (level, port), []
                        ).append(busy)
        for child in node.children:
            if isinstance(child, Tile):
                queue.append((child, depth if _same_level(node, child) else depth + 1))
    extra = 0
    for depth, ports in needed.items():
        scale = 1
        for above in range(depth):
            scale *= counts[above]
        shared = [u32(sum(uses) * scale) for uses in ports.values() if len(uses) > 1]
        extra += max(0, max(shared, default=0) - without)
    return extra


def _same_level(parent: Tile, child: Tile) -> bool:
    """
    Whether a spatial child moves some entry from the level its parent moves it from.
    """
    above = {e.key: e.source for e in reversed(parent.entries)}
    return child.spatial and any(
        above.get(e.key, e.source) == e.source for e in child.entries
    )
