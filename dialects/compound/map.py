"""
The elementwise op `map`, and its canonicalization for neutral operands.

A fold whose dimension is one chunk starts from neutral iter_args; the pattern turns it
into the plain form. It assumes finite values, as neutral elements are finite:
max(lowest, x) = x is wrong for x = -inf, min(highest, x) = x for x = inf, and 0 x = 0
for x = inf or NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import auto

from xdsl.dialects.builtin import AnyFloat, BFloat16Type, Float16Type, Float32Type
from xdsl.dialects.utils import EnumAttribute
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import (
    Attribute,
    SpacedOpaqueSyntaxAttribute,
    SSAValue,
)
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from comet.dialects.compound.dims import (
    float_type_of,
    merged_extents,
    names_of,
)
from comet.dialects.compound.elementary import FillOp, check_element_types, check_names


class MapKind(StrEnum):
    """What `compound.map` computes for each element."""

    ADD = auto()
    SUB = auto()
    MULT = auto()
    DIV = auto()
    MAX = auto()
    MIN = auto()
    EXP = auto()
    LOG = auto()
    SQRT = auto()
    RSQRT = auto()
    NEG = auto()
    TANH = auto()
    ERF = auto()
    COPY = auto()
    """The number itself: what is viewed gets memory of its own."""


_BINARY = ("add", "sub", "mult", "div", "max", "min")
MAP_ARITY = {kind: 2 if str(kind) in _BINARY else 1 for kind in MapKind}
"""The number of operands of each function."""


def _rsqrt(number: float) -> float:
    return 1 / math.sqrt(number)


ON_NUMBERS: Mapping[MapKind, Callable[..., float]] = {
    MapKind.ADD: float.__add__,
    MapKind.SUB: float.__sub__,
    MapKind.MULT: float.__mul__,
    MapKind.DIV: float.__truediv__,
    MapKind.MAX: max,
    MapKind.MIN: min,
    MapKind.EXP: math.exp,
    MapKind.LOG: math.log,
    MapKind.SQRT: math.sqrt,
    MapKind.RSQRT: _rsqrt,
    MapKind.NEG: float.__neg__,
    MapKind.TANH: math.tanh,
    MapKind.ERF: math.erf,
    MapKind.COPY: float,
}
"""The functions on numbers; they raise ArithmeticError or ValueError as `math` does."""


@irdl_attr_definition
class MapKindAttr(EnumAttribute[MapKind], SpacedOpaqueSyntaxAttribute):
    name = "compound.map_kind"


@irdl_op_definition
class MapOp(IRDLOperation, HasCanonicalizationPatternsInterface):
    """
    Compute an elementwise function; operands are broadcast by name.

    ```mlir
    %s = compound.map sub %c, %m : tensor<4x2xf32, #compound.dims<M, N>>,
        tensor<4xf32, #compound.dims<M>> -> tensor<4x2xf32, #compound.dims<M, N>>
    ```
    """

    name = "compound.map"
    kind = prop_def(MapKindAttr)
    inputs = var_operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$kind $inputs attr-dict `:` type($inputs) `->` type($result)"

    def __init__(
        self, kind: MapKind, inputs: Sequence[SSAValue], result_type: Attribute
    ):
        super().__init__(
            operands=[inputs],
            result_types=[result_type],
            properties={"kind": MapKindAttr(kind)},
        )

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (FoldMapOfConstants(), DropNeutralOperand())

    def verify_(self) -> None:
        arity = MAP_ARITY[self.kind.data]
        if len(self.inputs) != arity:
            raise VerifyException(
                f"'{self.name}' op {self.kind.data} takes {arity} operand(s), "
                f"got {len(self.inputs)}"
            )
        extents = merged_extents(self.inputs, self.name)
        check_names(self, self.result, extents)
        check_element_types(self, *self.inputs, self.result)
        if missing := [n for n in extents if n not in names_of(self.result)]:
            raise VerifyException(
                f"'{self.name}' op result lacks dimension {missing[0]} of an operand; "
                "use compound.reduce to drop a dimension"
            )


def lowest_finite(element_type: AnyFloat) -> float:
    """
    Return the lowest finite number of a floating-point type.

    Types other than f16, bf16 and f32 are assumed to hold every number of f64.
    """
    match element_type:
        case Float16Type():
            return -65504.0
        case BFloat16Type():
            return -(2.0 - 2.0**-7) * 2.0**127
        case Float32Type():
            return -(2.0 - 2.0**-23) * 2.0**127
        case _:
            return -(2.0 - 2.0**-52) * 2.0**1023


COMMUTATIVE = (MapKind.ADD, MapKind.MULT, MapKind.MAX, MapKind.MIN)


def constant_of(value: SSAValue) -> float | None:
    """Return the number of all elements of `value` if it is a fill, else None."""
    return value.owner.value.value.data if isinstance(value.owner, FillOp) else None


def neutral_operand(op: MapOp) -> SSAValue | None:
    """Return the operand that equals the result because the other is neutral."""
    neutral = _neutral(op)
    for kept, other in _pairs(op):
        known = is_zero(other) if neutral == 0 else constant_of(other) == neutral
        if neutral is not None and known and kept.type == op.result.type:
            return kept
    return None


def is_zero(value: SSAValue) -> bool:
    """Return whether all elements are 0, also as 0 * x or 0 / x."""
    seen, pending = set[SSAValue](), [value]
    while pending:
        factor = pending.pop()
        if constant_of(factor) == 0:
            return True
        op = factor.owner
        if factor not in seen and isinstance(op, MapOp):
            absorbing = {MapKind.MULT: op.inputs, MapKind.DIV: op.inputs[:1]}
            pending += absorbing.get(op.kind.data, ())
        seen.add(factor)
    return False


def _pairs(op: MapOp) -> list[tuple[SSAValue, SSAValue]]:
    """Return (operand that may remain, operand that may be neutral)."""
    if len(op.inputs) != 2:
        return []
    lhs, rhs = op.inputs
    return [(lhs, rhs)] + ([(rhs, lhs)] if op.kind.data in COMMUTATIVE else [])


def _neutral(op: MapOp) -> float | None:
    """Return the neutral number of the other operand, None if there is none."""
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


def fold_map(kind: MapKind, numbers: Sequence[float]) -> float | None:
    """Return the function's value, None where it has no finite one."""
    try:
        value = ON_NUMBERS[kind](*numbers)
    except (ArithmeticError, ValueError):
        return None
    return value if math.isfinite(value) else None


class FoldMapOfConstants(RewritePattern):
    """A function of constants is a constant, if it is finite."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MapOp, rewriter: PatternRewriter) -> None:
        numbers = [constant_of(value) for value in op.inputs]
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers):
            return
        if (value := fold_map(op.kind.data, known)) is not None:
            rewriter.replace(op, FillOp(value, op.result.type))


class DropNeutralOperand(RewritePattern):
    """
    x + 0, x - 0, x * 1, x / 1, max(x, lowest) and min(x, highest finite) are x.

    So is x + 0 y. But 0 y alone stays: a constant would not have the dimensions of y to
    loop over.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MapOp, rewriter: PatternRewriter) -> None:
        if (kept := neutral_operand(op)) is not None:
            rewriter.replace(op, (), (kept,))
