"""
`scale-maxima`: maxima of unscaled values, in kernels.

For a positive number k, the maximum of k x is k times the maximum of x. Rounding keeps
the order, so that the result is the same bit for bit. In a softmax only the difference
k x - m reads the scaled scores then, and GPUs compute it by one multiply-add instead of
two instructions. A mask between moves before the scale: the constant that hides scores
is divided by k, or becomes the lowest finite number. Takes functions at the schedule or
the dataflow level, where scores and maxima are in one loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from comet.dialects.compound import FillOp, MapKind, MapOp, ReduceKind, ReduceOp
from comet.dialects.compound.dims import element_type_of, float_type_of, names_of
from comet.dialects.compound.map import constant_of, scaled_number
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass

FUSED = (MapKind.ADD, MapKind.SUB)
"""Functions that a multiply-add computes together with a product that they read."""


@dataclass(frozen=True)
class ScaledMaximum:
    """A maximum of a value times a positive number."""

    maximum: ReduceOp
    product: MapOp
    select: MapOp | None
    """The mask between the product and the maximum, if there is one."""

    @property
    def scale(self) -> SSAValue:
        """The number."""
        return self.product.inputs[1]


@dataclass(frozen=True)
class ScaleMaximaPass(FunctionPass):
    """
    Compute maxima of unscaled values, and scale the maxima.

    Before: `reduce max` of `map mult` by a positive constant, or of a `select` between
    that and a constant, where sums and differences alone read the same value. After:
    `reduce max` of the unscaled value, or of a `select` of it, and the maximum times
    the constant.
    """

    name = "scale-maxima"

    LEVELS = (IRLevel.SCHEDULE, IRLevel.DATAFLOW)
    TAKES_COPIES = True

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        for scaled in tuple(plan_maxima(function)):
            rewrite(scaled)


def plan_maxima(func: FuncOp) -> Iterator[ScaledMaximum]:
    """Yield the maxima of `func` that are scaled instead of their operands."""
    for op in func.walk():
        if isinstance(op, ReduceOp) and op.kind.data is ReduceKind.MAX:
            found = _scaled(op)
            if found is not None and all(map(_is_fused, _others(op))):
                yield found


def _scaled(maximum: ReduceOp) -> ScaledMaximum | None:
    """Return a maximum of a scaled value, None for any other maximum."""
    op, select = maximum.input.owner, None
    if isinstance(op, MapOp) and op.kind.data is MapKind.SELECT:
        _, shown, hidden = op.inputs
        if constant_of(hidden) is None or not shown.has_one_use():
            return None
        op, select = shown.owner, op
    if not isinstance(op, MapOp) or op.kind.data is not MapKind.MULT:
        return None
    number = None if names_of(op.inputs[1]) else constant_of(op.inputs[1])
    is_float = isinstance(element_type_of(op.result), Float32Type)
    if number is None or number <= 0 or not is_float:
        return None
    return ScaledMaximum(maximum, op, select)


def _others(maximum: ReduceOp) -> Iterator[Operation]:
    """Yield the ops beside a maximum that read its operand."""
    users = (use.operation for use in maximum.input.uses)
    return (user for user in users if user is not maximum)


def _is_fused(op: Operation) -> bool:
    return isinstance(op, MapOp) and op.kind.data in FUSED


def rewrite(scaled: ScaledMaximum) -> None:
    """Let a maximum read an unscaled value, and scale it."""
    maximum, product = scaled.maximum, scaled.product
    if (select := scaled.select) is None:
        maximum.operands[0] = product.inputs[0]
    else:
        maximum.operands[0] = _unscaled(scaled, select)
    result = MapOp(MapKind.MULT, (maximum.result, scaled.scale), maximum.result.type)
    result.result.name_hint = maximum.result.name_hint
    maximum.result.replace_uses_with_if(
        result.result, lambda use: use.operation is not result
    )
    Rewriter.insert_op(result, InsertPoint.after(maximum))


def _unscaled(scaled: ScaledMaximum, select: MapOp) -> SSAValue:
    """Move a scale behind a selection; return the selection of the unscaled value."""
    product, (condition, _, hidden) = scaled.product, select.inputs
    number, low = constant_of(scaled.scale), constant_of(hidden)
    assert number is not None
    assert low is not None
    lowest = scaled_number(low, 1 / number, float_type_of(hidden))
    fill = FillOp(lowest, hidden.type)
    values = (condition, product.inputs[0], fill.result)
    bare = MapOp(MapKind.SELECT, values, select.result.type)
    after = MapOp(MapKind.MULT, (bare.result, scaled.scale), select.result.type)
    fill.result.name_hint = hidden.name_hint
    bare.result.name_hint = select.result.name_hint
    after.result.name_hint = product.result.name_hint
    Rewriter.replace_op(select, (fill, bare, after))
    Rewriter.erase_op(product)
    if isinstance(hidden.owner, FillOp) and not hidden.uses:
        Rewriter.erase_op(hidden.owner)
    return bare.result
