"""The factors of products' operands that are the same in all terms of the sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import frexp
from typing import TypeAlias

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from comet.dialects.compound import CastOp, ContractOp, MapKind, MapOp
from comet.dialects.compound.dims import element_type_of, extents_of, names_of
from comet.dialects.compound.map import lowest_finite
from comet.passes.analysis.levels import compute_block
from comet.passes.analysis.row_statistics import elementwise_sources, statistic_ops

PRODUCTS = (MapKind.MULT, MapKind.DIV)
"""Functions that distribute over sums; `div` does in its dividend."""

KNOWN = Float16Type | BFloat16Type | Float32Type | Float64Type
"""Element types whose range is known."""

Read: TypeAlias = tuple[Operation, int]
"""An op, and which of its operands."""


@dataclass(frozen=True)
class Factor:
    """A loop-invariant operand of a multiplication or a division."""

    op: MapOp
    index: int
    path: tuple[Read, ...]
    """The reads from the operand of a product down to the result of `op`."""

    @property
    def value(self) -> SSAValue:
        """The factor, or divisor."""
        return self.op.inputs[self.index]

    @property
    def scaled(self) -> SSAValue:
        """The other operand, which is multiplied or divided."""
        return self.op.inputs[1 - self.index]


@dataclass(frozen=True)
class Sinking:
    """Factors of an operand that scale the results of its products instead."""

    operand: SSAValue
    factors: tuple[Factor, ...]
    products: tuple[ContractOp, ...]


ScalePlan: TypeAlias = tuple[Sinking, ...]
"""The sinkings, in the order of their products."""


def plan_scales(func: FuncOp, *, every: bool) -> ScalePlan:
    """
    Return the factors that may scale products of `func` after their sums.

    With `every`, all legal factors. Otherwise only statistics: factors that depend on a
    reduction of the product's operands over the dimensions it sums, and that are not
    followed by a cast to a type of smaller range.
    """
    found: dict[tuple[SSAValue, tuple[Factor, ...]], list[ContractOp]] = {}
    for op in compute_block(func).ops:
        if isinstance(op, ContractOp) and op.lhs is not op.rhs:
            for operand in op.operands:
                if factors := tuple(_factors(op, operand, every)):
                    found.setdefault((operand, factors), []).append(op)
    return tuple(
        Sinking(operand, factors, tuple(products))
        for (operand, factors), products in found.items()
    )


def _factors(product: ContractOp, operand: SSAValue, every: bool) -> Iterator[Factor]:
    """Yield the factors of an operand that may scale the product."""
    sources = elementwise_sources(product.operands)
    for factor in _invariant(operand, product, every):
        if every or statistic_ops(factor.value, product.contracted, sources):
            yield factor


def _invariant(
    value: SSAValue, product: ContractOp, every: bool, path: tuple[Read, ...] = ()
) -> Iterator[Factor]:
    """Yield the factors of `value` without a summed dimension, last applied first."""
    op = value.owner
    if isinstance(op, CastOp) and not op.truncates and (every or _keeps_range(op)):
        yield from _invariant(op.input, product, every, (*path, (op, 0)))
    if not isinstance(op, MapOp) or op.kind.data not in PRODUCTS:
        return
    factors = [Factor(op, index, path) for index in _scaling(op)]
    if sunk := [factor for factor in factors if _may_scale(factor, product)]:
        factors = sunk[:1]
        yield sunk[0]
    for factor in factors:
        below = (*path, (op, 1 - factor.index))
        yield from _invariant(factor.scaled, product, every, below)


def _scaling(op: MapOp) -> Sequence[int]:
    """Return which operands scale the other one."""
    return (1, 0) if op.kind.data is MapKind.MULT else (1,)


def _may_scale(factor: Factor, product: ContractOp) -> bool:
    """Whether a factor may scale a product: it fits dimensions and element types."""
    dims = set(names_of(factor.value))
    same_dims = set(extents_of(factor.scaled)) == set(extents_of(factor.op.result))
    factor_type = element_type_of(factor.value)
    product_type = element_type_of(product.result)
    exact = factor_type == product_type or (
        isinstance(factor_type, AnyFloat)
        and factor_type.bitwidth < product_type.bitwidth
    )
    return same_dims and exact and dims.isdisjoint(product.contracted)


def _keeps_range(cast: CastOp) -> bool:
    """Whether a cast overflows no finite number; bf16 has the range of f32."""
    before, after = element_type_of(cast.input), element_type_of(cast.result)
    if not isinstance(before, KNOWN) or not isinstance(after, KNOWN):
        return False
    return _largest_exponent(before) <= _largest_exponent(after)


def _largest_exponent(type_: AnyFloat) -> int:
    return frexp(lowest_finite(type_))[1]
