"""The types of options in plain words, for errors."""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin

TEXT = "text"
"""The name of `str`."""

NAMES: Mapping[object, tuple[str, str]] = {
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    str: (TEXT, "names"),
}
"""By type: one value, and several."""


def type_in_words(kind: object) -> str:
    """
    Name the type of an option, such as `int | None`: a whole number.

    That an option may be left out is no part of it.
    """
    parts = _parts(kind)
    *first, last = (word for part in parts for word in _values(part))
    if all(get_origin(part) is Literal for part in parts):
        return f"one of {', '.join((*first, last))}"
    return f"{', '.join(first)} or {last}" if first else last


def _parts(kind: object) -> list[object]:
    """Return the types that a type is a choice of; a number may be whole."""
    if get_origin(kind) not in (Union, UnionType):
        return [kind]
    parts = [part for part in get_args(kind) if part is not NoneType]
    return [part for part in parts if part is not int or float not in parts]


def _values(kind: object) -> list[str]:
    """Return the values of a type that is no choice, or names of them."""
    if get_origin(kind) is Literal:
        return [repr(value) for value in get_args(kind)]
    if kind is bool:
        return ["true", "false"]
    if get_origin(kind) is tuple:
        return [f"a list of {NAMES[get_args(kind)[0]][1]}"]
    return [NAMES[kind][0]] if kind in NAMES else [str(kind)]
