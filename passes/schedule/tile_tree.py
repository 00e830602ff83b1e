"""
Builds a tile tree: the plan of its nodes, and the rewrite that moves ops into them.

The plan is a tree of frozen dataclasses over the ops of a flat block. The rewrite
clones each op into its node, or into several nodes that recompute it; the operands and
results of nodes follow from uses. `Levels` gives the memory levels of values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, TypeAlias

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from comet.dialects.blocks import yielded_by
from comet.dialects.compound import CastOp, FillOp, FoldOp, PadOp, RenameOp
from comet.dialects.compound.dims import (
    element_type_of,
    iteration_dims,
    level_of,
    names_of,
    with_element_type,
    with_level,
)
from comet.dialects.errors import OpError, called
from comet.dialects.schedule import SpatialOp, TemporalOp, YieldOp
from comet.dialects.schedule.accumulators import summands
from comet.dialects.schedule.attributes import Combiner, LoopAttr
from comet.passes.analysis.reduction_loops import (
    combiner_of,
    reduced_dims,
    without_constants,
)
from comet.passes.sharding.shardings import SHARD


@dataclass(frozen=True)
class Leaf:
    """Ops directly in the body of a node, or outside all nodes."""

    ops: tuple[Operation, ...]


@dataclass(frozen=True)
class Temporal:
    """A temporal node with at most one loop; `tile` adds others."""

    level: str
    """The default memory level of the values in its body."""
    children: tuple[Tree, ...]
    loop: str | None = None
    """The dimension of its loop."""
    folds: tuple[FoldOp, ...] = ()
    """The folds whose loop it is: its children compute one step of each."""
    ops: tuple[Operation, ...] = ()
    """The ops inside, which set the order of its operands; empty: those of the tree."""
    outs: tuple[SSAValue, ...] = ()
    """Its results; empty for all values with uses outside."""


@dataclass(frozen=True)
class Spatial:
    """A spatial node: over axes of a mesh, or the grid of a kernel."""

    level: str
    """The default memory level of the values in its body."""
    mesh: str | None
    """None for the grid of a kernel."""
    loops: tuple[LoopAttr, ...]
    children: tuple[Tree, ...]
    ops: tuple[Operation, ...] = ()
    """The ops inside, which set the order of its operands; empty: those of the tree."""
    outs: tuple[SSAValue, ...] = ()
    """Its results; empty for all values with uses outside."""


loop_of = lru_cache(maxsize=1 << 10)(LoopAttr)
"""Returns a loop. As in MLIR, equal ones are one object, which is verified once."""

Node: TypeAlias = Temporal | Spatial
Tree: TypeAlias = Leaf | Node

Aliases: TypeAlias = Mapping[SSAValue, SSAValue]
"""
From values to the values that replace them: the results of collectives that a border
replaces, chunks in the steps of folds, masks, and values at the border of a region.
"""


class Levels(Protocol):
    """The memory level of each value of a tile tree."""

    def at(self, value: SSAValue, node: Node | None) -> str:
        """Return the level of `value` in the body of `node`, or outside all nodes."""
        ...

    def operand(self, value: SSAValue, op: Operation, node: Node | None) -> str:
        """Return the level at which `op` reads `value` in the body of `node`."""
        return self.at(value, node)

    def entering(
        self, value: SSAValue, op: Operation, node: Node, loops: AbstractSet[str]
    ) -> str:
        """
        Return the level in the body of `node` of a value that `op` reads there.

        `loops` are the dimensions of the loops around `op` inside the body.
        """
        return self.at(value, node)

    def stays(self, level: str) -> bool:
        """Return whether values at `level` enter nodes without a transfer."""
        return False

    def leaving(self, value: SSAValue, tree: Node, node: Node | None) -> str:
        """Return the level of a result of `tree`, which is in `node`."""
        return self.at(value, node)


def children_of(tree: Tree) -> tuple[Tree, ...]:
    """Return the trees directly below `tree`."""
    return () if isinstance(tree, Leaf) else tree.children


def folds_of(tree: Tree) -> tuple[FoldOp, ...]:
    """Return the folds whose loop `tree` is."""
    return tree.folds if isinstance(tree, Temporal) else ()


def ops_of(tree: Tree) -> Iterator[Operation]:
    """Yield the ops of a tree, in order; a fold and its yield come after its step."""
    if tree.ops:
        yield from tree.ops
        return
    for child in children_of(tree):
        yield from ops_of(child)
    for fold in folds_of(tree):
        yield from list(fold.step.block.ops)[-1:]
        yield fold


def loops_below(tree: Tree) -> Iterator[str]:
    """Yield the dimensions of the temporal loops in `tree`, at any depth."""
    for child in children_of(tree):
        if isinstance(child, Temporal) and child.loop is not None:
            yield child.loop
        yield from loops_below(child)


def placed_ops(
    tree: Tree, loops: frozenset[str] = frozenset()
) -> Iterator[tuple[Operation, frozenset[str]]]:
    """
    Yield each op of a tree wherever it is, with the dimensions of the loops around it.

    These are temporal and spatial loops inside `tree`, and `loops`.
    """
    if isinstance(tree, Leaf):
        yield from ((op, loops) for op in tree.ops)
        return
    for child in tree.children:
        yield from placed_ops(child, loops.union(_own_loops(child)))
    for fold in folds_of(tree):
        yield from ((op, loops) for op in (*list(fold.step.block.ops)[-1:], fold))


def _own_loops(tree: Tree) -> Iterator[str]:
    if isinstance(tree, Temporal) and tree.loop is not None:
        yield tree.loop
    if isinstance(tree, Spatial):
        yield from (loop.dim for loop in tree.loops)


def iter_args_of(fold: FoldOp) -> tuple[SSAValue, ...]:
    """Return the block arguments of the step of `fold` for its iter_args."""
    return tuple(fold.step.block.args[len(fold.ins) :])


def chunks_of(ops: Sequence[Operation]) -> dict[SSAValue, SSAValue]:
    """Return the values that the chunks in the steps of folds are chunks of."""
    return {
        chunk: value
        for op in ops
        for fold in op.walk()
        if isinstance(fold, FoldOp)
        for value, chunk in zip(fold.ins, fold.step.block.args, strict=False)
    }


def resolve(value: SSAValue, aliases: Aliases) -> SSAValue:
    """Return the value that finally replaces `value`, or `value`."""
    while value in aliases:
        value = aliases[value]
    return value


def users_of(value: SSAValue, aliases: Aliases) -> Iterator[Operation]:
    """
    Yield the ops that use `value`, or a value that it replaces.

    Not folds: the uses of their inputs are in their steps.
    """
    for use in value.uses:
        user = use.operation
        is_replaced = any(result in aliases for result in user.results)
        if not is_replaced and not isinstance(user, FoldOp):
            yield user
    for alias, target in aliases.items():
        if target is value:
            yield from users_of(alias, aliases)


def reads_of(tree: Node, aliases: Aliases) -> Iterator[tuple[SSAValue, Operation]]:
    """Yield the values from outside `tree` that its ops use, with these ops."""
    ops, defined = tuple(ops_of(tree)), set[SSAValue]()
    for op in ops:
        defined |= {*op.results, *(iter_args_of(op) if isinstance(op, FoldOp) else ())}
    started: dict[Operation, Sequence[SSAValue]]
    started = {fold: fold.ins for fold in folds_of(tree)}
    for op in ops:
        used = started.get(op, op.operands)
        for value in (resolve(value, aliases) for value in used):
            if value not in defined and not isinstance(value.owner, FillOp):
                yield value, op


def live_outs(tree: Node, aliases: Aliases) -> tuple[SSAValue, ...]:
    """Return the values of `tree` that are used outside, in order."""
    if tree.outs:
        return tree.outs
    inside = set(ops_of(tree))
    return tuple(
        result
        for op in ops_of(tree)
        for result in op.results
        if any(user not in inside for user in users_of(result, aliases))
    )


@dataclass(frozen=True)
class InsertionScope:
    """The block to insert clones into, and the new values of old ones there."""

    block: Block
    node: Node | None
    """The node whose body the block is, None outside all nodes."""
    levels: Levels
    aliases: Aliases
    values: dict[SSAValue, dict[str, SSAValue]] = field(
        default_factory=dict[SSAValue, dict[str, SSAValue]]
    )
    """The new values of a value, by level."""

    def inside(self, node: Node, block: Block) -> InsertionScope:
        """Return the empty scope of a node's body."""
        return InsertionScope(block, node, self.levels, self.aliases)

    def add(self, value: SSAValue, new: SSAValue) -> None:
        """Record `new` as the new value of `value` at the level of `new`."""
        self.values.setdefault(value, {})[level_of(new) or ""] = new
        new.name_hint = new.name_hint or value.name_hint

    def at(self, value: SSAValue, level: str) -> SSAValue:
        """Return the new value of `value`, at `level` if there is one."""
        value = resolve(value, self.aliases)
        if value not in self.values and isinstance(value.owner, FillOp):
            self.insert(value.owner)
        found = self.values[value]
        return found[level] if level in found else next(iter(found.values()))

    def read(self, value: SSAValue, level: str) -> SSAValue:
        """Return the new value of an operand; clones the masks and casts of it."""
        copied: list[PadOp | CastOp] = []
        inner = value
        while inner in self.aliases:
            if isinstance(inner.owner, PadOp | CastOp):
                copied.append(inner.owner)
            inner = self.aliases[inner]
        found = self.at(value, level)
        for op in reversed(copied):
            type_ = with_element_type(found.type, element_type_of(op.result))
            copy = op.create(
                operands=[found], result_types=[type_], properties=op.properties
            )
            self.block.add_op(copy)
            found = copy.results[0]
            found.name_hint = op.result.name_hint
        return found

    def insert(self, op: Operation) -> None:
        """Insert a clone of an op without regions; of a fold, the ops of its step."""
        if isinstance(op, FoldOp):
            self._insert_step(op)
            return
        operands, levels = op.operands, self.levels
        used = dict.fromkeys(operands)
        read = {v: self.read(v, self._operand_level(v, op)) for v in used}
        types = [with_level(v.type, levels.at(v, self.node)) for v in op.results]
        clone = op.create(
            operands=[read[value] for value in operands],
            result_types=types,
            properties=op.properties.copy(),
            attributes={k: v for k, v in op.attributes.items() if k != SHARD},
            location=op.location,
        )
        self.block.add_op(clone)
        for value, result in zip(op.results, clone.results, strict=True):
            self.add(value, result)

    def _operand_level(self, value: SSAValue, op: Operation) -> str:
        return self.levels.operand(resolve(value, self.aliases), op, self.node)

    def _insert_step(self, fold: FoldOp) -> None:
        for iter_arg, init in zip(iter_args_of(fold), fold.init, strict=True):
            if iter_arg not in self.values:
                self.add(iter_arg, self.at(init, self._operand_level(init, fold)))
        for op in without_constants(tuple(fold.step.block.ops)[:-1]):
            self.insert(op)
        self.end_step(fold)

    def end_step(self, fold: FoldOp) -> None:
        """Record the values that the step of `fold` yields as those of its results."""
        yielded = yielded_by(fold.step.block)
        for result, value in zip(fold.outs, yielded, strict=True):
            self.add(result, self.at(value, self.levels.at(result, self.node)))

    def start(self, init: SSAValue, iter_arg: Attribute) -> SSAValue:
        """Return the init arg of an iter_arg; a constant is cloned for it."""
        if not isinstance(init.owner, FillOp):
            return self.at(init, level_of(iter_arg) or "")
        clone = init.owner.clone()
        self.block.add_op(clone)
        return Rewriter.replace_value_with_new_type(clone.result, iter_arg)


