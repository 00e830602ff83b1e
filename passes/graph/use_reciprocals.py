"""
`use-reciprocals`: elementary or SPMD level -> the same, with fewer divisions.

If the divisor of a quotient has fewer dimensions, as in a softmax, many elements are
divided by one number. A division takes a GPU some five instructions, one of them at an
eighth of the rate of a product. So the pass computes the reciprocal of each divisor
once, and multiplies: x / y becomes x (1 / y), and x / sqrt(y) becomes x rsqrt(y).
Reciprocals of constants are computed here. Runs after `sink-scales`, which matches
quotients.

The reciprocal is rounded, so that a quotient has one more rounding. The reciprocal of a
number beyond 2^126 is below the smallest normal number of f32, and GPUs may take it as
0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import Float32Type, Float64Type, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from comet.dialects.blocks import after_value
from comet.dialects.compound import FillOp, MapKind, MapOp
from comet.dialects.compound.dims import element_type_of, elements_of, tensor
from comet.dialects.compound.map import MapKindAttr, constant_of
from comet.passes.analysis.levels import IRLevel
from comet.passes.function_pass import FunctionPass

LARGEST = 2.0**126
"""Numbers up to this, and from its reciprocal on, have normal reciprocals in f32."""

ReciprocalPlan: TypeAlias = tuple[tuple[SSAValue, tuple[MapOp, ...]], ...]
"""The divisors that become factors, each with the quotients by it."""


@dataclass(frozen=True)
class UseReciprocalsPass(FunctionPass):
    """
    Divide once by each number, and multiply by the reciprocal.

    Before: `map div` in f32 or f64 by a constant, or by a value with fewer elements
    than the quotient. After: `map mult` by a constant; by `map rsqrt`, if the divisor
    is a square root; or by 1 divided by the divisor. All other quotients stay.
    """

    name = "use-reciprocals"

    LEVELS = (IRLevel.ELEMENTARY, IRLevel.SPMD)

    def rewrite(self, function: FuncOp, module: ModuleOp) -> None:
        rewrite(plan_reciprocals(function))


def plan_reciprocals(func: FuncOp) -> ReciprocalPlan:
    """Return the divisors of `func` whose reciprocals save divisions, in order."""
    found: dict[SSAValue, list[MapOp]] = {}
    for op in func.walk():
        if isinstance(op, MapOp) and op.kind.data is MapKind.DIV and _is_repeated(op):
            found.setdefault(op.inputs[1], []).append(op)
    return tuple((divisor, tuple(ops)) for divisor, ops in found.items())


def _is_repeated(quotient: MapOp) -> bool:
    """Whether several elements are divided by one number, which is no short float."""
    divisor = quotient.inputs[1]
    if not isinstance(element_type_of(divisor), Float32Type | Float64Type):
        return False
    if (number := constant_of(divisor)) is not None:
        return 1 / LARGEST <= abs(number) <= LARGEST
    return elements_of(divisor) < elements_of(quotient.result)


def rewrite(plan: ReciprocalPlan) -> None:
    """Carry out a plan, and erase divisors that become unused."""
    for divisor, quotients in plan:
        *_, last = ops = tuple(_reciprocal(divisor))
        factor = last.results[0]
        if divisor.name_hint is not None:
            factor.name_hint = f"{divisor.name_hint}_inverse"
        Rewriter.insert_op(ops, after_value(divisor))
        for quotient in quotients:
            quotient.kind = MapKindAttr(MapKind.MULT)
            quotient.operands[1] = factor
        if not divisor.uses and isinstance(op := divisor.owner, FillOp | MapOp):
            Rewriter.erase_op(op)


def _reciprocal(divisor: SSAValue) -> Iterator[Operation]:
    """Yield the ops that compute the reciprocal of a divisor."""
    op = divisor.owner
    if (number := constant_of(divisor)) is not None:
        yield FillOp(1 / number, divisor.type)
    elif isinstance(op, MapOp) and op.kind.data is MapKind.SQRT:
        yield MapOp(MapKind.RSQRT, op.inputs, divisor.type)
    else:
        yield (one := FillOp(1.0, tensor({}, element_type_of(divisor))))
        yield MapOp(MapKind.DIV, (one.result, divisor), divisor.type)
