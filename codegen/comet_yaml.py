"""
Typed access to parsed YAML: every field that is missing or odd is one clear sentence.

All scalars are read as text, because that is how the COMET tool reads them: a
permutation `NO` or a tensor `ON` is a name and no boolean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar, cast

import yaml
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
from xdsl.utils.exceptions import DiagnosticException
from xdsl.utils.str_enum import StrEnum

Yaml: TypeAlias = "str | list[Yaml] | dict[str, Yaml]"
Constants: TypeAlias = Mapping[str, int | str]

Steps: TypeAlias = "tuple[str | int, ...]"
"""The way to a value in a file: names of fields and positions in lists."""

LARGEST = 2**31 - 1
"""The largest number in the COMET tool's integers."""

KindT = TypeVar("KindT", bound=StrEnum)

_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class FileFormatError(DiagnosticException):
    """A file is not what the COMET format asks for; the message says where and why."""


@dataclass(frozen=True)
class SourceFile:
    """A parsed YAML file; `root` remembers where everything stands."""

    name: str
    value: Yaml
    root: yaml.Node | None = field(repr=False)

    def place(self, steps: Steps) -> str:
        """
        Return `file:line` of the value that `steps` lead to.

        Fields count from their names; what is missing stands where it is missed.
        """
        return f"{self.name}:{self._mark(steps).line + 1}"

    def location(self, steps: Steps) -> FileLineColLoc:
        """Return the place of a value as the location of an operation."""
        mark = self._mark(steps)
        line, column = IntAttr(mark.line + 1), IntAttr(mark.column + 1)
        return FileLineColLoc(StringAttr(self.name), line, column)

    def _mark(self, steps: Steps) -> yaml.Mark:
        node = self.root
        mark = yaml.Mark(self.name, 0, 0, 0, None, 0) if node is None else _start(node)
        for step in steps:
            if (found := _step_into(node, step)) is None:
                break
            mark, node = found
        return mark


def _start(node: yaml.Node) -> yaml.Mark:
    return cast(yaml.Mark, node.start_mark)


