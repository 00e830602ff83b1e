"""
The accumulators of loops: which op adds to them, and their layout.

A sum of products has one accumulator, too: each product, or loop that sums products,
adds to what the one before it in the block left there. The additions cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Block, Operation, SSAValue

from comet.dialects.compound import ContractOp, MapKind, MapOp
from comet.dialects.compound.dims import element_type_of, names_of
from comet.dialects.schedule import TemporalOp, YieldOp
from comet.dialects.schedule.attributes import Combiner


def is_fused(op: Operation) -> bool:
    """Whether `op` is a product that adds directly to the accumulator of its loop."""
    return (
        isinstance(op, ContractOp)
        and isinstance(node := op.parent_op(), TemporalOp)
        and _combiner(node, op.result) is Combiner.ADD
    )


def is_accumulated(op: Operation) -> bool:
    """Whether `op` is a product in a loop that adds to an accumulator."""
    if not isinstance(op, ContractOp):
        return False
    in_loop = isinstance(op.parent_op(), TemporalOp)
    return is_fused(op) or (in_loop and sum_with(op.result) is not None)


def accumulates(value: SSAValue) -> bool:
    """Whether sums of products in the type of `value` are exact to add to: f32."""
    return isinstance(element_type_of(value), Float32Type)


def is_addition(op: Operation | Block) -> TypeGuard[MapOp]:
    """Whether an op adds two values; a product can accumulate into the other one."""
    return isinstance(op, MapOp) and op.kind.data is MapKind.ADD


def is_transposed(op: ContractOp) -> bool:
    """Return whether the result of a product has its columns before its rows."""
    _, _, columns, _ = op.roles
    of_matrix = [name for name in names_of(op.result) if name not in op.batched]
    return [name in columns for name in of_matrix] == [True, False]


def is_continued(node: TemporalOp, value: SSAValue) -> bool:
    """
    Whether the body of `node` adds to the accumulator of its yielded `value`.

    A loop inside does, with the combiner of `node`, and so does a sum of products.
    """
    inside, combiner = value.owner, _combiner(node, value)
    if combiner is Combiner.ADD and is_sum_of_products(value):
        return True
    if not isinstance(inside, TemporalOp):
        return False
    combined = combiner in (Combiner.ADD, Combiner.MAX, Combiner.SAME)
    return combined and combiner is inside.combiners[inside.outs.index(value)]


def _combiner(node: TemporalOp, value: SSAValue) -> Combiner | None:
    """Return the combiner of a yielded value, None if it has other uses."""
    use = value.get_unique_use()
    if use is None or not isinstance(use.operation, YieldOp):
        return None
    return node.combiners[use.index]


def summands(value: SSAValue) -> tuple[SSAValue, ...]:
    """
    Return the products, and sums of products by loops, that `value` is the sum of.

    In the order of the block, in which each has no other use; empty if anything else
    is added. The additions may be in any order.
    """
    terms = {term.owner: term for term in _terms(value)}
    found = list[SSAValue]()
    op: Operation | Block | None = value.owner
    # In a long block, the terms are mostly a few ops before their sum.
    while len(found) < len(terms):
        assert isinstance(op, Operation)
        if op in terms:
            found.append(terms[op])
        op = op.prev_op
    return tuple(reversed(found))


def is_sum_of_products(value: SSAValue) -> bool:
    """Whether `value` has `summands`, of which this does not need the order."""
    return bool(_terms(value))


def _terms(value: SSAValue) -> tuple[SSAValue, ...]:
    """Return the `summands` of a value in the order of the additions."""
    op = value.owner
    if not is_addition(op) or not accumulates(value) or op.parent is None:
        return ()
    terms = tuple(addends(op))
    distinct = len({term.owner for term in terms}) == len(terms)
    return terms if distinct and all(map(_is_term, terms)) else ()


def sum_with(term: SSAValue) -> SSAValue | None:
    """Return the sum of products that `term` is added to, None if there is none."""
    found = None
    while (added := only_added(term)) is not None and is_sum_of_products(added.result):
        found = term = added.result
    return found


def addends(addition: MapOp) -> Iterator[SSAValue]:
    """Yield what an addition, and those whose results it alone adds, add up."""
    for operand in addition.operands:
        op = operand.owner
        if is_addition(op) and only_added(operand) is addition:
            yield from addends(op)
        else:
            yield operand


def only_added(value: SSAValue) -> MapOp | None:
    """
    Return the addition to a value of its type that is the only use of `value`.

    In the same block; None if there is no such addition.
    """
    user, owner = value.get_user_of_unique_use(), value.owner
    if (
        user is None
        or not isinstance(owner, Operation)
        or user.parent is not owner.parent
    ):
        return None
    return user if is_addition(user) and user.result.type == value.type else None


def _is_term(value: SSAValue) -> bool:
    """Whether a value is a product, or a sum of some, that is only added to others."""
    return only_added(value) is not None and _is_product(value)


def _is_product(value: SSAValue) -> bool:
    """Whether a value is a product, or what a loop adds up of products."""
    op = value.owner
    if not isinstance(op, TemporalOp):
        return isinstance(op, ContractOp)
    index = op.outs.index(value)
    yielded = op.yielded[index]
    products = _terms(yielded) or (yielded,)
    return op.combiners[index] is Combiner.ADD and all(map(_is_product, products))
