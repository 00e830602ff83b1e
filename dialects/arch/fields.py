"""Fields of a hardware file as attributes: numbers, texts, lists and maps of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import TypeAlias

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from comet.dialects.number_text import number_text

Field: TypeAlias = (
    "bool | int | float | str | Sequence[Field] | Mapping[str, Field] | None"
)
"""The values of a hardware file: YAML's plain values."""

Fields: TypeAlias = Mapping[str, Field]

LONGEST = 60
"""The most characters of a field that a message quotes."""


def described(value: Field) -> str:
    """Return a field for a message: a short quotation, or only its kind."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case int():
            return str(value) if fits(value) else "a number beyond 64 bits"
        case float():
            return str(value)
        case str():
            short = value if len(value) <= LONGEST else f"{value[:LONGEST]}.."
            return f"'{short}'"
        case Mapping():
            parts = (f"{name}: {described(part)}" for name, part in value.items())
            return _quoted("{}", parts, "a map")
        case Sequence():
            return _quoted("[]", map(described, value), "a list")


def _quoted(brackets: str, parts: Iterable[str], kind: str) -> str:
    text = ", ".join(parts).join(brackets)
    return text if len(text) <= LONGEST else kind


def fits(value: float) -> bool:
    """Return whether a number is finite and, if an integer, fits in 64 bits."""
    return -(2**63) <= value < 2**63 if isinstance(value, int) else isfinite(value)


def attribute_of(value: Field) -> Attribute:
    """
    Return the attribute of a field; YAML's null is a unit.

    Integers are i64 and numbers with a point are f64. Raises ValueError if an integer
    does not fit or a number is not finite.
    """
    match value:
        case None:
            return UnitAttr()
        case bool():
            return BoolAttr.from_bool(value)
        case int():
            if not fits(value):
                raise ValueError(f"{described(value)} does not fit in 64 bits")
            return IntegerAttr(value, i64)
        case float():
            if not fits(value):
                raise ValueError(f"{value} is not a finite number")
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)
        case Mapping():
            return dictionary_of(value)
        case Sequence():
            return ArrayAttr(attribute_of(element) for element in value)


def dictionary_of(fields: Fields) -> DictionaryAttr:
    """Return the dictionary attribute of `fields`, in their order."""
    return DictionaryAttr({name: attribute_of(value) for name, value in fields.items()})


def field_of(attribute: Attribute) -> Field:
    """
    Return the field of an attribute that `attribute_of` makes.

    Raises VerifyException for other attributes.
    """
    match attribute:
        case UnitAttr():
            return None
        case IntegerAttr(type=IntegerType(width=width)) if width.data == 1:
            return bool(attribute.value.data)
        case IntegerAttr() | FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case DictionaryAttr():
            return fields_of(attribute)
        case ArrayAttr():
            return [field_of(element) for element in attribute]
        case _:
            raise VerifyException(
                f"{attribute} is no field of a hardware file; write a number, text, a "
                "list or a dictionary"
            )


def fields_of(dictionary: DictionaryAttr) -> dict[str, Field]:
    """Return the fields of a dictionary attribute, in their order."""
    return {name: field_of(value) for name, value in dictionary.data.items()}


def number(fields: Fields, name: str, default: float = 0) -> float:
    """Return the number `name` of `fields`, or the default if there is none."""
    value = fields.get(name)
    return value if isinstance(value, int | float) else default


def integer(fields: Fields, name: str, default: int = 0) -> int:
    """Return the number `name` of `fields`, truncated as in the COMET tool."""
    return int(number(fields, name, default))


@irdl_custom_directive
class FieldsDirective(CustomDirective):
    """Prints a dictionary attribute without types, which parsing infers."""

    fields: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        parser.parse_punctuation("{")
        self.fields.set(state, DictionaryAttr(_parse_entries(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        state.print_whitespace(printer)
        if (fields := self.fields.get(op)) is not None:
            _print_field(printer, fields)

    def is_present(self, op: IRDLOperation) -> bool:
        return self.fields.is_present(op)

    def is_anchorable(self) -> bool:
        return self.fields.is_anchorable()

    def is_optional_like(self) -> bool:
        return self.fields.is_optional_like()

    def set_empty(self, state: ParsingState) -> None:
        self.fields.set_empty(state)


def _parse_entries(parser: Parser) -> dict[str, Attribute]:
    """Parse `name = value, ...}`; a name alone is a unit."""
    entries: dict[str, Attribute] = {}
    while parser.parse_optional_punctuation("}") is None:
        if entries:
            parser.parse_punctuation(",")
        name = parser.parse_identifier_or_str_literal()
        if name in entries:
            parser.raise_error(f"field '{name}' is given twice")
        has_value = parser.parse_optional_punctuation("=") is not None
        entries[name] = _parse_field(parser) if has_value else UnitAttr()
    return entries


def _parse_field(parser: Parser) -> Attribute:
    if parser.parse_optional_punctuation("{") is not None:
        return DictionaryAttr(_parse_entries(parser))
    if parser.parse_optional_punctuation("[") is None:
        return parser.parse_attribute()
    elements: list[Attribute] = []
    while parser.parse_optional_punctuation("]") is None:
        if elements:
            parser.parse_punctuation(",")
        elements.append(_parse_field(parser))
    return ArrayAttr(elements)


def _print_field(printer: Printer, field: Attribute) -> None:
    match field:
        case IntegerAttr(type=IntegerType(width=width)) if width.data == 64:
            printer.print_int(field.value.data)
        case FloatAttr():
            printer.print_string(number_text(field.value.data))
        case DictionaryAttr():
            with printer.in_braces():
                printer.print_list(
                    field.data.items(), lambda entry: _print_entry(printer, *entry)
                )
        case ArrayAttr():
            with printer.in_square_brackets():
                printer.print_list(field, lambda f: _print_field(printer, f))
        case _:
            printer.print_attribute(field)


def _print_entry(printer: Printer, name: str, field: Attribute) -> None:
    printer.print_identifier_or_string_literal(name)
    if not isinstance(field, UnitAttr):
        printer.print_string(" = ")
        _print_field(printer, field)
