"""The elementary ops: `contract`, `reduce`, `cast`, `fill` and `extent`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import auto
from functools import lru_cache

from xdsl.dialects.builtin import (
    Float64Type,
    FloatAttr,
    IntegerType,
    StringAttr,
    f64,
    i1,
    i8,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.interfaces import HasCanonicalizationPatternsInterface
from xdsl.ir import (
    Attribute,
    Operation,
    SpacedOpaqueSyntaxAttribute,
    SSAValue,
)
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.pattern_rewriter import (
    PatternRewriter,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from comet.dialects.compound.dims import (
    Element,
    element_type_of,
    extents_of,
    float_type_of,
    joined_extents,
    level_of,
    merged_extents,
    names_of,
    tensor,
)
from comet.dialects.compound.literals import parse_number, print_number


class ReduceKind(StrEnum):
    """How partial values are combined, by `compound.reduce` and by collectives."""

    ADD = auto()
    MAX = auto()


def neutral_of(kind: ReduceKind, element: Element) -> float:
    """Return the neutral element of a reduction of an element type."""
    if kind is ReduceKind.ADD:
        return 0.0
    is_integer = isinstance(element, IntegerType)
    return -(2.0 ** (element.bitwidth - 1)) if is_integer else -math.inf


@irdl_attr_definition
class ReduceKindAttr(EnumAttribute[ReduceKind], SpacedOpaqueSyntaxAttribute):
    name = "compound.reduce_kind"


def check_names(op: IRDLOperation, result: SSAValue, extents: dict[str, int]) -> None:
    """Check that every dimension of `result` is one of `extents`, at that extent."""
    for name, extent in extents_of(result).items():
        if name not in extents:
            raise VerifyException(
                f"'{op.name}' op result has dimension {name}, which no operand has"
            )
        if extents[name] != extent:
            raise VerifyException(
                f"'{op.name}' op result has extent {extent} for dimension {name}, "
                f"the operands have {extents[name]}"
            )


def check_element_types(op: IRDLOperation, *values: SSAValue) -> None:
    """Check that all values have one element type, a float."""
    for value in values:
        float_type_of(value)
    check_one_type(op, values)


def check_one_type(op: IRDLOperation, values: Sequence[SSAValue]) -> None:
    """Check that all values have one element type."""
    types = [element_type_of(value) for value in values]
    for type_ in types[1:]:
        if type_ != types[0]:
            raise VerifyException(
                f"'{op.name}' op mixes element types {types[0]} and {type_}; "
                "make the conversion explicit with compound.cast"
            )


FILLING = 16
"""
The elements along a side of a product that fill a matrix unit: shorter sides are padded
(`tl.dot` of Triton takes no fewer).
"""


# The roles of dimensions are asked for very often, and few names occur.
@lru_cache(maxsize=1 << 10)
def _roles(
    lhs: tuple[str, ...], rhs: tuple[str, ...], result: tuple[str, ...]
) -> tuple[tuple[str, ...], ...]:
    """Return `ContractOp.roles` of tensors with these dimensions."""
    return (
        tuple(name for name in lhs if name in rhs and name in result),
        tuple(name for name in lhs if name not in rhs),
        tuple(name for name in rhs if name not in lhs),
        tuple(name for name in lhs if name not in result),
    )


@lru_cache(maxsize=1 << 10)
def _batched(
    roles: tuple[tuple[str, ...], ...], larger: frozenset[str], filling: frozenset[str]
) -> tuple[str, ...]:
    """
    Return `ContractOp.batched`.

    `larger` dimensions have more than one element, `filling` ones at least `FILLING`.
    """
    batch, *sides = roles
    for side in sides:
        choices = (
            [dim for dim in side if dim in filling],
            [dim for dim in side if dim in larger],
            side,
        )
        matrix_dim = next(filter(None, choices), ())[-1:]
        batch += tuple(dim for dim in side if dim not in matrix_dim)
    return batch


@irdl_op_definition
class ContractOp(IRDLOperation):
    """
    Multiply two tensors, and sum over the dimensions that the result does not have.

    The result's element type is the accumulator's: the operands' type or a wider one.

    ```mlir
    %c = compound.contract %a, %b : tensor<4x8xf16, #compound.dims<M, K>>,
        tensor<8x2xf16, #compound.dims<K, N>> -> tensor<4x2xf32, #compound.dims<M, N>>
    ```
    """

    name = "compound.contract"
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)"
    )

    def __init__(self, lhs: SSAValue, rhs: SSAValue, result_type: Attribute):
        super().__init__(operands=[lhs, rhs], result_types=[result_type])

    @property
    def contracted(self) -> tuple[str, ...]:
        """The dimensions that are summed, in the order of the left operand."""
        result_dims = names_of(self.result)
        return tuple(name for name in names_of(self.lhs) if name not in result_dims)

    @property
    def roles(self) -> tuple[tuple[str, ...], ...]:
        """
        The batch, row, column and summed dimensions.

        All three tensors have the batch dimensions. Each role is in the order of the
        left operand; columns are in that of the right operand.
        """
        return _roles(*map(names_of, (*self.operands, self.result)))

    @property
    def batched(self) -> tuple[str, ...]:
        """
        The dimensions without which this is a single product of two matrices.

        These are the batch dimensions, and all but one of the row, column and summed
        dimensions each. That one is the last with elements for a matrix unit, as its
        elements are nearest in memory, else the last with more than one, or the last.
        """
        extents = joined_extents(self.operands)
        larger = frozenset(dim for dim, extent in extents.items() if extent > 1)
        filling = frozenset(dim for dim in larger if extents[dim] >= FILLING)
        return _batched(self.roles, larger, filling)

    def verify_(self) -> None:
        check_names(self, self.result, merged_extents(self.operands, self.name))
        check_element_types(self, self.lhs, self.rhs)
        lhs, rhs = set(names_of(self.lhs)), set(names_of(self.rhs))
        for name in sorted((lhs ^ rhs) - set(names_of(self.result))):
            raise VerifyException(
                f"'{self.name}' op sums dimension {name}, which only one operand has; "
                "keep it in the result, or reduce that operand first"
            )
        operand, accumulator = float_type_of(self.lhs), float_type_of(self.result)
        if accumulator != operand and accumulator.bitwidth <= operand.bitwidth:
            raise VerifyException(
                f"'{self.name}' op accumulates {operand} in {accumulator}; the "
                "accumulator has the operands' type or a wider one"
            )


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """
    Reduce the dimensions that the result does not have, of floats, i32 or i64.

    ```mlir
    %m = compound.reduce max %c : tensor<4x2xf32, #compound.dims<M, N>>
        -> tensor<4xf32, #compound.dims<M>>
    ```
    """

    name = "compound.reduce"
    kind = prop_def(ReduceKindAttr)
    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$kind $input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, kind: ReduceKind, input: SSAValue, result_type: Attribute):
        super().__init__(
            operands=[input],
            result_types=[result_type],
            properties={"kind": ReduceKindAttr(kind)},
        )

    @property
    def reduced(self) -> tuple[str, ...]:
        """The dimensions that are reduced, in the order of the operand."""
        result_dims = names_of(self.result)
        return tuple(name for name in names_of(self.input) if name not in result_dims)

    def verify_(self) -> None:
        check_names(self, self.result, extents_of(self.input))
        check_one_type(self, (self.input, self.result))
        if (element := element_type_of(self.input)) in (i1, i8):
            what = "conditions" if element == i1 else "bytes"
            raise VerifyException(
                f"'{self.name}' op {self.kind.data} of {what}; reduce numbers, which "
                f"compound.cast makes of {element}"
            )
        if not self.reduced:
            raise VerifyException(
                f"'{self.name}' op reduces nothing: the result has every dimension of "
                "the operand"
            )


@irdl_op_definition
class CastOp(IRDLOperation, HasCanonicalizationPatternsInterface):
    """
    Convert the element type, also from integers, and from i1 to 1 and 0.

    Floats become integers as in C: rounded towards zero. What they become is not
    defined if the integer type lacks the result.

    ```mlir
    %h = compound.cast %p : tensor<4xf32, #compound.dims<M>>
        -> tensor<4xf16, #compound.dims<M>>
    ```
    """

    name = "compound.cast"
    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue, result_type: Attribute):
        super().__init__(operands=[input], result_types=[result_type])

    @property
    def truncates(self) -> bool:
        """Whether floats become integers."""
        before, after = map(element_type_of, (self.input, self.result))
        return isinstance(after, IntegerType) and not isinstance(before, IntegerType)

    @property
    def added_bits(self) -> int:
        """The bits of an element of the result, less those of the operand."""
        before, after = map(element_type_of, (self.input, self.result))
        return after.bitwidth - before.bitwidth

    @classmethod
    def get_canonicalization_patterns(cls) -> tuple[RewritePattern, ...]:
        return (FoldCastOfConstant(),)

    def verify_(self) -> None:
        if extents_of(self.input) != extents_of(self.result):
            raise VerifyException(f"'{self.name}' op changes only the element type")
        if names_of(self.input) != names_of(self.result):
            raise VerifyException(f"'{self.name}' op keeps the order of dimensions")
        element_type_of(self.input)
        if element_type_of(self.result) == i1:
            raise VerifyException(
                f"'{self.name}' op makes numbers, got {element_type_of(self.result)}; "
                "conditions are made by comparisons, as of compound.map eq"
            )


@irdl_op_definition
class FillOp(IRDLOperation):
    """
    A tensor with one number everywhere, possibly of rank 0; for i1, 1 is true.

    ```mlir
    %n = compound.fill 1.250000e-01 : tensor<f32, #compound.dims<>>
    ```
    """

    name = "compound.fill"
    value = prop_def(FloatAttr[Float64Type])
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, value: float, result_type: Attribute):
        super().__init__(
            result_types=[result_type], properties={"value": FloatAttr(value, f64)}
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_number(printer, self.value.value.data)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> FillOp:
        number = parse_number(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls(number, parser.parse_type())
        op.attributes |= attributes
        return op

    def verify_(self) -> None:
        names_of(self.result)
        check_number(self, self.value.value.data, self.result)


def check_number(op: Operation, number: float, value: SSAValue) -> None:
    """Check that integers or conditions, if a value has any, can hold a number."""
    element = element_type_of(value)
    if isinstance(element, IntegerType) and not is_integer(number, element):
        raise VerifyException(
            f"'{op.name}' op {number:g} is not representable in {element}"
        )


def is_integer(number: float, element: IntegerType) -> bool:
    """Whether a number is in the range of a signed integer type, or of i1: 0 and 1."""
    limit = 2 ** (element.bitwidth - 1)
    lowest, highest = (0, 1) if limit == 1 else (-limit, limit - 1)
    return number.is_integer() and lowest <= number <= highest


class FoldCastOfConstant(RewritePattern):
    """
    Fold the cast of a constant to a constant.

    It is not rounded to its first type, which is at least as exact. One that the new
    type lacks, such as an infinite integer, stays.
    """

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CastOp, rewriter: PatternRewriter) -> None:
        if isinstance(fill := op.input.owner, FillOp):
            number, element = fill.value.value.data, element_type_of(op.result)
            if isinstance(element, IntegerType):
                number = truncated(number)
                if not is_integer(number, element):
                    return
            rewriter.replace(op, FillOp(number, op.result.type))


def truncated(number: float) -> float:
    """Return a number rounded towards zero; infinities and NaN stay."""
    return float(math.trunc(number)) if math.isfinite(number) else number


@irdl_op_definition
class ExtentOp(IRDLOperation):
    """
    The number of real, not padded, elements along a dimension of the operand.

    ```mlir
    %n = compound.extent "N" of %c : tensor<4x2xf32, #compound.dims<M, N>>
        -> tensor<f32, #compound.dims<>>
    ```
    """

    name = "compound.extent"
    dim = prop_def(StringAttr)
    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$dim `of` $input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, dim: str, input: SSAValue, result_type: Attribute | None = None):
        element, level = element_type_of(input), level_of(input)
        super().__init__(
            operands=[input],
            result_types=[result_type or tensor({}, element, level)],
            properties={"dim": StringAttr(dim)},
        )

    def verify_(self) -> None:
        if self.dim.data not in names_of(self.input):
            raise VerifyException(
                f"'{self.name}' op operand has no dimension {self.dim.data}"
            )
        float_type_of(self.result)
        if names_of(self.result):
            raise VerifyException(f"'{self.name}' op result is of rank 0")
