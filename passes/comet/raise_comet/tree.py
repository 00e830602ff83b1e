"""The nodes of a COMET mapping as a tile tree: factors, levels, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import prod
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from comet.dialects.comet import CollectiveOp, OperationOp, ProblemOp, TileOp
from comet.dialects.comet.attributes import MovedTensor
from comet.dialects.schedule.attributes import LoopAttr
from comet.passes.comet.raise_comet.raised_block import (
    MESH,
    NotRaisable,
    RaisedBlock,
    dims_of,
)
from comet.passes.schedule.tile_tree import Leaf, Levels, Node, Spatial, Temporal, Tree

DIRECTIONS = ("x", "y", "z")
"""The names of a spatial node's axes, before the depth of the node."""


Child: TypeAlias = TileOp | OperationOp | CollectiveOp
Group: TypeAlias = tuple[tuple[LoopAttr, ...], list[Child]]
"""Loops, outermost first, and the children in them."""


@dataclass(frozen=True)
class RaisedNode:
    """A node of the tile tree, its tile in the mapping, and its children."""

    node: Tree
    tile: TileOp | None
    """None for a leaf."""
    loops: tuple[LoopAttr, ...]
    """The loops of a temporal node, outermost first."""
    children: tuple[RaisedNode, ...]

    def walk(self) -> Iterator[RaisedNode]:
        """Yield the node and its descendants, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class MappingTree:
    """A mapping, read as a tile tree."""

    problem: ProblemOp
    root: TileOp

    @cached_property
    def axes(self) -> dict[str, int]:
        """
        The mesh of the spatial nodes; `x0` is the first axis of the outermost.

        Raises NotRaisable if two nodes of one depth use a different part of it, or one
        axis splits two dimensions.
        """
        axes: dict[str, int] = {}
        for tile, depth in _spatial_nodes(self.root):
            for axis, factors in self.rows(tile, depth):
                used = [factor for factor in factors.values() if factor > 1]
                if len(used) > 1:
                    raise NotRaisable(f"{title(tile)} splits two dimensions in one row")
                size, expected = prod(used), axes.get(axis, 1)
                if 1 not in (size, expected) and size != expected:
                    raise NotRaisable(
                        f"{title(tile)} spreads over {size} instances where another "
                        f"node takes {expected}"
                    )
                axes[axis] = max(expected, size)
        return axes

    @cached_property
    def level_axes(self) -> dict[str, tuple[str, ...]]:
        """The mesh axes of the instances of each level below one parent."""
        return {
            entry.child: tuple(axis for axis, _ in self.rows(tile, depth))
            for tile, depth in _spatial_nodes(self.root)
            for entry in tile.entries
        }

    @cached_property
    def axis_levels(self) -> dict[str, str]:
        """
        The level at which the instances of each mesh axis begin.

        The buffers of one core have the same axes: of these it is the one whose
        instances a collective joins, otherwise the first column's.
        """
        joined = {
            level.data
            for op in self.root.walk()
            if isinstance(op, CollectiveOp)
            for level in op.src
        }
        found: dict[str, str] = {}
        for level, axes in self.level_axes.items():
            for axis in axes:
                if axis not in found or (level in joined and found[axis] not in joined):
                    found[axis] = level
        return found

    def group_of(self, node: CollectiveOp) -> tuple[str, ...]:
        """
        Return the mesh axes whose instances a collective joins.

        These are the axes of its sources that have several instances. If
        `spatial_factor` counts fewer, they are those that split its dimension. Raises
        NotRaisable if there are none, or if they have another number of instances.
        """
        tag = node.tag.data
        levels = [level.data for level in node.src]
        for level in levels:
            if level not in self.level_axes:
                raise NotRaisable(
                    f"collective {tag} joins instances of {level}, to which no spatial "
                    "node spreads"
                )
        axes = dict.fromkeys(a for level in levels for a in self.level_axes[level])
        group = tuple(axis for axis in axes if self.axes[axis] > 1) or tuple(axes)
        count = node.spatial_factor.value.data if node.spatial_factor else 0
        if count in (0, self._size(group)):
            return group
        dim = node.dimension.data if node.dimension else ""
        split = tuple(axis for axis in group if dim in self._axis_dims[axis])
        if self._size(split) != count or not split:
            raise NotRaisable(
                f"collective {tag} joins {count} instances, and the nodes spread "
                f"{dim or 'its tensor'} over {self._size(split)}"
            )
        return split

    def _size(self, axes: Sequence[str]) -> int:
        return prod(self.axes[axis] for axis in axes)

    @cached_property
    def _axis_dims(self) -> dict[str, set[str]]:
        """The dimensions that each mesh axis splits in some node."""
        found: dict[str, set[str]] = {axis: set() for axis in self.axes}
        for tile, depth in _spatial_nodes(self.root):
            for axis, factors in self.rows(tile, depth):
                found[axis] |= {dim for dim, factor in factors.items() if factor > 1}
        return found

    @cached_property
    def bits(self) -> int:
        """The widest precision of any column."""
        return max(e.precision for t, _ in tiles_below(self.root, 0) for e in t.entries)

    def rows(self, tile: TileOp, depth: int) -> list[tuple[str, dict[str, int]]]:
        """Return the axis of each row of a spatial node, and the factors on it."""
        count = len(tile.entries[0].factors)
        if count > len(DIRECTIONS):
            raise NotRaisable(f"{title(tile)} has {count} rows")
        return [
            (f"{DIRECTIONS[row]}{depth}", self.factors(tile, row))
            for row in range(count)
        ]

    def factors(
        self, tile: TileOp, row: int, tags: AbstractSet[str] | None = None
    ) -> dict[str, int]:
        """
        Return the factor of each dimension in one row, on which its columns agree.

        Only tensors with the dimension count; if there is none, as in a node whose
        operands stay in the instances, those of operations with the dimension do. With
        `tags` only the columns of these operations count. Raises NotRaisable if two
        columns disagree.
        """
        factors: dict[str, int] = {}
        entries = [e for e in tile.entries if tags is None or e.tag in tags]
        for dim in tile.permutation.data:
            having = [e for e in entries if dim in dims_of(self.problem, e.tensor)] or [
                e for e in entries if dim in self._operation_dims.get(e.tag, ())
            ]
            named = {_factor(entry, row, dim): entry.tensor for entry in having}
            if len(named) > 1:
                first, second = list(named.values())[:2]
                raise NotRaisable(
                    f"{title(tile)} cuts {dim} differently for {first} and {second}"
                )
            factors[dim] = next(iter(named), 1)
        return factors

    @cached_property
    def _operation_dims(self) -> dict[str, frozenset[str]]:
        """The dimensions of each operation's tensors; the files may declare more."""
        return {
            op.operation.data: frozenset(
                chain.from_iterable(
                    axis for access in op.accesses for axis in access.projection
                )
            )
            for op in self.problem.declarations
        }

    def trees(self, raised: RaisedBlock) -> Iterator[RaisedNode]:
        """Yield the nodes of the mapping's root: one, or one per group of children."""
        yield from self._temporal(raised, self.root, 0)

    def _node(
        self, raised: RaisedBlock, tile: TileOp, depth: int
    ) -> Iterator[RaisedNode]:
        if tile.is_temporal:
            yield from self._temporal(raised, tile, depth)
            return
        below = self._children(raised, tile.children, depth + 1)
        loops = tuple(
            self._spatial_loop(tile, axis, factors)
            for axis, factors in self.rows(tile, depth)
        )
        inner = tuple(raised.node for raised in below)
        node = Spatial(_level(tile), MESH, loops, inner)
        yield RaisedNode(node, tile, (), below)

    def _temporal(
        self, raised: RaisedBlock, tile: TileOp, depth: int
    ) -> Iterator[RaisedNode]:
        """Yield the node of a temporal tile, or one for each group of children."""
        for loops, children in self._groups(tile):
            below = self._children(raised, children, depth)
            node = Temporal(_level(tile), tuple(raised.node for raised in below))
            yield RaisedNode(node, tile, loops, below)

    def _children(
        self, raised: RaisedBlock, children: Sequence[Child], depth: int
    ) -> tuple[RaisedNode, ...]:
        found: list[RaisedNode] = []
        for child in children:
            if isinstance(child, TileOp):
                found += self._node(raised, child, depth)
            else:
                found.append(RaisedNode(Leaf((raised.of_node[child],)), None, (), ()))
        return tuple(found)

    def _groups(self, tile: TileOp) -> list[Group]:
        """
        Group the children of a temporal tile by their loops.

        All are in one nest if their columns agree; otherwise each has its own nest, and
        a collective stays with the node before it.
        """
        groups: list[Group] = []
        for child in tile.children:
            tags = _tags(child) & {entry.tag for entry in tile.entries}
            if groups and not tags:
                groups[-1][1].append(child)
                continue
            factors = self.factors(tile, 0, tags or None)
            order = reversed(tile.permutation.data)
            loops = tuple(LoopAttr(d, factors[d]) for d in order if factors[d] > 1)
            groups.append((loops, [child]))
        if len({loops for loops, _ in groups}) > 1:
            return groups
        return [(groups[0][0], [child for _, children in groups for child in children])]

    def _spatial_loop(
        self, tile: TileOp, axis: str, factors: Mapping[str, int]
    ) -> LoopAttr:
        """Return the loop of one axis; an idle one names any dimension of the node."""
        for dim, factor in factors.items():
            if factor > 1:
                return LoopAttr(dim, factor, axis)
        idle = next(d for e in tile.entries for d in dims_of(self.problem, e.tensor))
        return LoopAttr(idle, 1, axis)

    def check_parents(self) -> None:
        """Raise NotRaisable for a column of a spatial node that its parent has not."""
        for tile, _ in _spatial_nodes(self.root):
            parent = tile.parent_op()
            listed = {e.tensor for e in _entries(parent)}
            for entry in tile.entries:
                if entry.tensor not in listed:
                    raise NotRaisable(
                        f"{title(tile)} moves tensor {entry.tensor}, which the node "
                        "above it does not have"
                    )


