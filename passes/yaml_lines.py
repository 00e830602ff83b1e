"""YAML as plain values, with the line on which each of them stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from xdsl.utils.exceptions import PassFailedException
from yaml import MappingNode, MarkedYAMLError, Node, SafeLoader, SequenceNode, YAMLError

from comet.dialects.arch_fields import Field

Steps: TypeAlias = tuple[str | int, ...]
"""The way to a value in a document: names in maps and positions in lists."""


@dataclass(frozen=True)
class YamlDocument:
    """The contents of a YAML file."""

    path: str
    value: Field
    lines: Mapping[Steps, int] = field(repr=False)
    """The line of each value, the first line being 1."""

    def error(self, steps: Steps, message: str) -> PassFailedException:
        """Return an error at a value, or at the nearest one around it with a line."""
        while steps and steps not in self.lines:
            steps = steps[:-1]
        return PassFailedException(f"{self.path}:{self.lines.get(steps, 1)}: {message}")


def parse_yaml(path: str, text: str) -> YamlDocument:
    """
    Parse the text of a YAML file.

    Raises PassFailedException with file and line if it is malformed or names a field
    of one map twice.
    """
    loader = SafeLoader(text)
    lines: dict[Steps, int] = {}
    try:
        root = loader.get_single_node()
        check_acyclic(root, ())
        value = None if root is None else _value(loader, root, (), lines)
    except MarkedYAMLError as error:
        line = 1 if error.problem_mark is None else error.problem_mark.line + 1
        raise PassFailedException(f"{path}:{line}: {error.problem}") from error
    except YAMLError as error:
        raise PassFailedException(f"{path}: {error}") from error
    return YamlDocument(path, value, lines)


def check_acyclic(node: Node | None, around: tuple[Node, ...]) -> None:
    """Raise MarkedYAMLError if an alias names a value that it is part of."""
    if any(node is outer for outer in around):
        raise MarkedYAMLError(
            problem="an alias names a value that contains it; write the value out",
            problem_mark=around[-1].start_mark,
        )
    if isinstance(node, MappingNode):
        for _, value in node.value:
            check_acyclic(value, (*around, node))
    elif isinstance(node, SequenceNode):
        for value in node.value:
            check_acyclic(value, (*around, node))


def _value(
    loader: SafeLoader, node: Node, steps: Steps, lines: dict[Steps, int]
) -> Field:
    lines.setdefault(steps, node.start_mark.line + 1)
    if isinstance(node, SequenceNode):
        return [
            _value(loader, element, (*steps, i), lines)
            for i, element in enumerate(node.value)
        ]
    if isinstance(node, MappingNode):
        return _map(loader, node, steps, lines)
    construct = cast(Callable[[Node], object], loader.construct_object)
    value = construct(node)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(node.value)  # dates and the like stay text


def _map(
    loader: SafeLoader, node: MappingNode, steps: Steps, lines: dict[Steps, int]
) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for key, value in node.value:
        name = str(key.value)
        if name in fields:
            raise MarkedYAMLError(
                problem=f"the field '{name}' is given twice; keep one",
                problem_mark=key.start_mark,
            )
        lines[*steps, name] = key.start_mark.line + 1
        fields[name] = _value(loader, value, (*steps, name), lines)
    return fields
