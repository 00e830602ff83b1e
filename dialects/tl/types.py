"""
The types and kinds of the `tl` dialect, and the shape rules its operations share.

A value of a kernel is a scalar (`i32`, `f32`, `!tl.ptr<f16>`), a compile-time
integer (`!tl.constexpr<64>`, whose value is its type) or a block of scalars
(`tensor<64x32xf16>`).
"""

from collections.abc import Sequence
from enum import auto
from functools import lru_cache
from itertools import zip_longest
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    ContainerType,
    IntAttr,
    IntegerType,
    ShapedType,
    TensorType,
    i32,
)
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import (
    Attribute,
    ParametrizedAttribute,
    SpacedOpaqueSyntaxAttribute,
    TypeAttribute,
)
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum


class UnaryKind(StrEnum):
    """Elementwise functions of one operand in `triton.language`."""

    NEG = auto()
    ABS = auto()
    EXP = auto()
    EXP2 = auto()
    LOG = auto()
    LOG2 = auto()
    SQRT = auto()
    RSQRT = auto()
    SIGMOID = auto()
    ERF = auto()
    SIN = auto()
    COS = auto()
    FLOOR = auto()
    CEIL = auto()


class BinaryKind(StrEnum):
    """Elementwise functions of two operands; `and` and `or` are for masks only."""

    ADD = auto()
    SUB = auto()
    MUL = auto()
    DIV = auto()
    FLOORDIV = auto()
    MOD = auto()
    MAX = auto()
    """NaN where an operand is NaN, as is the minimum."""
    MIN = auto()
    AND = auto()
    OR = auto()


class CompareKind(StrEnum):
    """Comparisons; the result is a mask."""

    LT = auto()
    LE = auto()
    GT = auto()
    GE = auto()
    EQ = auto()
    NE = auto()


class ReduceKind(StrEnum):
    """Reductions of one axis of a block."""

    SUM = auto()
    MAX = auto()
    MIN = auto()


class Precision(StrEnum):
    """How a dot treats f32 operands: rounded to tf32, split in three, or exactly."""

    IEEE = auto()
    TF32 = auto()
    TF32X3 = auto()


@irdl_attr_definition
class UnaryKindAttr(EnumAttribute[UnaryKind], SpacedOpaqueSyntaxAttribute):
    """The function of a `tl.unary`."""

    name = "tl.unary_kind"


@irdl_attr_definition
class BinaryKindAttr(EnumAttribute[BinaryKind], SpacedOpaqueSyntaxAttribute):
    """The function of a `tl.binary`."""

    name = "tl.binary_kind"


@irdl_attr_definition
class CompareKindAttr(EnumAttribute[CompareKind], SpacedOpaqueSyntaxAttribute):
    """The comparison of a `tl.cmp`."""

    name = "tl.compare_kind"


@irdl_attr_definition
class ReduceKindAttr(EnumAttribute[ReduceKind], SpacedOpaqueSyntaxAttribute):
    """The reduction of a `tl.reduce`."""

    name = "tl.reduce_kind"


@irdl_attr_definition
class PrecisionAttr(EnumAttribute[Precision], SpacedOpaqueSyntaxAttribute):
    """The input precision of a `tl.dot`."""

    name = "tl.precision"


@irdl_attr_definition
class PtrType(ParametrizedAttribute, TypeAttribute):
    """A pointer to elements of one type in global memory, `!tl.ptr<f16>`."""

    name = "tl.ptr"

    pointee: Attribute

    def verify(self) -> None:
        if not isinstance(self.pointee, AnyFloat | IntegerType):
            raise VerifyException(
                f"!tl.ptr points to floats or integers, not to {self.pointee}"
            )


@irdl_attr_definition
class ConstexprType(ParametrizedAttribute, TypeAttribute):
    """An integer known when the kernel is compiled; `!tl.constexpr<64>` is 64."""

    name = "tl.constexpr"

    value: IntAttr

    @classmethod
    @lru_cache(maxsize=1 << 12)
    def of(cls, value: int) -> "ConstexprType":
        """Return the type whose only value is `value`; equal ones are one object."""
        return cls(IntAttr(value))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return (IntAttr(parser.parse_integer()),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_int(self.value.data)


@irdl_attr_definition
class CacheModifierType(ParametrizedAttribute, TypeAttribute):
    """How stores treat caches, known at compile time; the runtime gives it."""

    name = "tl.cache_modifier"


@irdl_attr_definition
class ProgramsType(ParametrizedAttribute, TypeAttribute):
    """
    How ranks divide a launch, known at compile time; the runtime gives it.

    0 if each rank launches its own kernel; the number of programs of a rank if one
    launch has the programs of all ranks.
    """

    name = "tl.programs"


def shape_of(type: Attribute) -> tuple[int, ...]:
    """Return the block's shape; scalars have rank 0."""
    return type.get_shape() if isinstance(type, ShapedType) else ()


def element_of(type: Attribute) -> Attribute:
    """Return the scalar type of a block or scalar; a constexpr counts as i32."""
    if isinstance(type, ContainerType):
        return cast("ContainerType[Attribute]", type).get_element_type()
    return i32 if isinstance(type, ConstexprType) else type


def block_of(element: Attribute, shape: Sequence[int]) -> Attribute:
    """Return the block type of that shape, or the scalar itself at rank 0."""
    return _uniqued(element, tuple(shape)) if shape else element


@lru_cache(maxsize=1 << 12)
def _uniqued(element: Attribute, shape: tuple[int, ...]) -> Attribute:
    """Return a block type. As in MLIR, equal types are one object."""
    return TensorType(element, shape)


def broadcast_shapes(op_name: str, *shapes: Sequence[int]) -> tuple[int, ...]:
    """
    Return the shape that `shapes` broadcast to, aligned at their last axes.

    Raises `VerifyException` if two extents differ and neither is 1.
    """
    result: list[int] = []
    for extents in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        widest = max(extents)
        if any(extent not in (1, widest) for extent in extents):
            raise VerifyException(
                f"'{op_name}' op blocks "
                f"{' and '.join('x'.join(map(str, s)) or 'scalar' for s in shapes)} "
                "do not broadcast"
            )
        result.append(widest)
    return tuple(reversed(result))
