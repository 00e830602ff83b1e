"""How a `compound.fold` is evaluated: its chunks, and the tree of merges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Steps:
    """Fold chunks of these sizes (elements) one after another, from the init args."""

    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Merge:
    """Merge the partial results of two trees; the left one has the first elements."""

    left: FoldTree
    right: FoldTree


FoldTree: TypeAlias = "Steps | Merge"
"""The order in which a fold reads its dimension."""


def whole(extent: int) -> FoldTree:
    """Return the tree of one step that reads the whole dimension."""
    return Steps((extent,))


def elements(tree: FoldTree) -> int:
    """Return the number of elements that a tree reads."""
    if isinstance(tree, Steps):
        return sum(tree.sizes)
    return elements(tree.left) + elements(tree.right)
