"""Attributes of the schedule dialect: loops, combiners, bindings, blocks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import auto
from math import prod

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_to_attr_constraint,
    param_def,
)
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.utils.bitwise_casts import is_power_of_two
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from comet.dialects.schedule.launch import PERSISTENT

NARROW = "comet.narrow"
"""The function attribute with the names of the products that are stored narrow."""

UNROLLED = 4
"""
The most iterations of a loop whose end compilers know, and which they unroll.

Longer ones end at a number that is known at run time only, see `lower-to-triton`.
"""

GRID_AXES = 3
"""The number of axes of a launch grid."""


@irdl_attr_definition
class LoopAttr(ParametrizedAttribute):
    """
    One loop of a node: a dimension, its factor and, in a spatial node, its axis.

    ```mlir
    #schedule.loop<N = 2>
    #schedule.loop<cx: N = 2>
    ```
    """

    name = "schedule.loop"

    axis_name: StringAttr = param_def()
    dim_name: StringAttr = param_def()
    count: IntAttr = param_def()

    def __init__(self, dim: str, factor: int, axis: str | None = None):
        super().__init__(StringAttr(axis or ""), StringAttr(dim), IntAttr(factor))

    @property
    def dim(self) -> str:
        """The name of the dimension."""
        return self.dim_name.data

    @property
    def factor(self) -> int:
        """The number of tiles (temporal) or of instances (spatial)."""
        return self.count.data

    @property
    def axis(self) -> str | None:
        """The mesh or grid axis of a spatial loop, None in a temporal one."""
        return self.axis_name.data or None

    def verify(self) -> None:
        if self.factor < 1:
            raise VerifyException(
                f"factor {self.factor} of {self.dim} is not positive; write 1 or more"
            )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return _parse_loop(parser).parameters

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            _print_loop(printer, self)


def _parse_loop(parser: AttrParser) -> LoopAttr:
    axis, dim = None, parser.parse_identifier("dimension name expected")
    if parser.parse_optional_punctuation(":") is not None:
        axis, dim = dim, parser.parse_identifier("dimension name expected")
    parser.parse_punctuation("=")
    return LoopAttr(dim, parser.parse_integer(), axis)


def _print_loop(printer: Printer, loop: LoopAttr) -> None:
    axis = "" if loop.axis is None else f"{loop.axis}: "
    printer.print_string(f"{axis}{loop.dim} = {loop.factor}")


ROWS = irdl_to_attr_constraint(ArrayAttr[LoopAttr])


def parse_loops(parser: AttrParser) -> ArrayAttr[LoopAttr]:
    """Parse loops in brackets: `[N = 2, K = 8]`."""
    return ArrayAttr(
        parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: _parse_loop(parser)
        )
    )


def print_loops(printer: Printer, loops: Iterable[LoopAttr]) -> None:
    """Print loops in brackets: `[N = 2, K = 8]`."""
    with printer.in_square_brackets():
        printer.print_list(loops, lambda loop: _print_loop(printer, loop))


@irdl_custom_directive
class LoopList(CustomDirective):
    """Loops in brackets, outermost first: `[N = 2, K = 8]`, `[cx: N = 2]`."""

    loops: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.loops.set(state, parse_loops(parser))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        loops = self.loops.get(op)
        assert loops is not None
        assert ROWS.verifies(loops)
        print_loops(printer, loops)


class Combiner(StrEnum):
    """How the results of a node's iterations or instances become one value."""

    NONE = auto()
    """Concatenated: the result has every looped dimension."""
    ADD = auto()
    MAX = auto()
    FOLD = auto()
    """By iter_args (temporal) or by the merge region (spatial)."""
    SAME = auto()
    """All have the same value."""
    ROOT = auto()
    """The value of instance 0."""


class BindingKind(StrEnum):
    """When a node's next sibling runs."""

    SEQUENTIAL = auto()
    PIPELINE = auto()
    PARALLEL = auto()


@irdl_attr_definition
class BindingAttr(EnumAttribute[BindingKind]):
    """
    Binds a node or collective to its next node or collective sibling.

    ```mlir
    schedule.bind = #schedule.binding<pipeline>
    ```
    """

    name = "schedule.binding"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> BindingKind:
        with parser.in_angle_brackets():
            return super().parse_parameter(parser)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            super().print_parameter(printer)


BIND = "schedule.bind"
"""The attribute of a node or collective with its binding."""


def binding_of(op: Operation) -> BindingKind:
    """Return when the next sibling of a node or collective runs: by default after."""
    binding = op.attributes.get(BIND)
    return binding.data if isinstance(binding, BindingAttr) else BindingKind.SEQUENTIAL


def power_of_two(extent: int) -> int:
    """Return the smallest power of two that is at least `extent`."""
    return 1 << (extent - 1).bit_length()


