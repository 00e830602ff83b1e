"""The temporal nodes around a leaf: in IR, and as nodes of a problem."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from comet.cost.accelerator.problem import Leaf, Node, Tile
from comet.dialects.schedule import TemporalOp

Path: TypeAlias = tuple[int, ...]
"""Indices of the temporal nodes of a problem around a leaf, outermost first."""


def nested(nodes: Sequence[TemporalOp]) -> Iterator[tuple[TemporalOp, ...]]:
    """Yield nodes, outermost first, grouped with the nodes nested in them."""
    group: tuple[TemporalOp, ...] = ()
    for node in nodes:
        if group and node.parent_op() is not group[-1]:
            yield group
            group = ()
        group = (*group, node)
    if group:
        yield group


def paths_of(node: Node, path: tuple[int, ...]) -> Iterator[tuple[Leaf, Path]]:
    """Yield each leaf below `node`, with the temporal nodes around it."""
    if isinstance(node, Leaf):
        yield node, path
    elif isinstance(node, Tile):
        inner = path if node.spatial else (*path, node.index)
        for child in node.children:
            yield from paths_of(child, inner)
