"""
Typed access to parsed YAML: a missing or wrong field is an error of one sentence.

All scalars are read as text, because the COMET tool reads them so: a permutation `NO`
or a tensor `ON` is a name and no boolean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import yaml
from xdsl.dialects.builtin import FileLineColLoc
from xdsl.utils.str_enum import StrEnum

from comet.yaml_file import FileFormatError, Steps, Yaml, YamlFile

Constants: TypeAlias = Mapping[str, int | str]

DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""The writer of YAML: libyaml where it is installed."""

LARGEST = 2**31 - 1
"""The largest number in the COMET tool's integers."""

KindT = TypeVar("KindT", bound=StrEnum)


@dataclass(frozen=True)
class Node:
    """A mapping of a YAML file, with its location for messages."""

    fields: Mapping[str, Yaml]
    source: YamlFile
    steps: Steps = ()
    """The path from the top of the file to the mapping."""
    constants: Constants = field(default_factory=dict[str, "int | str"])
    """Numbers and strings that have a name in the constants file."""

    @classmethod
    def top(cls, source: YamlFile, constants: Constants | None = None) -> Node:
        """Wrap a whole file, which must be a mapping."""
        return cls._of(source.texts, source, (), constants or {})

    @classmethod
    def _of(
        cls, value: Yaml, source: YamlFile, steps: Steps, constants: Constants
    ) -> Node:
        if not isinstance(value, dict):
            location = source.file_line(steps)
            raise FileFormatError(
                f"{location}: {_called(steps)} must be a mapping of fields"
            )
        return cls(value, source, steps, constants)

    @property
    def location(self) -> FileLineColLoc:
        """Where the mapping starts."""
        return self.source.location(self.steps)

    def has(self, key: str) -> bool:
        """Whether the field exists."""
        return key in self.fields

    def get(self, key: str) -> Yaml:
        """Return a field that must exist."""
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
        names = ", ".join(kind.value for kind in kinds)
        raise self.fail(f"'{text}' is no {key}; there are {names}", key)

    def number(self, key: str) -> int:
        """Return an integer field, given as digits."""
        return self.digits(self.text(key), key)

    def constant(self, text: str, what: str) -> int:
        """Return the integer that `text` is, or names in the constants."""
        value = self.constants.get(text, text)
        return value if isinstance(value, int) else self.digits(value, what)

    def name(self, text: str) -> str:
        """Return the string that `text` names in the constants, or `text` itself."""
        value = self.constants.get(text)
        return value if isinstance(value, str) else text

    def fail(self, reason: str, *below: str | int) -> FileFormatError:
        """Return an error at this mapping, or at a field `below`."""
        return FileFormatError(
            f"{self.source.file_line((*self.steps, *below))}: {reason}"
        )

    def _scalar(self, value: Yaml, key: str) -> str:
        if not isinstance(value, str):
            raise self.fail(
                f"the field '{key}' must hold plain values, no lists or mappings", key
            )
        # Others would become bytes, not text, where MLIR writes and reads them.
        if not (value.isascii() and value.isprintable()):
            raise self.fail(
                f"the field '{key}' is {ascii(value)[:40]}; write printable ASCII", key
            )
        return value

    def digits(self, text: str, what: str) -> int:
        """Return the integer that `text` is."""
        # The tool would read leading digits and ignore the rest.
        if (match := re.match(r"\s*\+?(\d+)", text)) is None:
            raise self.fail(
                f"'{text}' ({what}) is neither a number nor a constant; write a whole "
                "number or a name from the constants file"
            )
        return self.fitting(match.group(1), what)

    def fitting(self, digits: str, what: str) -> int:
        """Return the number of `digits`, which must fit the COMET tool's integers."""
        digits = digits.lstrip("0") or "0"
        if len(digits) > len(str(LARGEST)) or int(digits) > LARGEST:
            raise self.fail(
                f"{digits} ({what}) overflows the COMET tool's 32-bit integers; take "
                f"at most {LARGEST}"
            )
        return int(digits)

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
