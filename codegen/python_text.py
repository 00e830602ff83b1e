"""Python source text: expressions with precedence, and lines of bounded width."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

WIDTH = 88
INDENT = "    "
OPEN, CLOSE = "([{", ")]}"


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
        """Return the text, in parentheses if it binds less tightly than asked."""
        return f"({self.text})" if self.precedence < precedence else self.text


def infix(symbol: str, precedence: Precedence, lhs: Expr, rhs: Expr) -> Expr:
    """Return `lhs symbol rhs` for a left-associative operator."""
    tighter = Precedence(min(precedence + 1, Precedence.ATOM))
    return Expr(f"{lhs.at(precedence)} {symbol} {rhs.at(tighter)}", precedence)


def call(function: str, *arguments: str) -> Expr:
    """Return a call; keyword arguments are given as `name=text`."""
    return Expr(f"{function}({', '.join(arguments)})")


def tuple_of(items: Sequence[str]) -> str:
    """Return a tuple display, with the comma that one item needs."""
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


class Names:
    """Hands out distinct Python identifiers."""

    def __init__(self, reserved: Iterable[str] = ()):
        self._taken = {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), *reserved}

    def release(self, names: Iterable[str]) -> None:
        """Allow names to be handed out again, whose variables are out of scope."""
        self._taken.difference_update(names)

    def fresh(self, hint: str) -> str:
        """Return `hint`, made an identifier and numbered if it is taken."""
        base = "".join(c if c.isalnum() or c == "_" else "_" for c in hint)
        if not base or base[0].isdigit():
            base = f"v{base}"
        name, number = base, 1
        while name in self._taken:
            name = f"{base}_{number}"
            number += 1
        self._taken.add(name)
        return name


def wrapped(line: str, indent: str) -> list[str]:
    """
    Break one logical line, in front of which `indent` is put, to fit the width.

    The longest bracket at depth 0 is opened, as formatters do: the arguments of a call
    go to a line of their own if they fit there; else every item gets a line.
    """
    if len(indent) + len(line) <= WIDTH:
        return [indent + line]
    opening, closing = _longest_bracket(line)
    if closing <= opening + 1:
        return [indent + line]
    body, inner = line[opening + 1 : closing], indent + INDENT
    lines = [indent + line[: opening + 1]]
    is_call = opening > 0 and (line[opening - 1].isalnum() or line[opening - 1] in "_]")
    if is_call and len(inner) + len(body) <= WIDTH:
        lines.append(inner + body)
    else:
        for item in _split_items(body):
            lines += wrapped(f"{item},", inner)
    return [*lines, indent + line[closing:]]


def _longest_bracket(line: str) -> tuple[int, int]:
    """Return where the longest bracket at depth 0 opens and closes; (0, 0) if none."""
    depth, opening, longest = 0, 0, (0, 0)
    for position, char in enumerate(line):
        if char in OPEN:
            opening = position if depth == 0 else opening
            depth += 1
        elif char in CLOSE:
            depth -= 1
            if depth == 0 and position - opening > longest[1] - longest[0]:
                longest = (opening, position)
    return longest


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
