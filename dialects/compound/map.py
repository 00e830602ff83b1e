"""
The elementwise op `map`, and its canonicalization for neutral operands.

A fold over a single chunk starts from neutral iter_args; canonicalization removes them.
It assumes finite values, as neutral elements are finite: max(lowest, x) = x is wrong
for x = -inf, min(highest, x) = x for x = inf, and 0 x = 0 for x = inf or NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from enum import auto

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    IntegerType,
    f32,
    i32,
    i64,
)
from xdsl.dialects.func import ReturnOp
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
    Element,
    element_type_of,
    is_boolean,
    merged_extents,
    names_of,
)
from comet.dialects.compound.elementary import (
    FillOp,
    check_element_types,
    check_names,
    check_one_type,
)
from comet.dialects.compound.index import IndexOp
from comet.dialects.compound.views import View
from comet.digraph import reachable
from comet.philox import random_number


class MapKind(StrEnum):
    """What `compound.map` computes for each element."""

    ADD = auto()
    SUB = auto()
    MULT = auto()
    DIV = auto()
    MAX = auto()
    MIN = auto()
    EXP = auto()
    EXP2 = auto()
    """2 to the power of its operand."""
    LOG = auto()
    SQRT = auto()
    RSQRT = auto()
    NEG = auto()
    TANH = auto()
    ERF = auto()
    SIN = auto()
    COS = auto()
    COPY = auto()
    """The operand itself, in new memory: it materializes a view."""
    GE = auto()
    GT = auto()
    EQ = auto()
    SELECT = auto()
    """The second operand where the first (i1) is true, the third elsewhere."""
    RANDOM = auto()
    """A number of [0, 1) that a seed and a position give, by Philox 4x32-10."""


COMPARISONS = (MapKind.GE, MapKind.GT, MapKind.EQ)
"""Comparisons of two operands of one type; the result is i1."""
ON_INTEGERS = (MapKind.ADD, MapKind.SUB, MapKind.MULT, MapKind.MAX, MapKind.MIN)
"""Functions that also take i32 and i64: positions, counts and ids."""
_ON_ALL_TYPES = (*COMPARISONS, MapKind.SELECT, MapKind.COPY)
_BINARY = (*ON_INTEGERS, MapKind.DIV, *COMPARISONS, MapKind.RANDOM)
MAP_ARITY = {kind: 2 if kind in _BINARY else 1 for kind in MapKind} | {
    MapKind.SELECT: 3
}
"""The number of operands of each function."""


def is_defined_on(kind: MapKind, element: Element) -> bool:
    """Return whether a function takes operands, but for conditions, of this type."""
    if not isinstance(element, IntegerType):
        return kind is not MapKind.RANDOM
    wide = element.bitwidth >= 32 and kind in (*ON_INTEGERS, MapKind.RANDOM)
    return wide or kind in _ON_ALL_TYPES


def _rsqrt(number: float) -> float:
    return 1 / math.sqrt(number)


def _select(condition: float, then: float, otherwise: float) -> float:
    return then if condition else otherwise


ON_NUMBERS: Mapping[MapKind, Callable[..., float]] = {
    MapKind.ADD: float.__add__,
    MapKind.SUB: float.__sub__,
    MapKind.MULT: float.__mul__,
    MapKind.DIV: float.__truediv__,
    MapKind.MAX: max,
    MapKind.MIN: min,
    MapKind.EXP: math.exp,
    MapKind.EXP2: math.exp2,
    MapKind.LOG: math.log,
    MapKind.SQRT: math.sqrt,
    MapKind.RSQRT: _rsqrt,
    MapKind.NEG: float.__neg__,
    MapKind.TANH: math.tanh,
    MapKind.ERF: math.erf,
    MapKind.SIN: math.sin,
    MapKind.COS: math.cos,
    MapKind.COPY: float,
    MapKind.GE: float.__ge__,
    MapKind.GT: float.__gt__,
    MapKind.EQ: float.__eq__,
    MapKind.SELECT: _select,
    MapKind.RANDOM: random_number,
}
"""
The functions on numbers; they raise ArithmeticError or ValueError as `math` does.