def _entries(op: Operation | None) -> tuple[MovedTensor, ...]:
    return op.entries if isinstance(op, TileOp) else ()


def tiles_below(tile: TileOp, depth: int) -> Iterator[tuple[TileOp, int]]:
    """Yield `tile` and its descendants, parents first, with their spatial depth."""
    yield tile, depth
    below = depth if tile.is_temporal else depth + 1
    for child in tile.children:
        if isinstance(child, TileOp):
            yield from tiles_below(child, below)


def _spatial_nodes(root: TileOp) -> Iterator[tuple[TileOp, int]]:
    """Yield the spatial nodes of a tree, parents first, with their spatial depth."""
    return ((t, depth) for t, depth in tiles_below(root, 0) if not t.is_temporal)


def _tags(child: Child) -> frozenset[str]:
    """Return the operations of a node and its descendants."""
    if isinstance(child, OperationOp):
        return frozenset((child.operation.data,))
    if isinstance(child, CollectiveOp):
        return frozenset()
    return frozenset[str]().union(*map(_tags, child.children))


def _factor(entry: MovedTensor, row: int, dim: str) -> int:
    return dict(entry.factors[row]).get(dim, 1)


def title(tile: TileOp) -> str:
    """Return the name of a node in errors."""
    tensors = ", ".join(dict.fromkeys(entry.tensor for entry in tile.entries))
    return f"the {tile.kind.data} node of {tensors} at {tile.entries[0].target}"