def build(tree: Tree, scope: InsertionScope) -> None:
    """
    Clone `tree` to the end of the scope's block, and add its results to the scope.

    `retile` sets the extents of tiles where loops have several iterations, and the
    combiners of nodes on a mesh. Others are what it would set.
    """
    if isinstance(tree, Leaf):
        for op in tree.ops:
            scope.insert(op)
        return
    entries = _entries(tree, scope)
    folds, outs = folds_of(tree), live_outs(tree, scope.aliases)
    levels = scope.levels
    iter_args = [iter_arg for fold in folds for iter_arg in iter_args_of(fold)]
    entering = list(entries)
    entering += [(iter_arg, levels.at(iter_arg, tree)) for iter_arg in iter_args]
    body = Block(arg_types=[with_level(v.type, level) for v, level in entering])
    inner = scope.inside(tree, body)
    for (value, _), argument in zip(entering, body.args, strict=True):
        inner.add(value, argument)
    for child in tree.children:
        build(child, inner)
    for fold in folds:
        inner.end_step(fold)
    leaving = [levels.leaving(value, tree, scope.node) for value in outs]
    yielded = list(map(inner.at, outs, leaving))
    body.add_op(YieldOp.create(operands=yielded))
    starts = [
        scope.start(init, argument.type)
        for init, argument in zip(
            (init for fold in folds for init in fold.init),
            body.args[len(entries) :],
            strict=True,
        )
    ]
    types = [with_level(v.type, level) for v, level in zip(outs, leaving, strict=True)]
    node = _node(tree, list(entries.values()), starts, outs, types, Region(body))
    scope.block.add_op(node)
    for value, result in zip(outs, node.outs, strict=True):
        scope.add(value, result)


