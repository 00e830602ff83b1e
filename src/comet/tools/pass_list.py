"""What `comet-opt --list-passes` prints: passes as a user writes them."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, fields
from functools import cache
from itertools import pairwise
from textwrap import wrap
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin, get_type_hints

from xdsl.passes import ModulePass

from comet.passes.pipeline import spelled_value

WIDTH = 88
"""The most characters of a line of text."""


def listed(available: Mapping[str, Callable[[], type[ModulePass]]]) -> str:
    """
    Return the passes by name, each with what it does and what its options mean.

    xDSL's passes come last; one whose imports are not installed is left out.
    """
    found: list[type[ModulePass]] = []
    for name in sorted(available):
        with suppress(ImportError):
            found.append(available[name]())
    found.sort(key=lambda pass_type: pass_type.__module__.startswith("xdsl."))
    return "\n".join(line for pass_type in found for line in _lines(pass_type))


def _lines(pass_type: type[ModulePass]) -> Iterator[str]:
    """Yield a pass's name and first sentence, then its options with their meaning."""
    text = vars(pass_type).get("__doc__") or ""
    if text.startswith(
        f"{pass_type.__name__}("
    ):  # the default docstring of a dataclass
        text = ""
    first = " ".join(text.strip().partition("\n\n")[0].split())
    yield ": ".join(
        filter(None, (pass_type.name, first.partition(". ")[0].rstrip(".")))
    )
    types, meanings = get_type_hints(pass_type), _meanings(pass_type)
    for field in fields(pass_type):
        if field.init and field.name != "name":
            yield f"    {field.name}: {_type(types[field.name])}{_default(field)}"
            indent = " " * 8
            yield from wrap(
                meanings.get(field.name, ""),
                WIDTH,
                break_on_hyphens=False,
                initial_indent=indent,
                subsequent_indent=indent,
            )


def _meanings(pass_type: type[ModulePass]) -> dict[str, str]:
    """
    Return what options mean, by name, also those of base classes.

    Several passes may share an option: its meaning is with its type then. Otherwise it
    is the docstring of the field.
    """
    hints = get_type_hints(pass_type, include_extras=True)
    found = {
        name: str(hint.__metadata__[0])
        for name, hint in hints.items()
        if get_origin(hint) is Annotated
    }
    for base in reversed(pass_type.__mro__[:-1]):
        if (definition := _definitions(base.__module__).get(base.__name__)) is not None:
            found.update(_field_docstrings(definition))
    return found


@cache
def _definitions(module: str) -> dict[str, ast.ClassDef]:
    """Return the classes of a module by name; none if it has no source."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):
        return {}
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _field_docstrings(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Yield the fields of a class that a docstring follows, with that text."""
    for field, after in pairwise(definition.body):
        match field, after:
            case (
                ast.AnnAssign(target=ast.Name(name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                yield name, " ".join(text.split())
            case _:
                pass


def _type(kind: object) -> str:
    """Return the type of an option; for a choice, its values."""
    if get_origin(kind) is Literal:
        return "|".join(map(str, get_args(kind)))
    if get_origin(kind) in (Union, UnionType):
        return " | ".join(map(_type, get_args(kind)))
    if kind is NoneType:
        return "None"
    return kind.__name__ if type(kind) is type else str(kind)


def _default(field: Field[object]) -> str:
    value = field.default
    if value is MISSING:
        return "" if field.default_factory is MISSING else " (may be left out)"
    is_scalar = isinstance(value, str | bool | int | float)
    text = (
        "none" if value is None else spelled_value(value) if is_scalar else str(value)
    )
    return f" ({text})"
