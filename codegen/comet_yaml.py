"""
Typed access to parsed YAML: every field that is missing or odd is one clear sentence.

All scalars are read as text, because that is how the COMET tool reads them: a
permutation `NO` or a tensor `ON` is a name and no boolean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar, cast

import yaml
from xdsl.utils.exceptions import DiagnosticException
from xdsl.utils.str_enum import StrEnum

Yaml: TypeAlias = "str | list[Yaml] | dict[str, Yaml]"
Constants: TypeAlias = Mapping[str, int | str]

KindT = TypeVar("KindT", bound=StrEnum)

_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class FileFormatError(DiagnosticException):
    """A file is not what the COMET format asks for; the message says where and why."""


def parse_yaml(text: str, file: str) -> Yaml:
    """
    Parse one YAML document into dictionaries, lists and strings.

    Raises FileFormatError, with the line, if `text` is malformed.
    """
    return cast(Yaml, located_yaml(text, file, _LOADER))


def located_yaml(
    text: str, file: str, loader: type[yaml.BaseLoader | yaml.SafeLoader]
) -> object:
    """Parse one YAML document; FileFormatError names the line of a mistake."""
    try:
        return yaml.load(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = file if mark is None else f"{file}:{mark.line + 1}"
        reason = error.problem or "unreadable"
        raise FileFormatError(f"{place}: malformed YAML: {reason}") from error


@dataclass(frozen=True)
class Node:
    """A mapping of a YAML file, with its place for messages."""

    fields: Mapping[str, Yaml]
    place: str
    constants: Constants = field(default_factory=dict[str, "int | str"])
    """Numbers and strings that may be given by name."""

    @classmethod
    def of(cls, value: Yaml, place: str, constants: Constants | None = None) -> Node:
        """Wrap `value`, which must be a mapping."""
        if not isinstance(value, dict):
            raise FileFormatError(f"{place}: a mapping is expected here")
        return cls(value, place, constants or {})

    def has(self, key: str) -> bool:
        """Whether the field is given."""
        return key in self.fields

    def get(self, key: str) -> Yaml:
        """Return a field that must be there."""
        if key not in self.fields:
            raise FileFormatError(f"{self.place}: the field '{key}' is missing")
        return self.fields[key]

    def node(self, key: str) -> Node:
        """Return a field that must be a mapping."""
        return Node.of(self.get(key), f"{self.place}.{key}", self.constants)

    def nodes(self, key: str) -> tuple[Node, ...]:
        """Return a list of mappings; a single mapping counts as a list of one."""
        value = self.get(key)
        items = value if isinstance(value, list) else [value]
        return tuple(
            Node.of(item, f"{self.place}.{key}[{index}]", self.constants)
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
            raise FileFormatError(f"{self.place}: the field '{key}' must be a list")
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
        raise FileFormatError(f"{self.place}: '{text}' is no {key}; there are {known}")

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

    def fail(self, reason: str) -> FileFormatError:
        """Return an error at this place."""
        return FileFormatError(f"{self.place}: {reason}")

    def _scalar(self, value: Yaml, key: str) -> str:
        if not isinstance(value, str):
            raise self.fail(f"the field '{key}' must hold plain values")
        return value

    def digits(self, text: str, what: str) -> int:
        """Return the integer that `text` spells."""
        # The tool reads leading digits and ignores what follows them.
        if (match := re.match(r"\s*\+?(\d+)", text)) is None:
            raise self.fail(f"'{text}' ({what}) is neither a number nor a constant")
        return int(match.group(1))

    def _truth(self, text: str, key: str) -> bool:
        if text.lower() in ("true", "yes", "on", "y"):
            return True
        if text.lower() in ("false", "no", "off", "n"):
            return False
        raise self.fail(f"'{text}' ({key}) is neither true nor false")
