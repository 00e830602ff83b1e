"""
The minimum cut of a directed graph, by augmenting paths.

J. Edmonds and R. M. Karp, "Theoretical improvements in algorithmic efficiency for
network flow problems", Journal of the ACM 19(2), 1972.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

NodeT = TypeVar("NodeT", bound=Hashable)


def minimum_cut(
    edges: Iterable[tuple[NodeT, NodeT, float]], source: NodeT, sink: NodeT
) -> tuple[frozenset[NodeT], float]:
    """
    Return the nodes on the side of `source`, and the cost of the cut.

    Each edge is (from, to, cost if it is cut). Costs may be infinite, but at least one
    cut must have a finite cost. Of cuts with equal costs, it is the one with the fewest
    nodes on the side of `source`.
    """
    residual: defaultdict[NodeT, dict[NodeT, float]] = defaultdict(dict)
    for start, end, cost in edges:
        residual[start][end] = residual[start].get(end, 0.0) + cost
        residual[end].setdefault(start, 0.0)
    flow = 0.0
    while sink in (came_from := _reached(residual, source)):
        path = [sink]
        while path[-1] != source:
            path.append(came_from[path[-1]])
        steps = [(path[i + 1], path[i]) for i in range(len(path) - 1)]
        bottleneck = min(residual[start][end] for start, end in steps)
        for start, end in steps:
            residual[start][end] -= bottleneck
            residual[end][start] += bottleneck
        flow += bottleneck
    return frozenset(came_from), flow


def _reached(
    residual: Mapping[NodeT, Mapping[NodeT, float]], source: NodeT
) -> dict[NodeT, NodeT]:
    """Return the nodes reachable over edges with capacity left, with predecessors."""
    came_from, pending = {source: source}, deque([source])
    while pending:
        start = pending.popleft()
        for end, cost in residual.get(start, {}).items():
            if cost > 0 and end not in came_from:
                came_from[end] = start
                pending.append(end)
    return came_from
