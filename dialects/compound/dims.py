"""
Named dimensions: the `#compound.dims` encoding of tensors and pure functions on it.

A tensor type `tensor<8x32xf16, #compound.dims<M, N @OB>>` names its axes, and from the
schedule level on also the memory level of the value.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, count
from math import prod
from typing import TypeAlias, TypeVar, cast

from xdsl.dialects.builtin import (
    I1,
    I8,
    I32,
    I64,
    AnyFloat,
    ArrayAttr,
    IntegerType,
    StringAttr,
    TensorType,
    i1,
)
from xdsl.ir import (
    Attribute,
    BlockArgument,
    Operation,
    OpResult,
    ParametrizedAttribute,
    SSAValue,
)
from xdsl.irdl import irdl_attr_definition, irdl_to_attr_constraint, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

FLOAT_TENSOR = irdl_to_attr_constraint(TensorType[AnyFloat])

Element: TypeAlias = AnyFloat | IntegerType
"""
Element types: floats, counts, positions and ids in i32 or i64, conditions in i1, and i8
for what is stored in a byte, such as quantized weights.
"""
ElementT = TypeVar("ElementT", bound=Element)

COUNT_TENSOR = irdl_to_attr_constraint(TensorType[I32])
INTEGER_TENSOR = irdl_to_attr_constraint(TensorType[I32 | I64])
BOOLEAN_TENSOR = irdl_to_attr_constraint(TensorType[I1])
ANY_INTEGER_TENSOR = irdl_to_attr_constraint(TensorType[I1 | I8 | I32 | I64])

_NAMES, _EXTENTS, _ELEMENT = "compound.names", "compound.extents", "compound.element"
_BITS, _LEVEL, _AT_LEVELS = "compound.bits", "compound.level", "compound.at_levels"
"""Cached properties of a type: types are immutable, and these are read very often."""

LAUNCH_NUMBERS = ("warps", "stages", "group")
"""The names of launch numbers, which no dimension may have: plans name both."""
SPECIALIZE = "specialize"
"""The launch number of kernels with producer warps: 1, or not there."""
SUBTILES = "subtiles"
"""The launch number of kernels whose epilogue has several subtiles, or not there."""
CLUSTER = "cluster"
"""The launch number of kernels whose programs are clusters of blocks, or not there."""
ALL_LAUNCH_NUMBERS = (*LAUNCH_NUMBERS, SPECIALIZE, SUBTILES, CLUSTER)


@irdl_attr_definition
class DimsAttr(ParametrizedAttribute):
    """
    One name per axis, and the memory level of the value (empty: not chosen yet).

    ```mlir
    #compound.dims<M, N>
    #compound.dims<M, N @OB>
    #compound.dims<>
    ```
    """

    name = "compound.dims"

    names: ArrayAttr[StringAttr] = param_def()
    level_name: StringAttr = param_def()

    def __init__(self, names: Iterable[str], level: str | None = None):
        super().__init__(
            ArrayAttr(StringAttr(name) for name in names), StringAttr(level or "")
        )

    @property
    def axes(self) -> tuple[str, ...]:
        """The names as strings; cached, as they are read very often."""
        cached = vars(self)
        if "axes" not in cached:
            cached["axes"] = tuple(name.data for name in self.names)
        return cached["axes"]

    @property
    def level(self) -> str | None:
        """The memory level, None if not chosen yet."""
        return self.level_name.data or None

    def verify(self) -> None:
        names = [name.data for name in self.names]
        for name in names:
            if not name.isidentifier():
                raise VerifyException(f"dimension name '{name}' is not an identifier")
            if name in ALL_LAUNCH_NUMBERS:
                raise VerifyException(
                    f"dimension name '{name}' is reserved: in plans of tiles it is a "
                    "launch number; give the dimension another name"
                )
            if names.count(name) > 1:
                raise VerifyException(
                    f"dimension {name} appears twice in one type; "
                    "give one of its axes another name with compound.rename"
                )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        names: list[StringAttr] = []
        level = StringAttr("")
        with parser.in_angle_brackets():
            while (name := parser.parse_optional_identifier()) is not None:
                names.append(StringAttr(name))
                if parser.parse_optional_punctuation(",") is None:
                    break
            if (symbol := parser.parse_optional_symbol_name()) is not None:
                level = symbol
        return ArrayAttr(names), level

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join(name.data for name in self.names))
            if self.level is not None:
                printer.print_string(" " if self.names.data else "")
                printer.print_symbol_name(self.level)


def tensor(
    extents: Mapping[str, int] | Sequence[tuple[str, int]],
    element_type: ElementT,
    level: str | None = None,
) -> TensorType[ElementT]:
    """
    Return the tensor type with the named `extents` (elements, in axis order).

    As in MLIR, equal types are one object, which is verified once.
    """
    return cast(
        "TensorType[ElementT]",
        _uniqued(tuple(dict(extents).items()), element_type, level),
    )


@lru_cache(maxsize=1 << 12)
def _uniqued(
    extents: tuple[tuple[str, int], ...], element_type: Element, level: str | None
) -> TensorType[Element]:
    sizes = dict(extents)
    return TensorType(element_type, sizes.values(), DimsAttr(sizes, level))


def dims_attr(value: SSAValue | Attribute) -> DimsAttr:
    """
    Return the dims encoding of a value or type.

    Raises VerifyException if it is not a tensor with one name per axis, or if an extent
    is unknown or less than 1.
    """
    if type(type_ := _type_of(value)) is not TensorType:
        raise VerifyException(f"expected a tensor with named dimensions, got {type_}")
    if type(encoding := type_.encoding) is not DimsAttr:
        raise VerifyException(
            f"{type_} has no named dimensions; run decompose, or write "
            "#compound.dims<..> into the type"
        )
    if len(encoding.axes) != len(type_.shape.data):
        raise VerifyException(
            f"{type_} names {len(encoding.names)} dimensions for "
            f"{type_.get_num_dims()} axes"
        )
    if any(extent.data < 1 for extent in type_.shape.data):
        raise VerifyException(f"{type_} has extents that are not static and positive")
    return encoding


def names_of(value: SSAValue | Attribute) -> tuple[str, ...]:
    """Return the dimension names of a value or type, in axis order."""
    cached = vars(type_ := _type_of(value))
    if _NAMES not in cached:
        cached[_NAMES] = dims_attr(type_).axes
    return cached[_NAMES]


def iteration_dims(op: Operation) -> tuple[str, ...]:
    """Return the dimensions of an op's operands and results, in this order."""
    names = map(names_of, (*op.operands, *op.results))
    return tuple(dict.fromkeys(chain.from_iterable(names)))