def _level(tile: TileOp) -> str:
    entry = tile.entries[0]
    return entry.target if tile.is_temporal else entry.child


@dataclass(frozen=True)
class MappingLevels(Levels):
    """The level of each tensor in the body of each node of a mapping."""

    mapping: MappingTree
    raised: RaisedBlock
    tiles: Mapping[int, TileOp]
    """The tile of each node of the tree, by identity."""

    def at(self, value: SSAValue, node: Node | None) -> str:
        name = self.raised.names[value]
        if node is None:
            return self.mapping.root.entries[0].target
        tile = self.tiles[id(node)]
        return _body_level(tile, name) or _level(tile)


def _body_level(tile: TileOp, tensor: str) -> str | None:
    """
    Return the level of a tensor in the body of `tile`; None if nothing there has it.

    In a temporal node it is the level from which the spatial nodes below fetch it, and
    if none does, its level below: it stays in the instances.
    """
    if not tile.is_temporal:
        found = next((e.child for e in tile.entries if e.tensor == tensor), None)
        return found or _inner_level(tile, tensor)
    spatial = [c for c in tile.children if isinstance(c, TileOp) and not c.is_temporal]
    collectives = [c for c in tile.children if isinstance(c, CollectiveOp)]
    for entry in (entry for child in spatial for entry in child.entries):
        if entry.tensor == tensor:
            return entry.target
    for child in collectives:
        if tensor in (child.in_tensor.data, child.out_tensor.data):
            return child.target.data
    if not spatial:
        level = next((e.target for e in tile.entries if e.tensor == tensor), None)
        return level or _inner_level(tile, tensor)
    return _inner_level(tile, tensor)


def _inner_level(tile: TileOp, tensor: str) -> str | None:
    levels = (
        _body_level(child, tensor)
        for child in tile.children
        if isinstance(child, TileOp)
    )
    return next((level for level in levels if level is not None), None)