True is 1, false is 0.
"""


@irdl_attr_definition
class MapKindAttr(EnumAttribute[MapKind], SpacedOpaqueSyntaxAttribute):
    name = "compound.map_kind"


@irdl_op_definition
class MapOp(IRDLOperation, HasCanonicalizationPatternsInterface):
    """
    Compute an elementwise function; operands are broadcast by name.

    `ge`, `gt` and `eq` compare two operands of one type; their result is of i1. Every
    comparison with NaN is false. `select` has a condition, of i1, and two operands of
    the result's type: the result is the first one where the condition is true, and
    the second one elsewhere, whatever the first one holds there.

    `random` has a seed, of i64 or i32, and a position, of i32; the result is a number
    of [0, 1), of f32. It depends on these two alone, however tensors are tiled, sharded
    or computed again. Of a position in a tensor it is that of `compound.index`, or a
    sum of several times their strides, which may wrap around.

    ```mlir
    %s = compound.map sub %c, %m : tensor<4x2xf32, #compound.dims<M, N>>,
        tensor<4xf32, #compound.dims<M>> -> tensor<4x2xf32, #compound.dims<M, N>>
    %v = compound.map ge %m, %n : tensor<4xi32, #compound.dims<M>>,
        tensor<2xi32, #compound.dims<N>> -> tensor<4x2xi1, #compound.dims<M, N>>
    %t = compound.map select %v, %s, %l : tensor<4x2xi1, #compound.dims<M, N>>,
        tensor<4x2xf32, #compound.dims<M, N>>, tensor<f32, #compound.dims<>>
        -> tensor<4x2xf32, #compound.dims<M, N>>
    %u = compound.map random %seed, %n : tensor<i64, #compound.dims<>>,
        tensor<2xi32, #compound.dims<N>> -> tensor<2xf32, #compound.dims<N>>
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
        return (FoldMap(),)

    def verify_(self) -> None:
        arity = MAP_ARITY[self.kind.data]
        if len(self.inputs) != arity:
            raise VerifyException(
                f"'{self.name}' op {self.kind.data} takes {arity} operand(s), "
                f"got {len(self.inputs)}"
            )
        extents = merged_extents(self.inputs, self.name)
        check_names(self, self.result, extents)
        self._verify_element_types()
        if missing := [n for n in extents if n not in names_of(self.result)]:
            raise VerifyException(
                f"'{self.name}' op result lacks dimension {missing[0]} of an operand; "
                "use compound.reduce to drop a dimension"
            )

    def _verify_element_types(self) -> None:
        """Check that all values but the condition have one element type."""
        kind, values = self.kind.data, [*self.inputs, self.result]
        if kind is MapKind.RANDOM:
            self._verify_random(*values)
            return
        if kind is MapKind.SELECT:
            self._verify_condition("first operand", values.pop(0))
        elif kind in COMPARISONS:
            self._verify_condition("result", values.pop())
        check_one_type(self, values)
        if not is_defined_on(kind, element_type_of(values[0])):
            check_element_types(self, *values)

    def _verify_random(
        self, seed: SSAValue, position: SSAValue, number: SSAValue
    ) -> None:
        for what, value, legal in (
            ("seeds", seed, (i64, i32)),
            ("positions", position, (i32,)),
            ("results", number, (f32,)),
        ):
            if element_type_of(value) not in legal:
                raise VerifyException(
                    f"'{self.name}' op random has {what} of "
                    f"{' or '.join(map(str, legal))}, got {value.type}"
                )

    def _verify_condition(self, which: str, value: SSAValue) -> None:
        if not is_boolean(value):
            raise VerifyException(
                f"'{self.name}' op {self.kind.data} has a condition, a tensor of i1, "
                f"as its {which}, got {value.type}"
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


def scaled_number(number: float, factor: float, element_type: AnyFloat) -> float:
    """
    Return the multiple of a number, finite in `element_type` if the number is.

    So a mask of the lowest finite numbers hides no more and no less than before, and
    one of infinities either.
    """
    if math.isinf(number):
        return number * factor
    lowest = lowest_finite(element_type)
    return min(max(number * factor, lowest), -lowest)


COMMUTATIVE = (MapKind.ADD, MapKind.MULT, MapKind.MAX, MapKind.MIN)


def constant_of(value: SSAValue) -> float | None:
    """Return the number of all elements of `value` if it is a fill, else None."""
    return value.owner.value.value.data if isinstance(value.owner, FillOp) else None


def neutral_operand(op: MapOp) -> SSAValue | None:
    """Return the operand that equals the result because the other is neutral."""
    neutral = _neutral(op)
    for operand, other in _pairs(op):
        is_neutral = is_zero(other) if neutral == 0 else constant_of(other) == neutral
        if neutral is not None and is_neutral and operand.type == op.result.type:
            return operand
    return None


def is_zero(value: SSAValue) -> bool:
    """Return whether all elements are 0, also as 0 * x or 0 / x."""

    def factors(product: SSAValue) -> Sequence[SSAValue]:
        match product.owner:
            case MapOp() as op if op.kind.data is MapKind.MULT:
                return op.inputs
            case MapOp() as op if op.kind.data is MapKind.DIV:
                return op.inputs[:1]
            case _:
                return ()

    return any(constant_of(factor) == 0 for factor in reachable((value,), factors))


def _pairs(op: MapOp) -> list[tuple[SSAValue, SSAValue]]:
    """Return (operand that may remain, operand that may be neutral)."""
    if len(op.inputs) != 2:
        return []
    lhs, rhs = op.inputs
    return [(lhs, rhs)] + ([(rhs, lhs)] if op.kind.data in COMMUTATIVE else [])


def _neutral(op: MapOp) -> float | None:
    """Return the neutral element that one operand of `op` may be, None without one."""
    element = element_type_of(op.result)
    match op.kind.data:
        case MapKind.ADD | MapKind.SUB:
            return 0.0
        case MapKind.MULT | MapKind.DIV:
            return 1.0
        case MapKind.MAX if isinstance(element, AnyFloat):
            return lowest_finite(element)
        case MapKind.MIN if isinstance(element, AnyFloat):
            return -lowest_finite(element)
        case _:
            return None


def fold_map(kind: MapKind, numbers: Sequence[float]) -> float | None:
    """
    Return the function's value, None if it is not finite or not defined.

    A selection may be infinite.
    """
    try:
        value = float(ON_NUMBERS[kind](*numbers))
    except (ArithmeticError, ValueError):
        return None
    return value if math.isfinite(value) or kind is MapKind.SELECT else None


def folded(op: MapOp) -> SSAValue | float | None:
    """
    Return the operand, or the number, that the result of `op` equals, None without one.

    x + 0, x - 0, x * 1, x / 1, max(x, lowest) and min(x, highest finite) equal x, and
    so does x + 0 y. But 0 y stays: a constant would not have the dimensions of y, which
    loops need. A function of constants is one if it is finite; a selection by a
    constant is one of its operands.
    """
    numbers = [constant_of(value) for value in op.inputs]
    constants = [number for number in numbers if number is not None]
    if len(constants) == len(numbers):
        value = fold_map(op.kind.data, constants)
        if value is not None:
            return value
    if (operand := neutral_operand(op)) is not None:
        return operand
    if op.kind.data is not MapKind.SELECT or numbers[0] is None:
        return None
    selected = op.inputs[1 if numbers[0] else 2]
    return selected if selected.type == op.result.type else None


class FoldMap(RewritePattern):
    """
    Replace a function by the operand or the constant that it equals.

    Positions and views are no results that kernels store: what is returned copies them.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MapOp, rewriter: PatternRewriter) -> None:
        equal = folded(op)
        if isinstance(equal, SSAValue):
            uses = (use.operation for use in op.result.uses)
            returned = any(isinstance(user, ReturnOp) for user in uses)
            if returned and isinstance(equal.owner, IndexOp | View):
                rewriter.replace(op, MapOp(MapKind.COPY, [equal], op.result.type))
            else:
                rewriter.replace(op, (), (equal,))
        elif equal is not None:
            rewriter.replace(op, FillOp(equal, op.result.type))
