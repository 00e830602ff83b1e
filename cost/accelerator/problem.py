"""
One mapping of one compound operation, as data.

A `Problem` is what every model prices: the operations and tensors of the workload, and
the tree of tiles, collectives and operations of a mapping. It mirrors the COMET mapping
format, with names resolved and constants substituted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from comet.kinds import Access, BindingKind, CollectiveKind

Projection: TypeAlias = tuple[tuple[str, ...], ...]
"""
One tuple of dimension names per axis of a tensor; the names of one axis are added.
"""

Sizes: TypeAlias = Mapping[str, int]
"""A size per dimension name."""


@dataclass(frozen=True)
class Operation:
    """One elementary operation of the workload."""

    name: str
    inputs: tuple[str, ...]
    output: str
    dims: tuple[str, ...]
    accesses: tuple[Access, ...]

    @cached_property
    def access(self) -> Mapping[str, Access]:
        """The access to each tensor, by tensor name."""
        return {a.tensor: a for a in self.accesses}


@dataclass(frozen=True)
class Entry:
    """
    One tensor in the list of a tile node: it moves between `source` and `destination`
    for operation `tag`.
    """

    tensor: str
    tag: str
    source: str
    """The level near the memory root."""
    destination: str
    """The level (or unit) near the operation."""
    bits: int
    accumulates: bool
    """True where a written tile is read back before it is written again (`rmw`)."""
    factors: tuple[Sizes, ...]
    """Loop bounds by dimension, one map per row (a temporal node has one row)."""

    @cached_property
    def key(self) -> tuple[str, str]:
        """The identity of the entry across nodes: tensor and tag."""
        return self.tensor, self.tag


@dataclass(frozen=True)
class Leaf:
    """One operation on one tile primitive, executed by a unit."""

    index: int
    operation: str
    kind: str
    """gemm, softmax, max, exp, div, add, mult, sqrt, rowsum, rowmax or convolution."""
    tensors: tuple[str, ...]
    primitive: tuple[tuple[str, int], ...]
    """Elements by dimension that the unit takes at once, in textual order."""
    steps: Mapping[str, Sizes]
    """
    Per tensor, the tile size by dimension that one step of the leaf's loops covers.
    """
    reduction: tuple[tuple[str, int], ...] = ()
    """
    The reduction dimensions of the unit and their factors; the systolic array streams
    the last one.
    """
    accumulates: bool = False
    """Whether the unit adds to its result (`rmw`)."""
    special: bool = False
    """The field `specd`: the GEMM unit shuffles the sums that it adds to."""

    @property
    def name(self) -> str:
        """The node's name in reports."""
        return f"OperationNode::{self.index}"

    @property
    def reduction_factors(self) -> tuple[int, ...]:
        """The factors of the reduction dimensions."""
        return tuple(factor for _, factor in self.reduction)


@dataclass(frozen=True)
class Collective:
    """An exchange of one tensor among the instances of one level."""

    index: int
    kind: CollectiveKind
    level: str
    tag: str
    dimension: str | None
    sources: tuple[str, ...]
    destinations: tuple[str, ...]
    input: str
    output: str
    bits: int
    reduction: str | None
    """add, max, mult; None where nothing is reduced."""
    spatial_factor: int
    """How many instances take part; 0 means all sources."""
    writes_back: bool

    @property
    def name(self) -> str:
        """The node's name in reports."""
        return f"CollectiveOpNode::{self.index}"


@dataclass(frozen=True, slots=True)
class Binding:
    """The binding between two neighbouring children; `index` counts it as a node."""

    index: int
    kind: BindingKind


@dataclass(frozen=True)
class Tile:
    """A temporal or spatial node: loops over the tiles of its entries."""

    index: int
    spatial: bool
    order: tuple[str, ...]
    """Dimensions, innermost loop first."""
    entries: tuple[Entry, ...]
    children: tuple[Node, ...]
    bindings: tuple[Binding | None, ...] = ()
    """`bindings[i]` binds child i to child i + 1; None where the file has none."""

    @property
    def name(self) -> str:
        """The node's name in reports."""
        return f"DataMovementTileNode::{self.index}"

    @property
    def is_leaf(self) -> bool:
        """True where the only child is an operation."""
        return isinstance(self.children[0], Leaf)

    @property
    def leaf(self) -> Leaf:
        """The operation below a leaf tile; raises `TypeError` elsewhere."""
        child = self.children[0]
        if not isinstance(child, Leaf):
            raise TypeError(f"{self.name} has no operation below it")
        return child


Node: TypeAlias = Tile | Leaf | Collective


@dataclass(frozen=True)
class Problem:
    """A workload and one mapping of it."""

    dims: Sizes
    """Extent of every dimension."""
    operations: tuple[Operation, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    root: Tile

    @cached_property
    def operation(self) -> Mapping[str, Operation]:
        """The operations by name."""
        return {op.name: op for op in self.operations}

    @cached_property
    def produced(self) -> frozenset[str]:
        """The tensors that operations produce."""
        return frozenset(op.output for op in self.operations)

    @cached_property
    def parent(self) -> Mapping[int, Tile]:
        """The parent of every node but the root, by node index."""
        return {c.index: t for t in walk_tiles(self.root) for c in t.children}

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes in document order."""
        return tuple(walk(self.root))

    @cached_property
    def operations_below(self) -> Mapping[int, tuple[str, ...]]:
        """The operations below each tile node in document order, by node index."""
        found: dict[int, tuple[str, ...]] = {}

        def visit(node: Node) -> tuple[str, ...]:
            if isinstance(node, Leaf):
                return (node.operation,)
            if not isinstance(node, Tile):
                return ()
            below = tuple(op for child in node.children for op in visit(child))
            found[node.index] = below
            return below

        visit(self.root)
        return found

    def is_dependent(self, tensor: str) -> bool:
        """
        Whether a tensor is an intermediate: neither an input nor an output.
        """
        return tensor not in self.inputs and tensor not in self.outputs

    def reader(self, tensor: str, tag: str) -> Operation:
        """
        The operation whose projection describes `tensor` under `tag`.

        That is operation `tag`, or the first operation (by name) that touches the
        tensor where the tag names none.
        """
        if (found := self.operation.get(tag)) is not None:
            return found
        ordered = sorted(self.operations, key=lambda op: op.name)
        return next((op for op in ordered if tensor in op.access), ordered[-1])

    def projection(self, tensor: str, tag: str) -> Projection:
        """The projection of `tensor` under `tag`, one tuple of dimensions per axis."""
        return self.reader(tensor, tag).access[tensor].projection

    def writes(self, tensor: str, tag: str) -> bool:
        """
        Whether `tensor` is written under `tag`; so is any if `tag` is no operation.
        """
        op = self.operation.get(tag)
        if op is None or tensor not in op.access:
            return True
        return op.access[tensor].read_write


def walk(node: Node) -> Iterator[Node]:
    """Every node of a tree, parents first."""
    yield node
    if isinstance(node, Tile):
        for child in node.children:
            yield from walk(child)


def walk_tiles(node: Node) -> Iterator[Tile]:
    """Every tile node of a tree, parents first."""
    return (n for n in walk(node) if isinstance(n, Tile))
