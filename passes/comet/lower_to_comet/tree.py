"""
The tile tree in the form of the COMET files: temporal and spatial nodes in turn.

Directly nested temporal nodes become one, whose items have the loops on their paths; a
spatial node below a spatial one gets a temporal node without loops in between, and a
temporal node with transfers at its border gets a spatial node without loops below it.
Everything here is read from the IR; nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeGuard

from xdsl.ir import Attribute, Block, Operation, SSAValue

from comet.dialects.collective import CollectiveOp
from comet.dialects.compound import FoldOp
from comet.dialects.compound.copied import ComputeOp
from comet.dialects.compound.dims import bits_of
from comet.dialects.errors import OpError
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.attributes import BindingKind, LoopAttr, binding_of
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import Border, transfers
from comet.passes.comet.lower_to_comet.values import Values

Loops: TypeAlias = tuple[LoopAttr, ...]
Notes: TypeAlias = tuple[tuple[str, Attribute], ...]
"""Attributes of the dialect-independent prefix `comet.`: estimates and choices."""


@dataclass(frozen=True)
class TaggedTransfer:
    """A transfer of a value, and the op that reads or defines it: its tag."""

    value: SSAValue
    outer: str
    inner: str
    bits: int
    op: ComputeOp
    written: bool


@dataclass(frozen=True)
class PlacedCollective:
    """A collective with its place in the tree."""

    op: CollectiveOp


@dataclass(frozen=True)
class Spatial:
    """Instances along mesh axes; one instance without loops."""

    loops: Loops
    transfers: tuple[TaggedTransfer, ...]
    children: tuple[Child, ...]
    notes: Notes = ()


@dataclass(frozen=True)
class LoopNest:
    """The loops of nested temporal nodes, outermost first."""

    loops: Loops
    folded: frozenset[str] = frozenset()
    """Dimensions of folds: no op accumulates its results over their loops."""

    def into(self, node: TemporalOp) -> LoopNest:
        """Return these loops with those of `node` inside of them."""
        folded = node.factors if node.init_args() else ()
        return LoopNest((*self.loops, *node.loops), self.folded | set(folded))


@dataclass(frozen=True)
class Item:
    """A child of a temporal node, with the loops around it."""

    nest: LoopNest
    node: Spatial | PlacedCollective | ComputeOp
    bind: BindingKind = BindingKind.SEQUENTIAL

    @property
    def loops(self) -> Loops:
        """The loops around it."""
        return self.nest.loops

    @property
    def summed_loops(self) -> Loops:
        """The loops over which ops below may accumulate their results."""
        return tuple(loop for loop in self.loops if loop.dim not in self.nest.folded)


@dataclass(frozen=True)
class Temporal:
    """Iterations of each item along its own loops."""

    items: tuple[Item, ...]
    notes: Notes = ()


@dataclass(frozen=True)
class Child:
    """A child of a spatial node."""

    node: Temporal | PlacedCollective
    bind: BindingKind = BindingKind.SEQUENTIAL


def tree_of(block: Block, values: Values) -> Temporal:
    """
    Return the tree of a function at the schedule level, its root a temporal node.

    Raises PassFailedException for ops outside of the tree and for trees that the COMET
    files cannot express.
    """
    return _Builder(values).temporal(LoopNest(()), block, ())


def notes_of(op: Operation) -> Notes:
    """Return the annotations of an op that survive lowering."""
    return tuple((k, v) for k, v in op.attributes.items() if k.startswith("comet."))


def _tree_ops(block: Block) -> Iterator[Operation]:
    """Yield the ops of the tree: nodes, collectives, and ops that a unit computes."""
    for op in block.ops:
        if isinstance(op, NodeOp | CollectiveOp | FoldOp | ComputeOp):
            yield op


@dataclass(frozen=True)
class _Builder:
    values: Values

    def temporal(self, nest: LoopNest, block: Block, notes: Notes) -> Temporal:
        """Return the temporal node whose body is `block`."""
        ops = tuple(_tree_ops(block))
        if len(ops) == 1 and self._is_plain(op := ops[0]):
            both = (*notes, *notes_of(op))
            return self.temporal(nest.into(op), op.body.block, both)
        items = tuple(self._items(nest, block))
        if not items:
            raise OpError(
                block.parent_op(),
                "lower-to-comet: a node computes nothing but constants, which the "
                "COMET files do not hold; remove it, or compile without stream",
            )
        if len(items) > 1:
            _reject_shared_loops(items)
        return Temporal(items, notes)

    def _items(self, nest: LoopNest, block: Block) -> Iterator[Item]:
        for op in _tree_ops(block):
            if self._is_plain(op):
                inner = tuple(self._items(nest.into(op), op.body.block))
                yield from inner[:-1]
                yield from (replace(item, bind=binding_of(op)) for item in inner[-1:])
            elif isinstance(op, TemporalOp):
                below = self._spatial(op, ())
                yield Item(nest.into(op), below, binding_of(op))
            elif isinstance(op, SpatialOp):
                yield Item(nest, self._spatial(op, tuple(op.loops)), binding_of(op))
            elif isinstance(op, CollectiveOp):
                yield Item(nest, PlacedCollective(op), binding_of(op))
            else:
                yield Item(nest, _compute(op))

    def _spatial(self, op: NodeOp, loops: Loops) -> Spatial:
        """Return the spatial node for `op`, or for its border."""
        children = tuple(self._children(op.body.block))
        return Spatial(loops, self._transfers(op), children, notes_of(op))

    def _children(self, block: Block) -> Iterator[Child]:
        for op in _tree_ops(block):
            if isinstance(op, CollectiveOp):
                yield Child(PlacedCollective(op), binding_of(op))
            elif self._is_plain(op):
                node = self.temporal(LoopNest(()).into(op), op.body.block, notes_of(op))
                yield Child(node, binding_of(op))
            elif isinstance(op, TemporalOp):
                item = Item(LoopNest(()).into(op), self._spatial(op, ()))
                yield Child(Temporal((item,)), binding_of(op))
            elif isinstance(op, SpatialOp):
                item = Item(LoopNest(()), self._spatial(op, tuple(op.loops)))
                yield Child(Temporal((item,)), binding_of(op))
            else:
                yield Child(Temporal((Item(LoopNest(()), _compute(op)),)))

    def _is_plain(self, op: Operation) -> TypeGuard[TemporalOp]:
        """Whether `op` is a temporal node without transfers at its border."""
        return isinstance(op, TemporalOp) and not self._transfers(op)

    def _transfers(self, op: NodeOp) -> tuple[TaggedTransfer, ...]:
        """Return the transfers at the border of `op`, each value once."""
        found: dict[tuple[SSAValue, bool], TaggedTransfer] = {}
        for border in transfers(op):
            if not self.values.is_constant(border.outer):
                self._add(found, op, border)
        return tuple(found.values())

    def _add(
        self,
        found: dict[tuple[SSAValue, bool], TaggedTransfer],
        op: NodeOp,
        border: Border,
    ) -> None:
        outer, written = border.outer, border.crossing == "out"
        value = self.values.root(outer)
        transfer = TaggedTransfer(
            value,
            border.outer_level,
            border.tile_level,
            bits_of(outer),
            self._user(op, value, written=written),
            written,
        )
        present = found.setdefault((value, written), transfer)
        if present.inner != transfer.inner:
            raise OpError(
                op,
                f"lower-to-comet: {outer.type} is fetched to {present.inner} and to "
                f"{transfer.inner} by one node; split the node",
            )

    def _user(self, op: NodeOp, value: SSAValue, *, written: bool) -> ComputeOp:
        """Return the op in `op` that defines `value`, or the first that reads it."""
        for inner in op.body.walk():
            if isinstance(inner, ComputeOp):
                touched = inner.results if written else inner.operands
                if any(self.values.root(v) is value for v in touched):
                    return inner
        verb = "makes" if written else "reads"
        raise OpError(
            op,
            f"lower-to-comet: {value.type} crosses the border of a node in which no op "
            f"{verb} it; route it around the node",
        )


def _compute(op: Operation) -> ComputeOp:
    if isinstance(op, FoldOp) or not isinstance(op, ComputeOp):
        raise OpError(
            op,
            f"lower-to-comet: the COMET files have no '{op.name}', only loops over its "
            "steps; run fuse, which makes one of it",
        )
    return op


def _reject_shared_loops(items: Sequence[Item]) -> None:
    for item in items:
        if isinstance(op := item.node, ComputeOp):
            raise OpError(
                op,
                f"lower-to-comet: '{op.name}' shares its loops with other ops, and the "
                "COMET files give every operation a nest of its own; put it into a "
                "temporal node alone",
            )
