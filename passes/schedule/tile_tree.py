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

from comet.dialects.compound import FillOp, FoldOp
from comet.dialects.compound.dims import with_level
from comet.dialects.schedule import SpatialOp, TemporalOp, YieldOp
from comet.dialects.schedule.attributes import Combiner, LoopAttr


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
    fold: FoldOp | None = None
    """The fold that it is the loop of: its children run one step."""


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
    """
    Values that stand for another one: results of dissolved reductions, and the chunks
    that the step of a fold reads.
    """

    def resolve(self, value: SSAValue) -> SSAValue:
        """Return the value that `value` stands for."""
        while value in self.aliases:
            value = self.aliases[value]
        return value

    def users(self, value: SSAValue) -> Iterator[Operation]:
        """
        Yield the ops that use `value`, or a value that stands for it.

        What a fold reads is used by the ops of its step.
        """
        for use in value.uses:
            user = use.operation
            stood_for = any(result in self.aliases for result in user.results)
            if not stood_for and not isinstance(user, FoldOp):
                yield user
        for alias, target in self.aliases.items():
            if target is value:
                yield from self.users(alias)


def children_of(tree: Tree) -> tuple[Tree, ...]:
    """Return the trees right below `tree`."""
    return () if isinstance(tree, Leaf) else tree.children


def ops_of(tree: Tree) -> Iterator[Operation]:
    """Yield the ops of a tree, in order; after its step, a fold and its yield."""
    if isinstance(tree, Leaf):
        yield from tree.ops
        return
    for child in tree.children:
        yield from ops_of(child)
    if isinstance(tree, Temporal) and tree.fold is not None:
        yield from list(tree.fold.step.block.ops)[-1:]
        yield tree.fold


def carries_of(fold: FoldOp) -> tuple[SSAValue, ...]:
    """Return what the step of `fold` calls its results before the step."""
    return tuple(fold.step.block.args[len(fold.ins) :])


def live_ins(tree: Tree, nest: Nest) -> tuple[SSAValue, ...]:
    """Return the values that ops of `tree` use and others make, in order of use."""
    made: set[SSAValue] = set()
    for op in ops_of(tree):
        made |= {*op.results, *(carries_of(op) if isinstance(op, FoldOp) else ())}
    used: dict[SSAValue, None] = {}
    for op in ops_of(tree):
        operands = () if isinstance(op, FoldOp) else op.operands
        for operand in map(nest.resolve, operands):
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
    fold = tree.fold if isinstance(tree, Temporal) else None
    ins = live_ins(tree, nest)
    outs = live_outs(tree, nest) if fold is None else tuple(fold.outs)
    entering = ins if fold is None else (*ins, *carries_of(fold))
    yielded = outs if fold is None else _yielded(fold, nest)
    body = _body(tree, nest, entering, yielded)
    taken = [values[value] for value in ins]
    types = [with_level(value.type, nest.level_of(value, parent)) for value in outs]
    if fold is None:
        node = _node(tree, taken, types, body)
    else:
        starts = _starts(fold, body.block.args[len(ins) :], block)
        node = _fold_node(fold, taken, starts, types, body)
    block.add_op(node)
    for value, result in zip(outs, node.results, strict=True):
        result.name_hint = value.name_hint
        values[value] = result


def _body(
    tree: Node, nest: Nest, entering: Sequence[SSAValue], yielded: Sequence[SSAValue]
) -> Region:
    """Return the body of a node, its children built into it."""
    types = [with_level(value.type, nest.level_of(value, tree)) for value in entering]
    block = Block(arg_types=types)
    values: Values = dict(zip(entering, block.args, strict=True))
    for value, argument in values.items():
        argument.name_hint = value.name_hint
    for child in tree.children:
        build(child, nest, tree, block, values)
    block.add_op(YieldOp(*(values[value] for value in yielded)))
    return Region(block)


def _yielded(fold: FoldOp, nest: Nest) -> tuple[SSAValue, ...]:
    """Return the carries after one step of `fold`."""
    terminator = fold.step.block.last_op
    operands = () if terminator is None else terminator.operands
    return tuple(nest.resolve(value) for value in operands)


def _starts(fold: FoldOp, carries: Sequence[SSAValue], block: Block) -> list[SSAValue]:
    """Make the constants that a fold starts from, one for every carry."""
    made: list[SSAValue] = []
    for value, carry in zip(fold.init, carries, strict=True):
        assert isinstance(value.owner, FillOp)
        clone = value.owner.clone()
        block.add_op(clone)
        made.append(Rewriter.replace_value_with_new_type(clone.result, carry.type))
        made[-1].name_hint = value.name_hint
    return made


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


def _fold_node(
    fold: FoldOp,
    ins: Sequence[SSAValue],
    carries: Sequence[SSAValue],
    types: Sequence[Attribute],
    body: Region,
) -> TemporalOp:
    """Return the loop of `fold`; its row is there from the start, for `tile` to set."""
    combiners = (Combiner.FOLD,) * len(types)
    rows = (LoopAttr(fold.dim.data, 1),)
    return TemporalOp(rows, ins, carries, types, combiners, body)


def _node(
    tree: Node, ins: Sequence[SSAValue], types: Sequence[Attribute], body: Region
) -> TemporalOp | SpatialOp:
    combiners = (Combiner.NONE,) * len(types)
    if isinstance(tree, Temporal):
        return TemporalOp((), ins, (), types, combiners, body)
    return SpatialOp(tree.mesh, tree.rows, ins, types, combiners, body)
