"""A parser that records where in the file every operation is."""

import re
import struct

from xdsl.context import Context
from xdsl.dialects.builtin import (
    FileLineColLoc,
    Float80Type,
    Float128Type,
    IntAttr,
    ModuleOp,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Operation, TypedAttribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException

LONG_NUMBER = re.compile(
    r"(?<![\"\w])(?:0x[0-9A-Fa-f]{1000}|(?:[0-9?]+x)*i?[0-9]{1000})"
)
"""A number, extent or width with more digits than Python converts."""

_STRING = r'"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"'
UNCLOSED = re.compile(rf'(?:[^"/\n]|/(?!/)|//.*|{_STRING}|\n)*+(")')
"""A quote that begins no string; xDSL's lexer takes exponential time to find it."""

BROKEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    NotImplementedError,
    TypeError,
    ValueError,
)
"""The exceptions of parsers and constructors of ops for unexpected text."""

UNPRINTED = (Float80Type, Float128Type)
"""Types whose numbers xDSL parses but does not print."""


PARSED_AT = "parsed_at"
"""The attribute of an error that says where the op starts that was being parsed."""


def parsed_at(error: BaseException) -> FileLineColLoc | None:
    """Return where the innermost op starts that was being parsed, if one was."""
    return getattr(error, PARSED_AT, None)


class LocatedParser(Parser):
    """
    xDSL's parser, with a location on every operation that has none in the text.

    The line counter only moves forward, so a whole file costs one scan of its text.
    """

    line_offset: int
    """Lines of the file before this text (`--split-input-file`)."""

    def __init__(self, ctx: Context, text: str, name: str, line_offset: int = 0):
        super().__init__(ctx, text, name)
        self.line_offset = line_offset
        self._counted_to = 0
        self._newlines = 0

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """Parse the whole text."""
        if (found := LONG_NUMBER.search(self.lexer.input.content)) is not None:
            self.raise_error(
                "a number has more than 1000 digits; write a smaller one", *found.span()
            )
        if (found := UNCLOSED.match(self.lexer.input.content)) is not None:
            self.raise_error(
                "a string is not closed, or has an escape other than \\n, \\t, \\\\, "
                '\\" and two hexadecimal digits; correct it',
                *found.span(1),
            )
        try:
            return super().parse_module(allow_implicit_module)
        except DiagnosticException as error:  # in the definition of an alias
            vars(error).setdefault(PARSED_AT, self._location_at(self.pos))
            raise

    def parse_operation(self) -> Operation:
        """Parse one operation and record where it starts."""
        location, start = self._location_at(self.pos), self.pos
        try:
            op = super().parse_operation()
        except struct.error:
            self.raise_error(
                "a number has more bits than its type; write a smaller one",
                start,
                self.pos,
            )
        except BROKEN as error:
            reason = str(error) or "it is of no type that xDSL stores"
            self.raise_error(
                f"this does not parse: {reason}; correct it", start, self.pos
            )
        except (DiagnosticException, RecursionError) as error:
            vars(error).setdefault(PARSED_AT, location)
            raise
        if isinstance(op.location, UnknownLoc):
            op.location = location
        return op

    def parse_optional_attribute(self) -> Attribute | None:
        """Parse an attribute; reject a number that could not be printed."""
        start = self.pos
        found = super().parse_optional_attribute()
        type_ = found.get_type() if isinstance(found, TypedAttribute) else None
        if isinstance(type_, UNPRINTED):
            message = f"a number is of type {type_}; write it as f64 or less"
            self.raise_error(message, start, self.pos)
        return found

    def _location_at(self, pos: int) -> FileLineColLoc:
        source = self.lexer.input
        if pos < self._counted_to:  # the parser went back to an earlier token
            self._counted_to = self._newlines = 0
        self._newlines += source.content.count("\n", self._counted_to, pos)
        self._counted_to = pos
        column = pos - source.get_start_of_line(pos) + 1
        line = self._newlines + self.line_offset + 1
        return FileLineColLoc(StringAttr(source.name), IntAttr(line), IntAttr(column))
