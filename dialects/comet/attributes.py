"""
The attributes of the `comet` dialect: the tables of COMET files as typed values.

Each attribute holds a tuple of frozen dataclasses: `tile.entries[0].tensor` is the
tensor of the first column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Data, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from comet.kinds import (
    Access,
    BindingKind,
    CollectiveKind,
    OperationKind,
    ReductionKind,
    TileKind,
)

Sizes: TypeAlias = tuple[tuple[str, int], ...]
"""A positive number per dimension, in the order of the file."""


@irdl_attr_definition
class TileKindAttr(EnumAttribute[TileKind], SpacedOpaqueSyntaxAttribute):
    """Temporal or spatial."""

    name = "comet.tile_kind"


@irdl_attr_definition
class BindingKindAttr(EnumAttribute[BindingKind], SpacedOpaqueSyntaxAttribute):
    """The kind of an inter-tile binding."""

    name = "comet.binding_kind"


@irdl_attr_definition
class OperationKindAttr(EnumAttribute[OperationKind], SpacedOpaqueSyntaxAttribute):
    """The type of a leaf operation."""

    name = "comet.operation_kind"


@irdl_attr_definition
class CollectiveKindAttr(EnumAttribute[CollectiveKind], SpacedOpaqueSyntaxAttribute):
    """The type of a collective."""

    name = "comet.collective_kind"


@irdl_attr_definition
class ReductionKindAttr(EnumAttribute[ReductionKind], SpacedOpaqueSyntaxAttribute):
    """The operator of a reducing collective."""

    name = "comet.reduction_kind"


@dataclass(frozen=True)
class MovedTensor:
    """One column of a data-movement node: a tensor that moves between two levels."""

    tensor: str
    tag: str
    """The operation for which the tensor moves."""
    target: str
    """The level nearer to DRAM."""
    child: str
    """The level, or compute unit, below."""
    precision: int
    """Bits per element."""
    factors: tuple[Sizes, ...]
    """Rows of factors: one of a temporal node, one per mesh axis of a spatial one."""
    rmw: bool = False
    """Whether a written tile is read back first, to add to it."""
    wb_output: bool = False

    def factor(self, dim: str) -> int:
        """Return the product of the factors of `dim` over all rows."""
        product = 1
        for row in self.factors:
            product *= dict(row).get(dim, 1)
        return product


@dataclass(frozen=True)
class Step:
    """The part of one tensor that one step of a leaf operation covers."""

    tensor: str
    sizes: Sizes


@dataclass(frozen=True)
class Compute:
    """The `compute_attributes` of a leaf operation."""

    reduction: Sizes
    """Reduction dimensions and their factors."""
    rmw: bool = False
    specd: bool = False


def _print_name(printer: Printer, name: str) -> None:
    printer.print_identifier_or_string_literal(name)


def _parse_name(parser: AttrParser) -> str:
    return parser.parse_identifier_or_str_literal()


def _print_sizes(printer: Printer, sizes: Sizes) -> None:
    printer.print_string(", ".join(f"{dim} = {size}" for dim, size in sizes))


def _parse_sizes(parser: AttrParser, delimiter: AttrParser.Delimiter) -> Sizes:
    def parse_size() -> tuple[str, int]:
        dim = parser.parse_identifier()
        parser.parse_punctuation("=")
        return dim, parser.parse_integer(allow_boolean=False)

    return tuple(parser.parse_comma_separated_list(delimiter, parse_size))


def _print_lines(printer: Printer, lines: Iterable[Callable[[], None]]) -> None:
    """Print `<`, one indented line per element, and `>`."""
    with printer.in_angle_brackets():
        with printer.indented():
            for index, line in enumerate(lines):
                printer.print_string(",\n" if index else "\n")
                line()
        printer.print_string("\n")


def _verify_sizes(what: str, sizes: Sizes) -> None:
    """Check that dimensions are distinct single letters, and sizes positive."""
    dims = [dim for dim, _ in sizes]
    for dim, size in sizes:
        if len(dim) != 1 or not dim.isalpha():
            raise VerifyException(
                f"{what}: the dimension name '{dim}' is not a single letter, "
                "which is all the file format can read"
            )
        if dims.count(dim) > 1:
            raise VerifyException(f"{what}: the dimension {dim} is given twice")
        if size < 1:
            raise VerifyException(
                f"{what}: {dim} = {size} is not positive; write 1 or more"
            )


def verify_distinct(what: str, names: Iterable[str]) -> None:
    """Raise a `VerifyException` that starts with `what` if a name occurs twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise VerifyException(f"{what}: '{name}' is listed twice")
        seen.add(name)


@irdl_attr_definition
class SizesAttr(Data[Sizes]):
    """A size per dimension: `#comet.sizes<M = 256, N = 64>`."""

    name = "comet.sizes"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Sizes:
        return _parse_sizes(parser, parser.Delimiter.ANGLE)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_sizes(printer, self.data)

    def verify(self) -> None:
        _verify_sizes(self.name, self.data)


