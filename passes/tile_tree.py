"""
Builds a tile tree: the plan of its nodes, and the rewrite that nests ops into them.

The plan is a tree of frozen dataclasses over the ops of a flat block. The rewrite
clones each op into its node; what enters and leaves a node follows from the uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from comet.dialects.compound import FillOp
from comet.dialects.compound_dims import with_level
from comet.dialects.schedule import SpatialOp, TemporalOp, YieldOp
from comet.dialects.schedule_attributes import Combiner, LoopAttr


@dataclass(frozen=True)
class Leaf:
    """Ops that stand directly in the body of a node."""

    ops: tuple[Operation, ...]


@dataclass(frozen=True)
class Temporal:
    """A temporal node, still without rows."""

    place: str
    """The memory level that the values of its body live at, if nothing else is said."""
    children: tuple[Tree, ...]


@dataclass(frozen=True)
class Spatial:
    """A spatial node over mesh axes."""

    place: str
    """The memory level that the values of its body live at, if nothing else is said."""
    mesh: str
    rows: tuple[LoopAttr, ...]
    children: tuple[Tree, ...]


Node: TypeAlias = Temporal | Spatial
Tree: TypeAlias = Leaf | Node

LevelOf: TypeAlias = Callable[[SSAValue, Node | None], str]
"""The memory level of a value in the body of a node, or outside of all (None)."""


@dataclass(frozen=True)
class Nest:
    """What the rewrite needs to know besides the tree."""

    level_of: LevelOf
    aliases: Mapping[SSAValue, SSAValue]
    """Values that stand for another one: results of dissolved reductions."""

    def resolve(self, value: SSAValue) -> SSAValue:
        """Return the value that `value` stands for."""
        while value in self.aliases:
            value = self.aliases[value]
        return value

    def users(self, value: SSAValue) -> Iterator[Operation]:
        """Yield the ops that use `value`, or a value that stands for it."""
        for use in value.uses:
            if not any(result in self.aliases for result in use.operation.results):
                yield use.operation
        for alias, target in self.aliases.items():
            if target is value:
                yield from self.users(alias)


def ops_of(tree: Tree) -> Iterator[Operation]:
    """Yield the ops of a tree, in order."""
    if isinstance(tree, Leaf):
        yield from tree.ops
        return
    for child in tree.children:
        yield from ops_of(child)


def live_ins(tree: Tree, nest: Nest) -> tuple[SSAValue, ...]:
    """Return the values that ops of `tree` use and others make, in order of use."""
    made = {result for op in ops_of(tree) for result in op.results}
    used: dict[SSAValue, None] = {}
    for op in ops_of(tree):
        for operand in map(nest.resolve, op.operands):
            if operand not in made and not isinstance(operand.owner, FillOp):
                used[operand] = None
    return tuple(used)


def live_outs(tree: Tree, nest: Nest) -> tuple[SSAValue, ...]:
    """Return the values that ops of `tree` make and others use, in order."""
    inside = set(ops_of(tree))
    return tuple(
        result
        for op in ops_of(tree)
        for result in op.results
        if any(user not in inside for user in nest.users(result))
    )


Values: TypeAlias = dict[SSAValue, SSAValue]
"""What stands for each value of the flat block at the place that is being built."""


def build(
    tree: Tree, nest: Nest, parent: Node | None, block: Block, values: Values
) -> None:
    """
    Clone `tree` to the end of `block`, the body of `parent`.

    What it makes is added to `values`. Types get names, element types and levels;
    extents and combiners are left to `retile`.
    """
    if isinstance(tree, Leaf):
        for op in tree.ops:
            _clone(op, nest, parent, block, values)
        return
    ins, outs = live_ins(tree, nest), live_outs(tree, nest)
    body = Block(arg_types=[with_level(v.type, nest.level_of(v, tree)) for v in ins])
    inner: Values = dict(zip(ins, body.args, strict=True))
    for value, argument in inner.items():
        argument.name_hint = value.name_hint
    for child in tree.children:
        build(child, nest, tree, body, inner)
    body.add_op(YieldOp(*(inner[value] for value in outs)))
    types = [with_level(value.type, nest.level_of(value, parent)) for value in outs]
    node = _node(tree, [values[value] for value in ins], types, Region(body))
    block.add_op(node)
    for value, result in zip(outs, node.results, strict=True):
        result.name_hint = value.name_hint
        values[value] = result


def _clone(
    op: Operation, nest: Nest, parent: Node | None, block: Block, values: Values
) -> None:
    """Clone `op` at the level of its place; constants it uses are made beside it."""
    operands = [nest.resolve(operand) for operand in op.operands]
    for operand in operands:
        if operand not in values and isinstance(operand.owner, FillOp):
            _clone(operand.owner, nest, parent, block, values)
    mapper = dict(zip(op.operands, (values[v] for v in operands), strict=True))
    clone = op.clone(value_mapper=mapper)
    block.add_op(clone)
    clone.attributes.pop("collective.shard", None)
    for value, result in zip(op.results, clone.results, strict=True):
        fitting = with_level(value.type, nest.level_of(value, parent))
        values[value] = Rewriter.replace_value_with_new_type(result, fitting)
        values[value].name_hint = value.name_hint


def _node(
    tree: Node, ins: Sequence[SSAValue], types: Sequence[Attribute], body: Region
) -> TemporalOp | SpatialOp:
    combiners = (Combiner.NONE,) * len(types)
    if isinstance(tree, Temporal):
        return TemporalOp((), ins, (), types, combiners, body)
    return SpatialOp(tree.mesh, tree.rows, ins, types, combiners, body)
