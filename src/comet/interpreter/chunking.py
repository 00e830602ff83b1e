"""How a `compound.fold` is carried out: the chunks, and the tree of merges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Steps:
    """Fold chunks of these sizes (elements) one after another, from the init."""

    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Merge:
    """Merge the partials of two trees; the left one holds the first elements."""

    left: FoldTree
    right: FoldTree


FoldTree: TypeAlias = "Steps | Merge"
"""The order in which a fold consumes its dimension."""


def whole(extent: int) -> FoldTree:
    """Return the tree of one step that takes the whole dimension."""
    return Steps((extent,))


def elements(tree: FoldTree) -> int:
    """Return the number of elements that a tree consumes."""
    if isinstance(tree, Steps):
        return sum(tree.sizes)
    return elements(tree.left) + elements(tree.right)
