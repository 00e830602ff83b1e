"""The rewrite of `sink-scales`: operands without factors, and scaled results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Self

from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.compound import CastOp, ContractOp, Elementwise, MapOp
from comet.dialects.compound.dims import element_type_of, with_element_type
from comet.passes.graph.sink_scales.plan import Factor, Read, ScalePlan, Sinking


def rewrite(plan: ScalePlan) -> None:
    """Carry out a plan, and erase ops that become unused."""
    for sinking in plan:
        _sink(sinking)
    for operand in dict.fromkeys(sinking.operand for sinking in plan):
        _erase_unused(operand)


def _sink(sinking: Sinking) -> None:
    """
    Let products read their operand without some factors, and scale the results.

    A factor that a value has twice scales twice.
    """
    operand, factors = sinking.operand, sinking.factors
    bare = _without(operand, _Chain.of(factors))
    for product in sinking.products:
        index = product.operands.index(operand)
        product.operands[index] = bare
        _scale(product, factors)


@dataclass(frozen=True)
class _Chain:
    """The ops from an operand down to the factors that are removed."""

    lost: Mapping[Operation, Factor]
    reads: AbstractSet[Read]

    @classmethod
    def of(cls, factors: Iterable[Factor]) -> Self:
        lost: dict[Operation, Factor] = {factor.op: factor for factor in factors}
        return cls(lost, {read for factor in factors for read in factor.path})


def _without(value: SSAValue, chain: _Chain) -> SSAValue:
    """Insert the ops that compute `value` without factors; others stay as they are."""
    op = value.owner
    if not isinstance(op, Elementwise):
        return value
    if op in chain.lost:
        return _without(chain.lost[op].scaled, chain)
    operands = [
        _without(operand, chain) if (op, index) in chain.reads else operand
        for index, operand in enumerate(op.operands)
    ]
    if operands == list(op.operands):
        return value
    new_op = op.clone()
    new_op.operands = operands
    Rewriter.insert_op(new_op, InsertPoint.before(op))
    return new_op.results[0]


def _scale(product: ContractOp, factors: tuple[Factor, ...]) -> None:
    """Insert the factors after a product, in the order in which they were applied."""
    scaled: SSAValue = product.result
    inserted: list[Operation] = []
    for factor in reversed(factors):
        value = factor.value
        if (type_ := element_type_of(product.result)) != element_type_of(value):
            cast = CastOp(value, with_element_type(value.type, type_))
            cast.result.name_hint, value = value.name_hint, cast.result
            inserted.append(cast)
        op = MapOp(factor.op.kind.data, (scaled, value), product.result.type)
        inserted.append(op)
        scaled = op.result
    Rewriter.insert_op(inserted, InsertPoint.after(product))
    product.result.replace_uses_with_if(
        scaled, lambda use: use.operation not in inserted
    )
    product.result.name_hint = f"{product.result.name_hint or 'product'}_sum"


def _erase_unused(value: SSAValue) -> None:
    """Erase an unused value with the elementwise ops that only it needs."""
    op = value.owner
    if isinstance(op, Elementwise) and op.parent is not None and not value.uses:
        operands = tuple(op.operands)
        Rewriter.erase_op(op)
        for operand in operands:
            _erase_unused(operand)
