"""The device mesh of the collective dialect, and how ops refer to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Self, TypeVar

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    DenseArrayBase,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from comet.dialects.axis_names import misnamed_axis

T = TypeVar("T")


@irdl_op_definition
class MeshOp(IRDLOperation):
    """
    A mesh of devices or compute clusters: named axes, outermost first.

    On accelerators `at` gives the memory level at which the instances of an axis begin.

    ```mlir
    collective.mesh @gpus {rank = 8}
    collective.mesh @edge {cx = 2, cy = 2} at {cx = "GB", cy = "GB"}
    ```
    """

    name = "collective.mesh"
    sym_name = prop_def(SymbolNameConstraint())
    axes = prop_def(ArrayAttr[StringAttr])
    extents = prop_def(DenseArrayBase[I64])
    levels = opt_prop_def(ArrayAttr[StringAttr])
    traits = traits_def(SymbolOpInterface())

    def __init__(
        self,
        name: str,
        axes: Mapping[str, int],
        levels: Mapping[str, str] | None = None,
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "axes": ArrayAttr(StringAttr(axis) for axis in axes),
                "extents": DenseArrayBase.from_list(i64, tuple(axes.values())),
                "levels": None
                if levels is None
                else ArrayAttr(StringAttr(levels[axis]) for axis in axes),
            }
        )

    @property
    def axis_extents(self) -> dict[str, int]:
        """The number of instances along each axis, outermost first."""
        names = (axis.data for axis in self.axes)
        return dict(zip(names, self.extents.get_values(), strict=True))

    @property
    def axis_levels(self) -> dict[str, str]:
        """The memory level of each axis; empty if none is given."""
        if self.levels is None:
            return {}
        return {a.data: lv.data for a, lv in zip(self.axes, self.levels, strict=True)}

    @property
    def rank_axes(self) -> tuple[str, ...]:
        """The axes whose instances share no memory: those at the outermost level."""
        levels = self.axis_levels
        outermost = next(iter(levels.values()), None)
        return tuple(a for a in self.axis_extents if levels.get(a) == outermost)

    def by_level(self, axes: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Return `axes` grouped by their memory levels, the innermost level first."""
        levels = self.axis_levels
        found = dict.fromkeys(levels.get(axis) for axis in self.axis_extents)
        groups = (
            tuple(axis for axis in axes if levels.get(axis) == level)
            for level in reversed(found)
        )
        return tuple(group for group in groups if group)

    def size(self, axes: Iterable[str]) -> int:
        """Return the number of instances in a group over `axes`."""
        extents = self.axis_extents
        return prod(extents[axis] for axis in axes)

    def fault(self, axes: Sequence[str]) -> str:
        """Return why `axes` do not name distinct axes of this mesh, '' if they do."""
        if not axes:
            return "no mesh axis is named"
        for axis in axes:
            if axis not in (known := self.axis_extents):
                return (
                    f"mesh @{self.sym_name.data} has no axis '{axis}'; its axes are "
                    f"{', '.join(known)}"
                )
            if axes.count(axis) > 1:
                return f"axis '{axis}' is named twice"
        return ""

    def verify_(self) -> None:
        names = [axis.data for axis in self.axes]
        if len(set(names)) != len(names):
            raise VerifyException(f"'{self.name}' op axis names are distinct")
        if mistake := misnamed_axis(names):
            raise VerifyException(f"'{self.name}' op {mistake}")
        if len(names) != len(self.extents.get_values()) or (
            self.levels is not None and len(names) != len(self.levels)
        ):
            raise VerifyException(
                f"'{self.name}' op gives every axis one extent and, with `at`, one "
                "level"
            )
        for axis, extent in self.axis_extents.items():
            if extent < 1:
                raise VerifyException(
                    f"'{self.name}' op axis {axis} has extent {extent}; it is positive"
                )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_symbol_name().data
        axes = _parse_table(parser, lambda: _parse_extent(parser))
        levels = None
        if parser.parse_optional_keyword("at") is not None:
            levels = _parse_table(parser, parser.parse_str_literal)
            if levels.keys() != axes.keys():
                parser.raise_error("`at` gives a level for each axis")
        mesh = cls(name, axes, levels)
        mesh.attributes |= parser.parse_optional_attr_dict()
        return mesh

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        entries = (f"{axis} = {n}" for axis, n in self.axis_extents.items())
        printer.print_string(f" {{{', '.join(entries)}}}")
        if self.levels is not None:
            levels = (f'{axis} = "{lv}"' for axis, lv in self.axis_levels.items())
            printer.print_string(f" at {{{', '.join(levels)}}}")
        printer.print_op_attributes(self.attributes)


def _parse_extent(parser: Parser) -> int:
    extent = parser.parse_integer()
    if extent >= 2**63:
        parser.raise_error(f"the extent {extent} of an axis has more than 63 bits")
    return extent


def _parse_table(parser: Parser, parse_value: Callable[[], T]) -> dict[str, T]:
    table: dict[str, T] = {}

    def entry() -> None:
        key = parser.parse_identifier()
        if key in table:
            parser.raise_error(f"axis {key} is given twice")
        parser.parse_punctuation("=")
        table[key] = parse_value()

    parser.parse_comma_separated_list(parser.Delimiter.BRACES, entry)
    return table


_VALID: set[tuple[Attribute | None, ...]] = set()
"""The properties of meshes that were verified: axes, extents and levels."""


def lookup_mesh(op: Operation, name: str | SymbolRefAttr) -> MeshOp:
    """
    Return the mesh of that name that `op` sees.

    Raises VerifyException if there is none, or if it is invalid: its users may be
    verified first.
    """
    symbol = name if isinstance(name, str) else name.string_value()
    mesh = SymbolTable.lookup_symbol(op, symbol)
    if not isinstance(mesh, MeshOp):
        raise VerifyException(
            f"'{op.name}' op there is no mesh @{symbol}; declare it with "
            f"collective.mesh @{symbol} {{..}} or attach hardware that has it"
        )
    # Looked up very often: what was valid once is not verified again.
    fields = tuple(map(mesh.properties.get, ("axes", "extents", "levels")))
    if fields not in _VALID:
        mesh.verify_()
        _VALID.add(fields)
    return mesh


def verify_axes(op: Operation, mesh: MeshOp, axes: Sequence[str]) -> None:
    """Check that `axes` are distinct axes of `mesh`, and at least one."""
    if fault := mesh.fault(axes):
        raise VerifyException(f"'{op.name}' op {fault}")
