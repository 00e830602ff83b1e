"""
`group-sums`: elementary or SPMD level -> the same, with sums of products together.

Products that sum over the same dimensions can share a loop and an accumulator in a
kernel, if they are added to each other before other values are: ((x y + r) + u v) + z w
becomes ((x y + u v) + z w) + r. The gradient of a value that several products read is
such a sum. The order of rounding changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.compound import ContractOp, MapKind, MapOp
from comet.dialects.schedule.accumulators import (
    accumulates,
    addends,
    is_addition,
    only_added,
)
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass

Nested: TypeAlias = "SSAValue | tuple[Nested, ...]"
"""A value, or the pair that an addition adds."""


@dataclass(frozen=True)
class GroupedSum:
    """A sum of several values, and the groups in which they are to be added."""

    root: MapOp
    """The last of its additions."""
    additions: tuple[MapOp, ...]
    """The others, the last one first."""
    groups: tuple[tuple[SSAValue, ...], ...]
    """Products over the same dimensions; each other value is a group of its own."""


@dataclass(frozen=True)
class GroupSumsPass(FunctionPass):
    """
    Add products over the same dimensions first, then the others, then other values.

    Before: `map add` in f32 of at least two products that nothing else reads. After:
    the same values, added in another order.
    """

    name = "group-sums"

    LEVELS = (IRLevel.ELEMENTARY, IRLevel.SPMD)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        rewrite(plan_sums(function))


def plan_sums(func: FuncOp) -> tuple[GroupedSum, ...]:
    """Return the sums of `func` that are added in another order, in order."""
    return tuple(
        GroupedSum(additions[0], additions[1:], groups)
        for op in func.walk()
        if is_addition(op) and accumulates(op.result) and not only_added(op.result)
        if (additions := tuple(_additions(op)))
        if (groups := _groups(additions)) is not None
    )


def _additions(last: MapOp) -> Iterator[MapOp]:
    """Yield an addition, and those whose results it alone adds to others."""
    yield last
    for operand in last.operands:
        op = operand.owner
        if is_addition(op) and only_added(operand) is last:
            yield from _additions(op)


def _groups(additions: Sequence[MapOp]) -> tuple[tuple[SSAValue, ...], ...] | None:
    """Return the addends in groups, None if the additions have this order already."""
    last, terms = additions[0], tuple(addends(additions[0]))
    products: dict[frozenset[str], tuple[SSAValue, ...]] = {}
    for term in terms:
        alone = term.has_one_use() and term.type == last.result.type
        if alone and isinstance(op := term.owner, ContractOp):
            summed = frozenset(op.contracted)
            products[summed] = (*products.get(summed, ()), term)
    grouped = set(chain.from_iterable(products.values()))
    others = ((term,) for term in terms if term not in grouped)
    groups = (*products.values(), *others)
    same = _nested(last) == _of_left(map(_of_left, groups))
    return None if len(grouped) < 2 or same else groups


def _nested(last: MapOp) -> Nested:
    """Return the addends of an addition as nested pairs, which `addends` flattens."""
    pair = (
        _nested(value.owner)
        if is_addition(value.owner) and only_added(value) is last
        else value
        for value in last.operands
    )
    return tuple(pair)


def _of_left(terms: Iterable[Nested]) -> Nested:
    """Return terms as they are added from left to right, in pairs."""
    return reduce(lambda left, right: (left, right), terms)


def rewrite(plan: Sequence[GroupedSum]) -> None:
    """Carry out a plan."""
    renewed: dict[SSAValue, SSAValue] = {}
    for total in plan:
        root, sums = total.root, list[SSAValue]()
        for group in total.groups:
            terms = [renewed.get(term, term) for term in group]
            sums.append(_insert_sum(terms, root))
        renewed[root.result] = result = _insert_sum(sums, root)
        root.result.replace_all_uses_with(result)
        for op in (root, *total.additions):
            Rewriter.erase_op(op)


def _insert_sum(values: Sequence[SSAValue], before: MapOp) -> SSAValue:
    """Insert additions of values from left to right; return their sum."""
    total, *others = values
    for value in others:
        addition = MapOp(MapKind.ADD, (total, value), before.result.type)
        addition.result.name_hint = before.result.name_hint
        Rewriter.insert_op(addition, InsertPoint.before(before))
        total = addition.result
    return total
