"""Ops that change extents: `pad`, `slice` and `concat`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import isfinite

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    FloatData,
    IntAttr,
    IntegerAttr,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.dims import extents_of, with_extents
from comet.dialects.compound.elementary import check_number
from comet.dialects.compound.literals import parse_number
from comet.dialects.number_text import number_text


@irdl_attr_definition
class PaddingAttr(ParametrizedAttribute):
    """
    The number of padding, and the first position of it along each dimension.

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
            FloatData(float(number)),
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
            number = parse_number(parser)
            parser.parse_keyword("from")
            pairs = parser.parse_comma_separated_list(
                parser.Delimiter.NONE, lambda: _parse_extent(parser)
            )
        names, counts = zip(*pairs, strict=True)
        return FloatData(number), ArrayAttr(names), ArrayAttr(counts)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            sizes = ", ".join(f"{dim} = {n}" for dim, n in self.extents.items())
            number = self.number.data
            text = number_text(number) if isfinite(number) else repr(number)
            printer.print_string(f"{text} from {sizes}")


def _parse_extent(parser: AttrParser) -> tuple[StringAttr, IntAttr]:
    name = StringAttr(parser.parse_identifier())
    parser.parse_punctuation("=")
    return name, IntAttr(parser.parse_integer(allow_boolean=False))


@irdl_op_definition
class PadOp(IRDLOperation):
    """
    Write a number to all positions beyond the true extents of some dimensions.

    The result may be larger than the operand along these dimensions. If it is not, the
    op is a mask: it replaces the numbers in existing padding. Positions count from the
    start of the whole dimension, not of a shard or a tile, so a mask may be in an SPMD
    region and in the body of a node. Other ops treat padding like all elements.

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
        check_number(self, self.number, self.result)
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
    Take a range of positions of one dimension: offset and size.

    Without a dimension, take the first positions of each dimension that gets smaller.

    ```mlir
    %a = compound.slice %b "N" [2, 3] : tensor<4x8xf32, #compound.dims<M, N>>
        -> tensor<4x3xf32, #compound.dims<M, N>>
    %c = compound.slice %b : tensor<4x8xf32, #compound.dims<M, N>>
        -> tensor<2x3xf32, #compound.dims<M, N>>
    ```
    """

    name = "compound.slice"
    dim = opt_prop_def(StringAttr)
    offset = opt_prop_def(IntegerAttr[I64])
    size = opt_prop_def(IntegerAttr[I64])
    input = operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = (
        "$input ($dim^ `[` $offset `,` $size `]`)? attr-dict "
        "`:` type($input) `->` type($result)"
    )

    def __init__(
        self,
        input: SSAValue,
        result_type: Attribute,
        dim: str | None = None,
        offset: int = 0,
    ):
        properties: dict[str, Attribute | None] = {}
        if dim is not None:
            size = extents_of(result_type)[dim]
            properties = {
                "dim": StringAttr(dim),
                "offset": IntegerAttr(offset, i64),
                "size": IntegerAttr(size, i64),
            }
        super().__init__(
            operands=[input], result_types=[result_type], properties=properties
        )

    @property
    def offsets(self) -> dict[str, int]:
        """The first position taken along each dimension that gets smaller."""
        before, after = extents_of(self.input), extents_of(self.result)
        first = {dim: 0 for dim in before if after[dim] != before[dim]}
        if self.dim is not None and self.offset is not None:
            first |= {self.dim.data: self.offset.value.data}
        return first

    def verify_(self) -> None:
        before, after = _resized(self, self.input, self.result)
        for dim, extent in before.items():
            if after[dim] > extent:
                raise VerifyException(
                    f"'{self.name}' op takes {after[dim]} of {extent} positions along "
                    f"{dim}; compound.pad makes a dimension larger"
                )
        self._check_positions(before, after)

    def _check_positions(
        self, before: Mapping[str, int], after: Mapping[str, int]
    ) -> None:
        """Check the dimension, its offset and its size, if the op has them."""
        fields = (self.dim, self.offset, self.size)
        if all(field is None for field in fields):
            return
        if self.dim is None or self.offset is None or self.size is None:
            raise VerifyException(
                f"'{self.name}' op has a dimension, a first position and a size, or "
                "none of them"
            )
        dim, first, size = self.dim.data, self.offset.value.data, self.size.value.data
        if dim not in before:
            raise VerifyException(f"'{self.name}' op operand has no dimension {dim}")
        if {**before, dim: size} != after:
            raise VerifyException(
                f"'{self.name}' op takes {size} positions along {dim}, and its result "
                f"is {self.result.type}"
            )
        if first < 0 or first + size > before[dim]:
            raise VerifyException(
                f"'{self.name}' op takes the positions from {first} to "
                f"{first + size - 1} along {dim}, which has {before[dim]}"
            )


@irdl_op_definition
class ConcatOp(IRDLOperation):
    """
    Join values one after the other along a dimension; they may have unequal extents.

    ```mlir
    %c = compound.concat "N" %a, %b : tensor<4x3xf32, #compound.dims<M, N>>,
        tensor<4x5xf32, #compound.dims<M, N>> -> tensor<4x8xf32, #compound.dims<M, N>>
    ```
    """

    name = "compound.concat"
    dim = prop_def(StringAttr)
    inputs = var_operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$dim $inputs attr-dict `:` type($inputs) `->` type($result)"

    def __init__(self, dim: str, inputs: Sequence[SSAValue]):
        total = sum(extents_of(value)[dim] for value in inputs)
        super().__init__(
            operands=[inputs],
            result_types=[with_extents(inputs[0].type, {dim: total})],
            properties={"dim": StringAttr(dim)},
        )

    @property
    def firsts(self) -> tuple[int, ...]:
        """The position of each operand's first element along the dimension."""
        sizes = (extents_of(value)[self.dim.data] for value in self.inputs)
        return tuple(accumulate(sizes, initial=0))[:-1]

    def verify_(self) -> None:
        if not self.inputs:
            raise VerifyException(f"'{self.name}' op joins at least one value")
        dim, after = self.dim.data, extents_of(self.result)
        if dim not in after:
            raise VerifyException(f"'{self.name}' op result has no dimension {dim}")
        sizes: list[int] = []
        for value in self.inputs:
            before, _ = _resized(self, value, self.result)
            if {**before, dim: after[dim]} != after:
                raise VerifyException(
                    f"'{self.name}' op joins {value.type} along {dim} only, and its "
                    f"result is {self.result.type}"
                )
            sizes.append(before[dim])
        if sum(sizes) != after[dim]:
            raise VerifyException(
                f"'{self.name}' op joins {sum(sizes)} positions along {dim}, and its "
                f"result has {after[dim]}"
            )


def resized_dims(op: Operation) -> frozenset[str]:
    """Return the dimensions that a slice or a concat changes, none for other ops."""
    if isinstance(op, ConcatOp):
        return frozenset((op.dim.data,))
    return frozenset(op.offsets if isinstance(op, SliceOp) else ())


def _resized(
    op: IRDLOperation, before: SSAValue, after: SSAValue
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the extents of two values, after a check that all else is equal."""
    old, new = extents_of(before), extents_of(after)
    if tuple(old) != tuple(new) or with_extents(before.type, new) != after.type:
        raise VerifyException(
            f"'{op.name}' op changes only extents: names, element type and level stay"
        )
    return old, new
