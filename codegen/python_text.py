"""Python source text: expressions with precedence, and lines of bounded width."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from xdsl.ir import SSAValue

WIDTH = 88
INDENT = "    "
OPEN, CLOSE = "([{", ")]}"
OPERATORS = (
    ("<", "<=", ">", ">=", "==", "!="),
    ("|",),
    ("&",),
    ("+", "-"),
    ("*", "/", "//", "%"),
)
"""Symbols of binary operators, loosest first."""


class Precedence(IntEnum):
    """How tightly an expression binds, loosest first."""

    COMPARE = 1
    OR = 2
    AND = 3
    SUM = 4
    PRODUCT = 5
    UNARY = 6
    ATOM = 7


@dataclass(frozen=True)
class Expr:
    """A Python expression and how tightly its outermost operator binds."""

    text: str
    precedence: Precedence = Precedence.ATOM

    def at(self, precedence: Precedence) -> str:
        """Return the text, in parentheses if it binds looser than `precedence`."""
        return f"({self.text})" if self.precedence < precedence else self.text


def infix(symbol: str, precedence: Precedence, lhs: Expr, rhs: Expr) -> Expr:
    """Return `lhs symbol rhs` for a left-associative operator."""
    tighter = Precedence(min(precedence + 1, Precedence.ATOM))
    return Expr(f"{lhs.at(precedence)} {symbol} {rhs.at(tighter)}", precedence)


def call(function: str, *arguments: str) -> Expr:
    """Return a call; a keyword argument is the text `name=value`."""
    return Expr(f"{function}({', '.join(arguments)})")


def tuple_of(items: Sequence[str]) -> str:
    """Return the text of a tuple, with the comma that one item needs."""
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


class PythonNames:
    """Makes distinct Python identifiers."""

    def __init__(self, reserved: Iterable[str] = ()):
        self._taken = {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), *reserved}

    def reserve(self, names: Iterable[str]) -> None:
        """Make names unavailable."""
        self._taken.update(names)

    def release(self, names: Iterable[str]) -> None:
        """Make names available again whose variables are out of scope."""
        self._taken.difference_update(names)

    def fresh(self, hint: str) -> str:
        """Return `hint` as an identifier, with a number if it is in use."""
        base = "".join(c if c.isalnum() or c == "_" else "_" for c in hint)
        if not base or base[0].isdigit():
            base = f"v{base}"
        name, number = base, 1
        while name in self._taken:
            name = f"{base}_{number}"
            number += 1
        self._taken.add(name)
        return name


class Variables(dict[SSAValue, str]):
    """The Python expressions of values: variables, mostly, whose names differ."""

    def __init__(self, reserved: Iterable[str] = ()):
        super().__init__()
        self.names = PythonNames(reserved)

    def bind(self, value: SSAValue, default: str = "x") -> str:
        """Return a new variable of a value, called as it or else as `default`."""
        self[value] = name = self.names.fresh(value.name_hint or default)
        return name


def wrapped(line: str, indent: str) -> list[str]:
    """
    Break one logical line, which will follow `indent`, to fit the width.

    The longest bracket at depth 0 is opened, as formatters do: the arguments of a call
    go to a line of their own if they fit; otherwise each item gets a line. Inside
    brackets, lines break before operators.
    """
    if len(indent) + len(line) <= WIDTH:
        return [indent + line]
    opening, closing = _longest_bracket(line)
    if closing <= opening + 1:
        return [indent + line]
    body, inner = line[opening + 1 : closing], indent + INDENT
    lines = [indent + line[: opening + 1]]
    items, is_call = _split_items(body), _is_trailer(line, opening)
    if is_call and len(inner) + len(body) <= WIDTH:
        lines.append(inner + body)
    elif is_call or len(items) > 1 or body.endswith(","):
        for item in items:
            lines += _wrapped_inside(f"{item},", inner)
    else:
        lines += _wrapped_inside(body, inner)
    return [*lines, indent + line[closing:]]


def _wrapped_inside(text: str, indent: str) -> list[str]:
    """Break a line inside brackets, before its loosest operators."""
    if len(indent) + len(text) <= WIDTH:
        return [indent + text]
    terms = _split_terms(text)
    if len(terms) == 1:
        return wrapped(text, indent)
    return [line for term in terms for line in _wrapped_inside(term, indent)]


def _is_trailer(line: str, opening: int) -> bool:
    """Return whether a bracket belongs to a call or a subscript."""
    before = line[opening - 1 : opening]
    return before.isalnum() or (bool(before) and before in "_])")


def _brackets(line: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of opening and closing brackets at depth 0."""
    depth, opening = 0, 0
    for position, char in enumerate(line):
        if char in OPEN:
            opening = position if depth == 0 else opening
            depth += 1
        elif char in CLOSE:
            depth -= 1
            if depth == 0:
                yield opening, position


def _longest_bracket(line: str) -> tuple[int, int]:
    """
    Return the opening and closing position of the longest bracket at depth 0; (0, 0) if
    there is none. Subscripts are not broken.
    """
    found = [
        (opening, closing)
        for opening, closing in _brackets(line)
        if line[opening] != "[" or not _is_trailer(line, opening)
    ]
    return max(found, key=lambda pair: pair[1] - pair[0], default=(0, 0))


def _split_terms(text: str) -> list[str]:
    """Split before the loosest operators at depth 0."""
    spans = tuple(_brackets(text))
    for symbols in OPERATORS:
        found = re.finditer(rf" (?=(?:{'|'.join(map(re.escape, symbols))}) )", text)
        breaks = [
            match.start()
            for match in found
            if not any(start < match.start() < end for start, end in spans)
        ]
        if breaks:
            starts = [0, *(index + 1 for index in breaks)]
            return [text[i:j] for i, j in zip(starts, [*breaks, None], strict=True)]
    return [text]


def _split_items(body: str) -> list[str]:
    """Split at the commas of depth 0."""
    items: list[str] = []
    depth, start = 0, 0
    for position, char in enumerate(body):
        depth += (char in OPEN) - (char in CLOSE)
        if char == "," and depth == 0:
            items.append(body[start:position].strip())
            start = position + 1
    rest = body[start:].strip()
    return [*items, rest] if rest else items