def _step_into(
    node: yaml.Node | None, step: str | int
) -> tuple[yaml.Mark, yaml.Node] | None:
    """Return where a field or an element of `node` starts, and its value."""
    if isinstance(node, yaml.MappingNode):
        pairs = cast(list[tuple[yaml.Node, yaml.Node]], node.value)
        return next(((_start(k), v) for k, v in pairs if k.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        child = cast(yaml.Node, node.value[step])
        return _start(child), child
    return None


def parse_yaml(text: str, file: str) -> SourceFile:
    """
    Parse one YAML document into dictionaries, lists and strings.

    Raises FileFormatError, with the line, if `text` is malformed or gives a field of
    one mapping twice.
    """
    with _located_mistakes(file):
        loader = _LOADER(text)
        root = cast("yaml.Node | None", loader.get_single_node())
        if root is None:
            return SourceFile(file, "", None)
        _check_acyclic(root, ())
        source = SourceFile(file, "", root)
        return replace(source, value=_plain(source, root))


def _plain(source: SourceFile, node: yaml.Node) -> Yaml:
    if isinstance(node, yaml.SequenceNode):
        return [_plain(source, child) for child in cast(list[yaml.Node], node.value)]
    if not isinstance(node, yaml.MappingNode):
        return str(node.value)
    fields: dict[str, Yaml] = {}
    for key, value in cast(list[tuple[yaml.Node, yaml.Node]], node.value):
        if (name := str(key.value)) in fields:
            raise FileFormatError(
                f"{source.name}:{_start(key).line + 1}: the field '{name}' is given "
                "twice; keep one"
            )
        fields[name] = _plain(source, value)
    return fields


def located_yaml(
    text: str, file: str, loader: type[yaml.BaseLoader | yaml.SafeLoader]
) -> object:
    """Parse one YAML document; FileFormatError names the line of a mistake."""
    with _located_mistakes(file):
        reader = loader(text)
        if (root := reader.get_single_node()) is None:
            return None
        _check_acyclic(root, ())
        construct = cast(Callable[[yaml.Node], object], reader.construct_document)
        return construct(root)


def _check_acyclic(node: yaml.Node, around: tuple[yaml.Node, ...]) -> None:
    if any(node is outer for outer in around):
        raise yaml.MarkedYAMLError(
            problem="an alias names a value that contains it; write the value out",
            problem_mark=_start(around[-1]),
        )
    for child in _children(node):
        _check_acyclic(child, (*around, node))


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [
            value for _, value in cast(list[tuple[yaml.Node, yaml.Node]], node.value)
        ]
    if isinstance(node, yaml.SequenceNode):
        return cast(list[yaml.Node], node.value)
    return []


@contextmanager
def _located_mistakes(file: str) -> Generator[None]:
    try:
        yield
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = file if mark is None else f"{file}:{mark.line + 1}"
        reason = error.problem or "unreadable"
        raise FileFormatError(f"{place}: malformed YAML: {reason}") from error


@dataclass(frozen=True)
class Node:
    """A mapping of a YAML file, with its place for messages."""

    fields: Mapping[str, Yaml]
    source: SourceFile
    steps: Steps = ()
    """The way from the top of the file to the mapping."""
    constants: Constants = field(default_factory=dict[str, "int | str"])
    """Numbers and strings that may be given by name."""

    @classmethod
    def top(cls, source: SourceFile, constants: Constants | None = None) -> Node:
        """Wrap a whole file, which must be a mapping."""
        return cls._of(source.value, source, (), constants or {})

    @classmethod
    def _of(
        cls, value: Yaml, source: SourceFile, steps: Steps, constants: Constants
    ) -> Node:
        if not isinstance(value, dict):
            raise FileFormatError(
                f"{source.place(steps)}: {_called(steps)} must be a mapping of fields"
            )
        return cls(value, source, steps, constants)

    @property
    def location(self) -> FileLineColLoc:
        """Where the mapping starts."""
        return self.source.location(self.steps)

    def has(self, key: str) -> bool:
        """Whether the field is given."""
        return key in self.fields

    def get(self, key: str) -> Yaml:
        """Return a field that must be there."""
        if key not in self.fields:
            raise self.fail(f"{_called(self.steps)} lacks the field '{key}'; add it")
        return self.fields[key]

    def node(self, key: str) -> Node:
        """Return a field that must be a mapping."""
        value = self.get(key)
        return self._of(value, self.source, (*self.steps, key), self.constants)

    def nodes(self, key: str) -> tuple[Node, ...]:
        """Return a list of mappings; a single mapping counts as a list of one."""
        value = self.get(key)
        items = value if isinstance(value, list) else [value]
        return tuple(
            self._of(item, self.source, (*self.steps, key, index), self.constants)
            for index, item in enumerate(items)
        )

    def text(self, key: str) -> str:
        """Return a field that must be a scalar."""
        return self._scalar(self.get(key), key)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a field that must be a list of scalars."""
        return tuple(self._scalar(item, key) for item in self.items(key))

    def items(self, key: str) -> Sequence[Yaml]:
        """Return a field that must be a list."""
        value = self.get(key)
        if not isinstance(value, list):
            raise self.fail(f"the field '{key}' must be a list; write [..]", key)
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean field, false if absent."""
        return self.has(key) and self._truth(self.text(key), key)

    def flags(self, key: str) -> tuple[bool, ...]:
        """Return a list of booleans."""
        return tuple(self._truth(text, key) for text in self.texts(key))

    def kind(self, key: str, kinds: type[KindT]) -> KindT:
        """Return a field that must name a member of `kinds`, in any case."""
        text = self.text(key)
        for kind in kinds:
            if kind.value == text.lower():
                return kind
        known = ", ".join(kind.value for kind in kinds)
        raise self.fail(f"'{text}' is no {key}; there are {known}", key)

    def number(self, key: str) -> int:
        """Return an integer field, given as digits."""
        return self.digits(self.text(key), key)

    def constant(self, text: str, what: str) -> int:
        """Return the integer that `text` names in the constants or spells."""
        value = self.constants.get(text, text)
        return value if isinstance(value, int) else self.digits(value, what)

    def name(self, text: str) -> str:
        """Return the string that `text` names in the constants, or `text` itself."""
        value = self.constants.get(text)
        return value if isinstance(value, str) else text

    def fail(self, reason: str, *below: str | int) -> FileFormatError:
        """Return an error at this place, or at a field `below`."""
        return FileFormatError(f"{self.source.place((*self.steps, *below))}: {reason}")

    def _scalar(self, value: Yaml, key: str) -> str:
        if not isinstance(value, str):
            raise self.fail(
                f"the field '{key}' must hold plain values, no lists or mappings", key
            )
        return value

    def digits(self, text: str, what: str) -> int:
        """Return the integer that `text` spells."""
        # The tool reads leading digits and ignores what follows them.
        if (match := re.match(r"\s*\+?(\d+)", text)) is None:
            raise self.fail(
                f"'{text}' ({what}) is neither a number nor a constant; write a whole "
                "number or a name from the constants file"
            )
        return self.fitting(int(match.group(1)), what)

    def fitting(self, value: int, what: str) -> int:
        """Return `value`, which must fit the COMET tool's integers."""
        if value > LARGEST:
            raise self.fail(
                f"{value} ({what}) overflows the COMET tool's 32-bit integers; take at "
                f"most {LARGEST}"
            )
        return value

    def _truth(self, text: str, key: str) -> bool:
        if text.lower() in ("true", "yes", "on", "y"):
            return True
        if text.lower() in ("false", "no", "off", "n"):
            return False
        raise self.fail(f"'{text}' is neither true nor false; write one of them", key)


def _called(steps: Steps) -> str:
    if not steps:
        return "the file"
    *_, name = (step for step in steps if isinstance(step, str))
    last = steps[-1]
    return f"entry {last + 1} of '{name}'" if isinstance(last, int) else f"'{name}'"