def level_of(value: SSAValue | Attribute) -> str | None:
    """Return the memory level of a value or type, None if not chosen yet."""
    cached = vars(type_ := _type_of(value))
    if _LEVEL not in cached:
        cached[_LEVEL] = dims_attr(type_).level
    return cached[_LEVEL]


def extents_of(value: SSAValue | Attribute) -> dict[str, int]:
    """Return the extent (elements) of each named dimension, in axis order."""
    return {**_extents(value)}


def _extents(value: SSAValue | Attribute) -> Mapping[str, int]:
    """Return the extents that a type remembers, which are not to be changed."""
    cached = vars(type_ := _type_of(value))
    if _EXTENTS not in cached:
        names = names_of(type_)
        assert isinstance(type_, TensorType)
        cached[_EXTENTS] = dict(zip(names, type_.get_shape(), strict=True))
    return cached[_EXTENTS]


def element_type_of(value: SSAValue | Attribute) -> Element:
    """
    Return the element type of a tensor value or type.

    Raises VerifyException unless it is a float, i32, i64, i8 or i1.
    """
    cached = vars(type_ := _type_of(value))
    if _ELEMENT not in cached:
        cached[_ELEMENT] = _checked_element(type_)
    return cached[_ELEMENT]


def _checked_element(type_: Attribute) -> Element:
    """Return the element type of a tensor type, or raise, as `element_type_of`."""
    if isinstance(element := _element(type_), AnyFloat):
        return element
    if not ANY_INTEGER_TENSOR.verifies(type_):
        raise VerifyException(
            f"{type_} is not a tensor of floats, of i32, of i64, of i8 or of i1"
        )
    return type_.element_type