@irdl_attr_definition
class AccessesAttr(Data[tuple[Access, ...]]):
    """The tensors of an operation: `#comet.accesses<A[M, K], C[M, N] read_write>`."""

    name = "comet.accesses"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Access, ...]:
        def parse_axis() -> tuple[str, ...]:
            dims = [parser.parse_identifier()]
            while parser.parse_optional_punctuation("+"):
                dims.append(parser.parse_identifier())
            return tuple(dims)

        def parse_access() -> Access:
            tensor = _parse_name(parser)
            axes = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, parse_axis
            )
            written = parser.parse_optional_keyword("read_write") is not None
            return Access(tensor, tuple(axes), written)

        return tuple(
            parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_access)
        )

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_list(self.data, lambda access: _print_access(printer, access))

    def verify(self) -> None:
        verify_distinct(self.name, (access.tensor for access in self.data))


def _print_access(printer: Printer, access: Access) -> None:
    _print_name(printer, access.tensor)
    with printer.in_square_brackets():
        printer.print_string(", ".join(" + ".join(dims) for dims in access.projection))
    if access.read_write:
        printer.print_string(" read_write")


@irdl_attr_definition
class EntriesAttr(Data[tuple[MovedTensor, ...]]):
    """
    The columns of a data-movement node, one a line.

    ```mlir
    #comet.entries<
      A by GEMM, DRAM -> GB, 16 bits, [M = 8, N = 1, K = 1],
      H by DIV, DRAM -> GB, 16 bits, rmw, wb_output, [M = 8, N = 1, K = 1]
    >
    ```
    """

    name = "comet.entries"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[MovedTensor, ...]:
        return tuple(
            parser.parse_comma_separated_list(
                parser.Delimiter.ANGLE, lambda: _parse_entry(parser)
            )
        )

    def print_parameter(self, printer: Printer) -> None:
        _print_lines(printer, (partial(_print_entry, printer, e) for e in self.data))

    def verify(self) -> None:
        for entry in self.data:
            what = f"{self.name}: {entry.tensor} by {entry.tag}"
            if not 0 < entry.precision < 256:
                raise VerifyException(
                    f"{what}: a precision of {entry.precision} bits is out of range, "
                    "the file format holds 1 to 255"
                )
            for row in entry.factors:
                _verify_sizes(what, row)


def _parse_entry(parser: AttrParser) -> MovedTensor:
    tensor = _parse_name(parser)
    parser.parse_keyword("by")
    tag = _parse_name(parser)
    parser.parse_punctuation(",")
    target = _parse_name(parser)
    parser.parse_punctuation("->")
    child = _parse_name(parser)
    parser.parse_punctuation(",")
    precision = parser.parse_integer(allow_boolean=False, allow_negative=False)
    parser.parse_keyword("bits")
    parser.parse_punctuation(",")
    flags: dict[str, bool] = {}
    for flag in ("rmw", "wb_output"):
        flags[flag] = parser.parse_optional_keyword(flag) is not None
        if flags[flag]:
            parser.parse_punctuation(",")
    rows = [_parse_sizes(parser, parser.Delimiter.SQUARE)]
    while parser.parse_optional_keyword("x"):
        rows.append(_parse_sizes(parser, parser.Delimiter.SQUARE))
    return MovedTensor(tensor, tag, target, child, precision, tuple(rows), **flags)


def _print_entry(printer: Printer, entry: MovedTensor) -> None:
    _print_name(printer, entry.tensor)
    printer.print_string(" by ")
    _print_name(printer, entry.tag)
    printer.print_string(", ")
    _print_name(printer, entry.target)
    printer.print_string(" -> ")
    _print_name(printer, entry.child)
    printer.print_string(f", {entry.precision} bits, ")
    printer.print_string("rmw, " if entry.rmw else "")
    printer.print_string("wb_output, " if entry.wb_output else "")
    for index, row in enumerate(entry.factors):
        printer.print_string(" x " if index else "")
        with printer.in_square_brackets():
            _print_sizes(printer, row)


@irdl_attr_definition
class StepsAttr(Data[tuple[Step, ...]]):
    """The tensors of a leaf and their tiles: `#comet.steps<A[M = 1, K = 16]>`."""

    name = "comet.steps"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Step, ...]:
        def parse_step() -> Step:
            tensor = _parse_name(parser)
            return Step(tensor, _parse_sizes(parser, parser.Delimiter.SQUARE))

        return tuple(
            parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_step)
        )

    def print_parameter(self, printer: Printer) -> None:
        _print_lines(printer, (partial(_print_step, printer, s) for s in self.data))

    def verify(self) -> None:
        verify_distinct(self.name, (step.tensor for step in self.data))
        for step in self.data:
            _verify_sizes(f"{self.name}: {step.tensor}", step.sizes)


def _print_step(printer: Printer, step: Step) -> None:
    _print_name(printer, step.tensor)
    with printer.in_square_brackets():
        _print_sizes(printer, step.sizes)


@irdl_attr_definition
class ComputeAttr(Data[Compute]):
    """How a unit computes a leaf: `#comet.compute<[M = 16], rmw, specd>`."""

    name = "comet.compute"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Compute:
        with parser.in_angle_brackets():
            reduction = _parse_sizes(parser, parser.Delimiter.SQUARE)
            flags = {"rmw": False, "specd": False}
            while parser.parse_optional_punctuation(","):
                flags[parser.parse_keyword_in(("rmw", "specd"))] = True
        return Compute(reduction, **flags)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            with printer.in_square_brackets():
                _print_sizes(printer, self.data.reduction)
            printer.print_string(", rmw" if self.data.rmw else "")
            printer.print_string(", specd" if self.data.specd else "")

    def verify(self) -> None:
        _verify_sizes(self.name, self.data.reduction)
