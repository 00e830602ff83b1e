"""Graphs: what edges lead to, components, and an order with producers first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from typing import TypeVar

NodeT = TypeVar("NodeT", bound=Hashable)


def reachable(
    starts: Iterable[NodeT], following: Callable[[NodeT], Iterable[NodeT]]
) -> Iterator[NodeT]:
    """
    Yield `starts` and all nodes that edges lead to from these, each once.

    `following` gives the nodes to which a node has edges. The order is depth-first.
    """
    seen, pending = set[NodeT](), list(starts)
    while pending:
        if (node := pending.pop()) not in seen:
            seen.add(node)
            yield node
            pending += following(node)


def components(
    nodes: Sequence[NodeT], neighbours: Callable[[NodeT], Iterable[NodeT]]
) -> Iterator[tuple[NodeT, ...]]:
    """
    Yield `nodes` in groups between which there are no edges, each in their order.

    `neighbours` gives the nodes with an edge to or from a node, also others than
    `nodes`.
    """
    known = set[NodeT]()
    for node in nodes:
        if node not in known:
            found = set(reachable((node,), neighbours))
            known |= found
            yield tuple(each for each in nodes if each in found)


def topological_order(
    nodes: Sequence[NodeT], producers: Callable[[NodeT], Iterable[NodeT]]
) -> Iterator[NodeT]:
    """
    Yield each of `nodes` after its `producers` among them.

    Of the nodes that may come next, it is always the first one in `nodes`. Raises
    `graphlib.CycleError` before the first node if some depend on each other.
    """
    number = {node: index for index, node in enumerate(nodes)}
    sorter = TopologicalSorter(
        {node: [each for each in producers(node) if each in number] for node in nodes}
    )
    sorter.prepare()
    ready: list[int] = []
    while sorter:
        for node in sorter.get_ready():
            heappush(ready, number[node])
        yield (first := nodes[heappop(ready)])
        sorter.done(first)