def bits_of(value: SSAValue | Attribute) -> int:
    """Return the bits of an element in memory; an i1 takes a byte."""
    cached = vars(type_ := _type_of(value))
    if _BITS not in cached:
        element = element_type_of(type_)
        cached[_BITS] = 8 if element == i1 else element.bitwidth
    return cached[_BITS]


def is_boolean(value: SSAValue | Attribute) -> bool:
    """Return whether a value or type is a tensor of i1."""
    return element_type_of(value) == i1


def ceil_div(extent: int, divisor: int) -> int:
    """
    Return ceil(extent / divisor).

    That is how many elements the longest of `divisor` parts of an extent has, or how
    many tiles of `divisor` elements cover it.
    """
    return -(-extent // divisor)


def elements_of(value: SSAValue | Attribute) -> int:
    """Return the number of elements of a tensor value or type."""
    return prod(_extents(value).values())


def bytes_of(value: SSAValue | Attribute) -> int:
    """Return the size of a tensor value or type in bytes, rounded up."""
    return ceil_div(elements_of(value) * bits_of(value), 8)


def _type_of(value: SSAValue | Attribute) -> Attribute:
    """Return the type of a value; called very often, and base classes are slow."""
    if type(value) is TensorType:
        return value
    if type(value) is OpResult or type(value) is BlockArgument:
        return value.type
    return value.type if isinstance(value, SSAValue) else value


def _element(type_: Attribute) -> Attribute | None:
    if not isinstance(type_, TensorType):
        return None
    return cast("TensorType[Attribute]", type_).element_type


def float_type_of(value: SSAValue | Attribute) -> AnyFloat:
    """
    Return the element type of a tensor that ops compute with.

    Raises VerifyException unless it is a float.
    """
    type_ = _type_of(value)
    if not FLOAT_TENSOR.verifies(type_):
        raise VerifyException(
            f"{type_} is not a tensor of floats; make one with compound.cast"
        )
    return type_.element_type


def with_extents(type_: Attribute, extents: Mapping[str, int]) -> TensorType[Element]:
    """Return `type_` with the extents of the dimensions named in `extents` replaced."""
    sizes = {n: extents.get(n, e) for n, e in extents_of(type_).items()}
    return tensor(sizes, element_type_of(type_), level_of(type_))


def with_names(type_: Attribute, names: Mapping[str, str]) -> TensorType[Element]:
    """Return `type_` with new names for the dimensions in `names`."""
    sizes = {names.get(n, n): e for n, e in extents_of(type_).items()}
    return tensor(sizes, element_type_of(type_), level_of(type_))


def with_level(type_: Attribute, level: str | None) -> TensorType[Element]:
    """Return `type_` at the memory level `level`."""
    found = vars(type_).setdefault(_AT_LEVELS, {})
    if level not in found:
        found[level] = tensor(extents_of(type_), element_type_of(type_), level)
    return found[level]


def with_element_type(type_: Attribute, element: ElementT) -> TensorType[ElementT]:
    """Return `type_` with another element type."""
    return tensor(extents_of(type_), element, level_of(type_))


def joined_extents(values: Iterable[SSAValue | Attribute]) -> dict[str, int]:
    """Return the extents of all names in `values`; a later value overrides."""
    joined: dict[str, int] = {}
    for value in values:
        joined.update(_extents(value))
    return joined


def merged_extents(
    values: Iterable[SSAValue | Attribute], where: str
) -> dict[str, int]:
    """
    Return the extents of all names that occur in `values`.

    Raises VerifyException if two of them disagree on the extent of a name.
    """
    merged: dict[str, int] = {}
    for value in values:
        for name, extent in _extents(value).items():
            if merged.setdefault(name, extent) != extent:
                raise VerifyException(
                    f"'{where}' op dimension {name} has extent {merged[name]} and "
                    f"{extent}; operands that share a dimension share its extent"
                )
    return merged


def unused(
    name: str, taken: Container[str | None], separator: str = "", *, first: int = 1
) -> str:
    """Return `name`, with the first number from `first` that makes it not `taken`."""
    numbered = (f"{name}{separator}{number}" for number in count(first))
    return next(free for free in chain([name], numbered) if free not in taken)
