"""
Reads YAML files: plain values with their locations, within limits of depth and size.

All files are read by `read_yaml`, so that none can make a tool hang, or fail with more
than one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias, cast

import yaml
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
from xdsl.utils.exceptions import DiagnosticException
from yaml.constructor import SafeConstructor
from yaml.reader import Reader

from comet.dialects.arch.fields import Field, described, fits

Yaml: TypeAlias = "str | list[Yaml] | dict[str, Yaml]"
"""A value of a file, with all scalars as text."""

Steps: TypeAlias = "tuple[str | int, ...]"
"""The path to a value in a file: names of fields and positions in lists."""

DEEPEST = 100
"""The maximum depth of nested lists and maps."""

MOST = 100_000
"""The maximum number of values in a file, with those that aliases repeat."""

_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Its stub lacks types.
_parse: Callable[[str, type[yaml.SafeLoader]], Iterator[yaml.Event]] = getattr(
    yaml, "parse"
)


class FileFormatError(DiagnosticException):
    """A file that breaks its format; the message has file, line and reason."""


@dataclass(frozen=True)
class YamlFile:
    """A parsed YAML file, with the location of every value."""

    name: str
    root: yaml.Node | None = field(repr=False)
    """The top of the file; None if the file is empty."""

    def file_line(self, steps: Steps) -> str:
        """
        Return `file:line` of the value at `steps`.

        That of a field is its name; that of a missing field is its parent.
        """
        return f"{self.name}:{self._mark(steps).line + 1}"

    def location(self, steps: Steps) -> FileLineColLoc:
        """Return the location of a value as that of an operation."""
        mark = self._mark(steps)
        line, column = IntAttr(mark.line + 1), IntAttr(mark.column + 1)
        return FileLineColLoc(StringAttr(self.name), line, column)

    def error(self, steps: Steps, message: str) -> FileFormatError:
        """Return an error at a value, or at the nearest one around it."""
        return FileFormatError(f"{self.file_line(steps)}: {message}")

    @cached_property
    def texts(self) -> Yaml:
        """The contents, every scalar as its text in the file."""
        return "" if self.root is None else _texts(self.root)

    @cached_property
    def values(self) -> Field:
        """
        The contents, with numbers and truth values as such.

        Raises FileFormatError for a number that is not finite or that needs more than
        64 bits.
        """
        with _located_mistakes(self.name):
            return None if self.root is None else _values(self.name, self.root)

    def _mark(self, steps: Steps) -> yaml.Mark:
        node = self.root
        mark = yaml.Mark(self.name, 0, 0, 0, None, 0) if node is None else _start(node)
        for step in steps:
            if (found := _step_into(node, step)) is None:
                break
            mark, node = found
        return mark


def read_yaml(text: str, name: str) -> YamlFile:
    """
    Parse the text of the YAML file `name`.

    Raises FileFormatError, with the line, if it is malformed, has a field twice in one
    map, has a field whose name is no plain text, or exceeds `DEEPEST` or `MOST`.
    """
    with _located_mistakes(name):
        _check_characters(text, name)
        _check_depth(text, name)
        root = _LOADER(text).get_single_node()
        if root is not None:
            _measure(name, root, {})
    return YamlFile(name, root)


def _check_characters(text: str, name: str) -> None:
    """Raise FileFormatError for characters that YAML forbids, such as NUL."""
    if (found := Reader.NON_PRINTABLE.search(text)) is not None:
        line = text.count("\n", 0, found.start()) + 1
        raise FileFormatError(
            f"{name}:{line}: a YAML file cannot hold the character "
            f"U+{ord(found[0]):04X}; remove it"
        )


def _check_depth(text: str, name: str) -> None:
    """Raise FileFormatError for nesting beyond `DEEPEST`, as PyYAML is recursive."""
    depth = 0
    for event in _parse(text, _LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                raise _too_deep(name, event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _too_deep(name: str, mark: yaml.Mark) -> FileFormatError:
    return FileFormatError(
        f"{name}:{mark.line + 1}: lists and maps are nested more than {DEEPEST} deep; "
        "nest them less"
    )


@dataclass(frozen=True)
class _Extent:
    """The number of values in a node, aliases written out, and their depth."""

    size: int
    depth: int


def _measure(
    name: str, node: yaml.Node, extents: dict[yaml.Node, _Extent | None]
) -> _Extent:
    """
    Check a node and its descendants, each once, and return its extent.

    `extents` has those of measured nodes, and None for the ancestors of `node`: an
    alias to one of them would be infinite. Raises FileFormatError.
    """
    if node in extents:
        if (found := extents[node]) is None:
            raise _error(
                name,
                node,
                "an alias names a value that contains it; write the value out",
            )
        return found
    extents[node] = None
    if isinstance(node, yaml.MappingNode):
        _check_names(name, node)
    below = [_measure(name, child, extents) for child in _children(node)]
    extent = _Extent(
        1 + sum(part.size for part in below),
        max((1 + part.depth for part in below), default=0),
    )
    if extent.size > MOST:
        raise _error(
            name,
            node,
            f"with its aliases written out this is more than {MOST} values; "
            "write fewer",
        )
    if extent.depth > DEEPEST:
        raise _too_deep(name, _start(node))
    extents[node] = extent
    return extent


def _check_names(name: str, node: yaml.MappingNode) -> None:
    seen: set[str] = set()
    for key, _ in _pairs(node):
        if not isinstance(key, yaml.ScalarNode):
            raise _error(
                name, key, "the name of a field is a list or a map; write text"
            )
        if (field_name := str(key.value)) in seen:
            raise _error(
                name, key, f"the field {described(field_name)} is given twice; keep one"
            )
        seen.add(field_name)


def _error(name: str, node: yaml.Node, message: str) -> FileFormatError:
    return FileFormatError(f"{name}:{_start(node).line + 1}: {message}")


def _start(node: yaml.Node) -> yaml.Mark:
    return cast(yaml.Mark, node.start_mark)


def _pairs(node: yaml.MappingNode) -> list[tuple[yaml.Node, yaml.Node]]:
    return cast(list[tuple[yaml.Node, yaml.Node]], node.value)


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [value for _, value in _pairs(node)]
    if isinstance(node, yaml.SequenceNode):
        return cast(list[yaml.Node], node.value)
    return []


def _step_into(
    node: yaml.Node | None, step: str | int
) -> tuple[yaml.Mark, yaml.Node] | None:
    """Return where a field or an element of `node` starts, and its value."""
    if isinstance(node, yaml.MappingNode):
        return next(((_start(k), v) for k, v in _pairs(node) if k.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        child = _children(node)[step]
        return _start(child), child
    return None


def _texts(node: yaml.Node) -> Yaml:
    if isinstance(node, yaml.SequenceNode):
        return [_texts(child) for child in _children(node)]
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _texts(value) for key, value in _pairs(node)}
    return str(node.value)


def _values(name: str, node: yaml.Node) -> Field:
    if isinstance(node, yaml.SequenceNode):
        return [_values(name, child) for child in _children(node)]
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _values(name, value) for key, value in _pairs(node)}
    return _scalar(name, node)


def _scalar(name: str, node: yaml.Node) -> Field:
    text = str(node.value)
    construct = cast(Callable[[yaml.Node], object], SafeConstructor().construct_object)
    try:
        value = construct(node)
    except ValueError as error:
        raise _error(
            name,
            node,
            f"{described(text)} is no value of its type; correct or quote it",
        ) from error
    if isinstance(value, int | float) and not fits(value):
        is_integer = isinstance(value, int)
        reason = "does not fit in 64 bits" if is_integer else "is not a finite number"
        raise _error(name, node, f"{described(text)} {reason}; write another number")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return text  # dates and the like stay text


@contextmanager
def _located_mistakes(name: str) -> Generator[None]:
    """Turn the errors of PyYAML into ours."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        location = name if mark is None else f"{name}:{mark.line + 1}"
        reason = error.problem or "unreadable"
        if mark is not None and "maximum nesting depth" in reason:  # PyYAML 6.0.4
            raise _too_deep(name, mark) from error
        raise FileFormatError(f"{location}: malformed YAML: {reason}") from error