def _entries(tree: Node, scope: InsertionScope) -> dict[tuple[SSAValue, str], SSAValue]:
    """Return, for each value that enters a body and its level there, the operand."""
    levels = scope.levels
    places: dict[Operation, dict[frozenset[str], None]] = {}
    for op, loops in placed_ops(tree):
        places.setdefault(op, {})[loops.intersection(iteration_dims(op))] = None
    entries: dict[tuple[SSAValue, str], SSAValue] = {}
    for value, op in reads_of(tree, scope.aliases):
        for loops in places[op]:
            wanted = levels.entering(value, op, tree, loops)
            outer = scope.at(value, wanted)
            present = level_of(outer) or ""
            entries[value, present if levels.stays(present) else wanted] = outer
    return entries


def _node(
    tree: Node,
    ins: Sequence[SSAValue],
    starts: Sequence[SSAValue],
    outs: Sequence[SSAValue],
    types: Sequence[Attribute],
    body: Region,
) -> TemporalOp | SpatialOp:
    if isinstance(tree, Spatial):
        combiners = [_combiner(value, tree.loops) for value in outs]
        return SpatialOp(tree.mesh, tree.loops, ins, types, combiners, body)
    loops = () if tree.loop is None else (loop_of(tree.loop, 1),)
    combiners = [_combiner(value, loops) for value in outs]
    node = TemporalOp(loops, ins, starts, types, combiners, body)
    folded = all(combiner is Combiner.FOLD for combiner in combiners)
    if folded and tree.folds and all(fold.partial for fold in tree.folds):
        node.partial = UnitAttr()
    return node


def _combiner(value: SSAValue, loops: Sequence[LoopAttr]) -> Combiner:
    """
    Return how loops combine the tiles of a result.

    Raises PassFailedException for a tile of a dimension that has another name then.
    """
    names = names_of(value)
    lost = [loop.dim for loop in loops if loop.dim not in names]
    if not lost:
        return Combiner.NONE
    op = value.owner
    if isinstance(op, RenameOp):
        raise OpError(
            op,
            f"fuse: loops over {', '.join(dict.fromkeys(lost))} end with "
            f"{called(value)}, which has another name for that; run "
            "comet-accelerator, which makes several mappings",
        )
    if isinstance(op, Operation) and not set(lost).isdisjoint(reduced_dims(op)):
        return combiner_of(op)
    return Combiner.ADD if _adds_up(value, set(lost)) else Combiner.SAME


def _adds_up(value: SSAValue, dims: AbstractSet[str]) -> bool:
    """Return whether `value` is a sum of products, each summed over one of `dims`."""
    terms = summands(value)
    return bool(terms) and all(
        isinstance(op := term.owner, Operation)
        and not dims.isdisjoint(reduced_dims(op))
        for term in terms
    )
