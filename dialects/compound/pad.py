"""Padded extents: `pad` writes a number to the end of dimensions, `slice` drops it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import ArrayAttr, FloatData, IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.dims import extents_of, with_extents


@irdl_attr_definition
class PaddingAttr(ParametrizedAttribute):
    """
    A number, and the first position of each dimension from which on it is written.

    ```mlir
    #compound.padding<-inf from N = 257>
    #compound.padding<0.0 from M = 257, K = 100>
    ```
    """

    name = "compound.padding"

    number: FloatData = param_def()
    names: ArrayAttr[StringAttr] = param_def()
    counts: ArrayAttr[IntAttr] = param_def()

    def __init__(self, number: float, extents: Mapping[str, int]):
        super().__init__(
            FloatData(number),
            ArrayAttr(map(StringAttr, extents)),
            ArrayAttr(map(IntAttr, extents.values())),
        )

    @property
    def extents(self) -> dict[str, int]:
        """The true extent (elements) of each padded dimension."""
        names = (name.data for name in self.names)
        return dict(zip(names, (n.data for n in self.counts), strict=True))

    def renamed(self, old: str, new: str) -> PaddingAttr:
        """Return the padding with another name for a dimension."""
        extents = self.extents.items()
        names = {new if dim == old else dim: extent for dim, extent in extents}
        return PaddingAttr(self.number.data, names)

    def verify(self) -> None:
        if not self.names.data or len(self.extents) != len(self.names.data):
            raise VerifyException(f"'{self.name}' names dimensions, each once")
        if any(extent < 1 for extent in self.extents.values()):
            raise VerifyException(f"'{self.name}' has positive extents")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            number = _parse_number(parser)
            parser.parse_keyword("from")
            pairs = parser.parse_comma_separated_list(
                parser.Delimiter.NONE, lambda: _parse_extent(parser)
            )
        names, counts = zip(*pairs, strict=True)
        return FloatData(number), ArrayAttr(names), ArrayAttr(counts)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            sizes = ", ".join(f"{dim} = {n}" for dim, n in self.extents.items())
            printer.print_string(f"{self.number.data!r} from {sizes}")


def _parse_number(parser: AttrParser) -> float:
    negative = parser.parse_optional_punctuation("-") is not None
    infinite = parser.parse_optional_keyword("inf") is not None
    number = math.inf if infinite else float(parser.parse_number())
    return -number if negative else number


def _parse_extent(parser: AttrParser) -> tuple[StringAttr, IntAttr]:
    name = StringAttr(parser.parse_identifier())
    parser.parse_punctuation("=")
    return name, IntAttr(parser.parse_integer(allow_boolean=False))


@irdl_op_definition
class PadOp(IRDLOperation):
    """
    Write a number to all positions of some dimensions from their true extents on.

    The result may be larger than the operand along these dimensions, or as large: then
    the op replaces what the padding holds, which is called a mask. Positions count from
    the start of the whole dimension, not of a shard or a tile, so a mask may be in a
    region of instances and in the body of a node. Where it is written, padding counts
    as elements like others.

    ```mlir
    %b = compound.pad %a <0.0 from N = 3> : tensor<4x3xf32, #compound.dims<M, N>>
        -> tensor<4x8xf32, #compound.dims<M, N>>
    %c = compound.pad %b <-inf from N = 3> : tensor<4x8xf32, #compound.dims<M, N>>
        -> tensor<4x8xf32, #compound.dims<M, N>>
    ```
    """

    name = "compound.pad"
    padding = prop_def(PaddingAttr)
    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$input $padding attr-dict `:` type($input) `->` type($result)"

    def __init__(
        self,
        input: SSAValue,
        number: float,
        extents: Mapping[str, int],
        result_type: Attribute,
    ):
        super().__init__(
            operands=[input],
            result_types=[result_type],
            properties={"padding": PaddingAttr(number, extents)},
        )

    @property
    def number(self) -> float:
        """The number that the padding holds."""
        return self.padding.number.data

    @property
    def extents(self) -> dict[str, int]:
        """The true extent (elements) of each padded dimension."""
        return self.padding.extents

    @property
    def is_mask(self) -> bool:
        """Whether the operand has the padding already."""
        return extents_of(self.input) == extents_of(self.result)

    def verify_(self) -> None:
        before, after = _resized(self, self.input, self.result)
        for dim in self.extents:
            if dim not in before:
                raise VerifyException(
                    f"'{self.name}' op operand has no dimension {dim}"
                )
        for dim, extent in before.items():
            larger = after[dim] > extent and self.extents.get(dim) == extent
            if after[dim] != extent and not larger:
                raise VerifyException(
                    f"'{self.name}' op pads {dim} from {extent} to {after[dim]}; the "
                    f"padding begins at {extent}, and makes it larger"
                )


@irdl_op_definition
class SliceOp(IRDLOperation):
    """
    Take the first positions of the dimensions in which the result is smaller.

    ```mlir
    %a = compound.slice %b : tensor<4x8xf32, #compound.dims<M, N>>
        -> tensor<4x3xf32, #compound.dims<M, N>>
    ```
    """

    name = "compound.slice"
    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def __init__(self, input: SSAValue, result_type: Attribute):
        super().__init__(operands=[input], result_types=[result_type])

    def verify_(self) -> None:
        before, after = _resized(self, self.input, self.result)
        for dim, extent in before.items():
            if after[dim] > extent:
                raise VerifyException(
                    f"'{self.name}' op takes {after[dim]} of {extent} positions along "
                    f"{dim}; compound.pad makes a dimension larger"
                )


def unmasked(value: SSAValue) -> SSAValue:
    """Return the value below a chain of masks, whose memory they are in."""
    while isinstance(value.owner, PadOp) and value.owner.is_mask:
        value = value.owner.input
    return value


def _resized(
    op: IRDLOperation, before: SSAValue, after: SSAValue
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the extents of two values whose types differ in nothing else."""
    old, new = extents_of(before), extents_of(after)
    if tuple(old) != tuple(new) or with_extents(before.type, new) != after.type:
        raise VerifyException(
            f"'{op.name}' op changes only extents: names, element type and level stay"
        )
    return old, new