@irdl_attr_definition
class BlocksAttr(ParametrizedAttribute):
    """
    The blocks of a kernel on a GPU: the power of two that each tile is padded to.

    A tile is a dimension and its extent; equal tiles have one block.

    ```mlir
    #schedule.blocks<M: 3 -> 4, K: 8 -> 16, K: 32 -> 32>
    ```
    """

    name = "schedule.blocks"

    dims: ArrayAttr[StringAttr] = param_def()
    tiles: ArrayAttr[IntAttr] = param_def()
    padded: ArrayAttr[IntAttr] = param_def()

    def __init__(self, sizes: Mapping[tuple[str, int], int]):
        super().__init__(
            ArrayAttr(StringAttr(dim) for dim, _ in sizes),
            ArrayAttr(IntAttr(tile) for _, tile in sizes),
            ArrayAttr(IntAttr(size) for size in sizes.values()),
        )

    @property
    def sizes(self) -> dict[tuple[str, int], int]:
        """The block size of each dimension and tile extent, in elements."""
        rows = zip(self.dims, self.tiles, self.padded, strict=True)
        return {(dim.data, tile.data): size.data for dim, tile, size in rows}

    def size(self, dim: str, tile: int) -> int:
        """Return the block of a tile; the smallest power of two if it is not listed."""
        return self.sizes.get((dim, tile), power_of_two(tile))

    def verify(self) -> None:
        for (dim, tile), size in self.sizes.items():
            if not 1 <= tile <= size or not is_power_of_two(size):
                raise VerifyException(
                    f"a block of {size} elements for a tile of {dim} = {tile}; write "
                    "a power of two that is at least the tile"
                )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        sizes: dict[tuple[str, int], int] = {}

        def parse_size() -> None:
            dim = parser.parse_identifier("dimension name expected")
            parser.parse_punctuation(":")
            tile = parser.parse_integer()
            parser.parse_punctuation("->")
            sizes[dim, tile] = parser.parse_integer()

        parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_size)
        return cls(sizes).parameters

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            sizes = self.sizes.items()
            texts = (f"{dim}: {tile} -> {size}" for (dim, tile), size in sizes)
            printer.print_string(", ".join(texts))


@irdl_attr_definition
class ProgramsAttr(ParametrizedAttribute):
    """
    The programs of a grid node.

    For each loop: how many programs, with how many elements each, on which axis of the
    launch grid. If several loops are on one axis, the last one advances fastest.
    `swizzle` is the number of programs along the loops before the last that start
    before the last loop advances; they are rows of a matrix whose columns it has.
    `persistent` is the number of programs that are launched, if these are fewer than
    the tiles: program p computes the tiles p, p + persistent, and so on.

    ```mlir
    #schedule.programs<8 of 128 on 1, 6 of 64 on 0, swizzle 4>
    #schedule.programs<8 of 128 on 1, 6 of 64 on 0, swizzle 4, persistent 12>
    ```
    """

    name = "schedule.programs"

    counts_: ArrayAttr[IntAttr] = param_def()
    slices_: ArrayAttr[IntAttr] = param_def()
    axes_: ArrayAttr[IntAttr] = param_def()
    swizzle_: IntAttr = param_def()
    persistent_: IntAttr = param_def()

    def __init__(
        self,
        counts: Sequence[int],
        slices: Sequence[int],
        axes: Sequence[int],
        swizzle: int = 1,
        persistent: int = 0,
    ):
        rows = (ArrayAttr(map(IntAttr, numbers)) for numbers in (counts, slices, axes))
        super().__init__(*rows, IntAttr(swizzle), IntAttr(persistent))

    @property
    def counts(self) -> tuple[int, ...]:
        """How many programs each loop has."""
        return tuple(count.data for count in self.counts_)

    @property
    def slices(self) -> tuple[int, ...]:
        """The elements of its dimension that a program has, for each loop."""
        return tuple(extent.data for extent in self.slices_)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axis of the launch grid, for each loop."""
        return tuple(axis.data for axis in self.axes_)

    @property
    def swizzle(self) -> int:
        """The swizzle: programs along other loops before the last one advances."""
        return self.swizzle_.data

    @property
    def persistent(self) -> int:
        """The number of persistent programs, 0 for a program per tile."""
        return self.persistent_.data

    @property
    def grid(self) -> tuple[int, ...]:
        """The extents of the launch grid."""
        return (self.persistent,) if self.persistent else self.tiles

    @property
    def tiles(self) -> tuple[int, ...]:
        """The number of tiles along each axis; the first axis advances fastest."""
        rows = tuple(zip(self.axes, self.counts, strict=True))
        axes = range(max((*self.axes, 0)) + 1)
        return tuple(prod(n for axis, n in rows if axis == index) for index in axes)

    def verify(self) -> None:
        if min((*self.counts, *self.slices, self.swizzle)) < 1:
            raise VerifyException("programs, their elements and swizzles are positive")
        if self.persistent < 0 or self.persistent >= max(prod(self.counts), 1):
            raise VerifyException(
                f"{self.persistent} persistent programs for {prod(self.counts)} tiles; "
                "leave `persistent` out where each tile has a program"
            )
        if not set(self.axes) <= set(range(GRID_AXES)):
            raise VerifyException(
                f"a launch grid has axes 0 to {GRID_AXES - 1}, not {max(self.axes)}"
            )

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        rows: list[tuple[int, int, int]] = []
        swizzle, persistent = 1, 0

        def parse_row() -> None:
            nonlocal swizzle, persistent
            if parser.parse_optional_keyword("swizzle") is not None:
                swizzle = parser.parse_integer()
                return
            if parser.parse_optional_keyword(PERSISTENT) is not None:
                persistent = parser.parse_integer()
                return
            count = parser.parse_integer()
            parser.parse_keyword("of")
            extent = parser.parse_integer()
            parser.parse_keyword("on")
            rows.append((count, extent, parser.parse_integer()))

        parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_row)
        counts, slices, axes = ([row[column] for row in rows] for column in range(3))
        return cls(counts, slices, axes, swizzle, persistent).parameters

    def print_parameters(self, printer: Printer) -> None:
        rows = zip(self.counts, self.slices, self.axes, strict=True)
        texts = [f"{count} of {extent} on {axis}" for count, extent, axis in rows]
        if self.swizzle > 1:
            texts.append(f"swizzle {self.swizzle}")
        if self.persistent:
            texts.append(f"{PERSISTENT} {self.persistent}")
        with printer.in_angle_brackets():
            printer.print_string(", ".join(texts))
