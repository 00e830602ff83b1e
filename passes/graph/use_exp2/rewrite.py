"""The rewrite of `use-exp2`: powers of two, and scaled values."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.compound import FillOp, MapKind, MapOp
from comet.dialects.compound.dims import element_type_of, float_type_of, tensor
from comet.dialects.compound.map import MapKindAttr, constant_of, lowest_finite
from comet.passes.graph.use_exp2.plan import FACTOR, Exp2Plan


def rewrite(plan: Exp2Plan) -> None:
    """Carry out a plan."""
    scaled = _Scaled()
    for use in plan.multiplied:
        scaled.replace(use, FACTOR)
    for use in plan.divided:
        scaled.replace(use, 1 / FACTOR)
    for op in plan.negations:
        factor = FillOp(-FACTOR, tensor({}, element_type_of(op.result)))
        product = MapOp(MapKind.MULT, (op.inputs[0], factor.result), op.result.type)
        product.attributes |= op.attributes
        product.result.name_hint = op.result.name_hint
        Rewriter.replace_op(op, (factor, product))
    for op in plan.exps:
        op.kind = MapKindAttr(MapKind.EXP2)


@dataclass(frozen=True)
class _Scaled:
    """The products of values and constants with factors, each inserted once."""

    made: dict[tuple[SSAValue, float], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, float], SSAValue]
    )

    def replace(self, use: Use, factor: float) -> None:
        """Let a use read its value times `factor`."""
        value = use.operation.operands[use.index]
        key = (value, factor)
        if key not in self.made:
            self.made[key] = _times(value, factor)
        use.operation.operands[use.index] = self.made[key]
        if isinstance(op := value.owner, FillOp) and not op.result.uses:
            Rewriter.erase_op(op)


def _times(value: SSAValue, factor: float) -> SSAValue:
    """
    Insert `value` times `factor` after `value`, and return the product.

    The lowest finite number stays the lowest finite number.
    """
    lowest = lowest_finite(float_type_of(value))
    if (number := constant_of(value)) is not None:
        made: list[Operation] = [
            FillOp(min(max(number * factor, lowest), -lowest), value.type)
        ]
    else:
        scalar = tensor({}, element_type_of(value))
        fills = FillOp(factor, scalar), FillOp(lowest, scalar)
        product = MapOp(MapKind.MULT, (value, fills[0].result), value.type)
        kept = MapOp(MapKind.MAX, (product.result, fills[1].result), value.type)
        made = [*fills, product, kept] if factor > 1 else [fills[0], product]
    Rewriter.insert_op(made, _after(value))
    made[-1].results[0].name_hint = value.name_hint
    return made[-1].results[0]


def _after(value: SSAValue) -> InsertPoint:
    if isinstance(value.owner, Operation):
        return InsertPoint.after(value.owner)
    return InsertPoint.at_start(value.owner)
