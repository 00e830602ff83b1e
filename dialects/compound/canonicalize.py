"""
Canonicalization of `compound.map` with a neutral or an absorbing operand.

A fold that sees its dimension in one chunk starts from neutral carries; these patterns
turn it into the plain form. They assume finite values, as neutral elements are finite:
max(lowest, x) = x is wrong for x = -inf, min(highest, x) = x for x = inf, and 0 x = 0
for x = inf or NaN.
"""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)

from comet.dialects.compound import FillOp, MapKind, MapOp
from comet.dialects.compound.dims import float_type_of
from comet.dialects.compound.neutral import lowest_finite

COMMUTATIVE = (MapKind.ADD, MapKind.MULT, MapKind.MAX, MapKind.MIN)


def constant_of(value: SSAValue) -> float | None:
    """Return the number that every element of `value` is, if a fill says so."""
    return value.owner.value.value.data if isinstance(value.owner, FillOp) else None


def neutral_operand(op: MapOp) -> SSAValue | None:
    """Return the operand that equals the result because the other is neutral."""
    neutral = _neutral(op)
    for kept, other in _pairs(op):
        constant = constant_of(other)
        known = constant is not None and constant == neutral
        if known and kept.type == op.result.type:
            return kept
    return None


def _pairs(op: MapOp) -> list[tuple[SSAValue, SSAValue]]:
    """Return (operand that may stay, operand that may be neutral)."""
    if len(op.inputs) != 2:
        return []
    lhs, rhs = op.inputs
    return [(lhs, rhs)] + ([(rhs, lhs)] if op.kind.data in COMMUTATIVE else [])


def _neutral(op: MapOp) -> float | None:
    """Return the number that changes no other operand, None if there is none."""
    match op.kind.data:
        case MapKind.ADD | MapKind.SUB:
            return 0.0
        case MapKind.MULT | MapKind.DIV:
            return 1.0
        case MapKind.MAX:
            return lowest_finite(float_type_of(op.result))
        case MapKind.MIN:
            return -lowest_finite(float_type_of(op.result))
        case _:
            return None


class DropNeutralOperand(RewritePattern):
    """x + 0, x - 0, x * 1, x / 1, max(x, lowest) and min(x, highest finite) are x."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MapOp, rewriter: PatternRewriter) -> None:
        if (kept := neutral_operand(op)) is not None:
            rewriter.replace(op, (), (kept,))


class AbsorbZero(RewritePattern):
    """0 * x and 0 / x are 0."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MapOp, rewriter: PatternRewriter) -> None:
        absorbing = {MapKind.MULT: op.inputs, MapKind.DIV: op.inputs[:1]}
        if any(constant_of(v) == 0 for v in absorbing.get(op.kind.data, ())):
            rewriter.replace(op, FillOp(0.0, op.result.type))
