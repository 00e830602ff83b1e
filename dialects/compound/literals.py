"""Parsing and printing of numbers, with inf and nan."""

import math

from xdsl.dialects.builtin import f64
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from comet.dialects.number_text import number_text


def parse_number(parser: AttrParser) -> float:
    """Read a number, such as 1.5, -3, -inf or nan."""
    negative = parser.parse_optional_punctuation("-") is not None
    if parser.parse_optional_keyword("nan") is not None:
        return math.nan
    infinite = parser.parse_optional_keyword("inf") is not None
    number = math.inf if infinite else float(parser.parse_number())
    return -number if negative else number


def print_number(printer: Printer, number: float) -> None:
    """
    Write a number as MLIR does, but infinite ones and nan as words.

    MLIR writes the bits of long whole numbers, such as 2097153.0, which read like an
    integer: these are written in full.
    """
    digits = f"{number:.17g}"
    if not math.isfinite(number):
        printer.print_string(repr(number))
    elif "." not in digits and number != float(f"{number:.5e}"):
        printer.print_string(number_text(number))
    else:
        printer.print_float(number, f64)
