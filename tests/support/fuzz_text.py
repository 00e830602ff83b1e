"""Mutations of texts in any language: their tokens, numbers, names and lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

TOKEN = re.compile(r'"[^"\n]*"|[%#!@^]?[\w.$]+|->|\s+|.', re.DOTALL)
NUMBER = re.compile(r"-?\d[\d_]*(\.\d+)?(e[+-]?\d+)?")
NAME = re.compile(r'[%#!@^"]?[A-Za-z_].*')
NUMBERS = (
    *("0", "1", "2", "3", "5", "7", "8", "17", "64", "255", "1000", "65536"),
    *("-1", "-2", "1.5", "0.0", "-0.0", "1e-30", "1e30", "1e400", "nan", "inf", "-inf"),
    *("2147483647", "2147483648", "4294967296", "9223372036854775807"),
    *("9223372036854775808", "18446744073709551616", "-9223372036854775809"),
    *("0x10", "0x7FF8000000000000", "1_000", "007", "true", "null", "9" * 400),
    "9" * 5000,
)
"""Numbers at which something changes, and words that stand where numbers do."""
ODDITIES = (
    *(
        "\0",
        "\x7f",
        "\ufeff",
        "\u00e9",
        "\u2028",
        "\t",
        "\r",
        "\\",
        '"',
        "'",
        "`",
        "//",
    ),
    *("{", "}", "[", "]", "(", ")", "<", ">", ",", ":", "=", "->", "?", "*", "&", "!"),
    *("[" * 400, "{" * 400, "(" * 3000, "tuple<" * 400, "x" * 3000, " " * 3000),
)

Mutation = Callable[[list[str], Random, Sequence[str]], None]
"""Changes tokens in place; the last argument holds tokens of another text."""


def mutated(text: str, random: Random, other: str = "") -> str:
    """Return `text` with one to three changes, some taken from another text."""
    donors = TOKEN.findall(other) or ["x"]
    for _ in range(random.choice((1, 1, 2, 3))):
        change = random.choice(MUTATIONS)
        parts = TOKEN.findall(text) if change in OF_TOKENS else text.splitlines(True)
        if parts:
            change(parts, random, donors)
        text = "".join(parts)
    return text


def _matching(parts: Sequence[str], pattern: re.Pattern[str]) -> list[int]:
    return [index for index, part in enumerate(parts) if pattern.fullmatch(part)]


def _solid(parts: Sequence[str]) -> list[int]:
    return [index for index, part in enumerate(parts) if not part.isspace()]


def _number(parts: list[str], random: Random, donors: Sequence[str]) -> None:
    """Write another number; shapes such as 8x16xf16 have several in one token."""
    places = [index for index, part in enumerate(parts) if NUMBER.search(part)]
    if places:
        index = random.choice(places)
        found = random.choice(list(NUMBER.finditer(parts[index])))
        old, number = parts[index], random.choice(NUMBERS)
        parts[index] = old[: found.start()] + number + old[found.end() :]


def _name(parts: list[str], random: Random, donors: Sequence[str]) -> None:
    """Write another name of the same text."""
    if places := _matching(parts, NAME):
        parts[random.choice(places)] = parts[random.choice(places)]


def _alike(parts: list[str], random: Random, donors: Sequence[str]) -> None:
    """Exchange two names that begin alike, such as %a and %b."""
    if places := _matching(parts, NAME):
        first = random.choice(places)
        second = random.choice([i for i in places if parts[i][0] == parts[first][0]])
        parts[first], parts[second] = parts[second], parts[first]


def _donated(parts: list[str], random: Random, donors: Sequence[str]) -> None:
    """Write a token of another text."""
    parts[random.choice(_solid(parts) or [0])] = random.choice(donors)


def _remove(parts: list[str], random: Random, donors: Sequence[str]) -> None:
    start = random.choice(_solid(parts) or [0])
    del parts[start : start + random.choice((1, 1, 2, 5))]


def _double(parts: list[str], random: Random, donors: Sequence[str]) -> None:
    start = random.choice(_solid(parts) or [0])
    stop = start + random.choice((1, 1, 2, 5))
    parts[stop:stop] = parts[start:stop]


def _swap(parts: list[str], random: Random, donors: Sequence[str]) -> None:
    first, second = (random.choice(_solid(parts) or [0]) for _ in range(2))
    parts[first], parts[second] = parts[second], parts[first]


def _odd(parts: list[str], random: Random, donors: Sequence[str]) -> None:
    parts.insert(random.randrange(len(parts) + 1), random.choice(ODDITIES))


def _cut(parts: list[str], random: Random, donors: Sequence[str]) -> None:
    """Drop the end of the text."""
    del parts[random.randrange(len(parts)) :]


def _drop_line(parts: list[str], random: Random, donors: Sequence[str]) -> None:
    del parts[random.randrange(len(parts))]


def _double_line(parts: list[str], random: Random, donors: Sequence[str]) -> None:
    parts.insert(random.randrange(len(parts)), random.choice(parts))


def _swap_lines(parts: list[str], random: Random, donors: Sequence[str]) -> None:
    first, second = random.randrange(len(parts)), random.randrange(len(parts))
    parts[first], parts[second] = parts[second], parts[first]


OF_TOKENS: tuple[Mutation, ...] = (
    *(_number, _number, _number, _name, _name, _alike, _alike),
    *(_donated, _remove, _double, _swap, _odd, _cut),
)
OF_LINES: tuple[Mutation, ...] = (_drop_line, _double_line, _swap_lines)
MUTATIONS = (*OF_TOKENS, *OF_LINES)
