"""Typed access to parsed YAML, with errors that name the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from comet.cost.estimate import CostError

Yaml: TypeAlias = "bool | int | float | str | list[Yaml] | dict[str, Yaml] | None"


@dataclass(frozen=True, slots=True)
class Fields:
    """
    The fields of one YAML map; `where` names it in errors, `constants` replaces names
    where numbers belong.
    """

    values: Mapping[str, Yaml]
    where: str
    constants: Mapping[str, int | str] = field(default_factory=dict[str, "int | str"])

    def has(self, key: str) -> bool:
        """Whether the field is there and not null."""
        return self.values.get(key) is not None

    def get(self, key: str) -> Yaml:
        """The raw value; raises `CostError` where it is missing."""
        if key not in self.values:
            raise CostError(f"{self.where} lacks the field {key!r}; add it")
        return self.values[key]

    def text(self, key: str, default: str | None = None) -> str:
        """A string field."""
        value = self.get(key) if default is None else self.values.get(key, default)
        if isinstance(value, (dict, list)) or value is None:
            raise CostError(
                f"{self.where}: field {key!r} must be a word, not {_kind(value)}"
            )
        return str(value)

    def integer(self, key: str, default: int | None = None) -> int:
        """An integer field; a float is truncated, as the COMET tool does."""
        value = self.get(key) if default is None else self.values.get(key, default)
        return self._integer(value, key)

    def number(self, key: str, default: float) -> float:
        """A numeric field."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise CostError(
                f"{self.where}: field {key!r} must be a number, not {_kind(value)}"
            )
        return value

    def flag(self, key: str, default: bool | None = False) -> bool:
        """A boolean field."""
        value = self.get(key) if default is None else self.values.get(key, default)
        if not isinstance(value, bool):
            raise CostError(
                f"{self.where}: field {key!r} must be true or false, not {_kind(value)}"
            )
        return value

    def items(self, key: str) -> list[Yaml]:
        """A list field; missing or null reads as empty."""
        value = self.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise CostError(
                f"{self.where}: field {key!r} must be a list, not {_kind(value)}"
            )
        return value

    def words(self, key: str) -> tuple[str, ...]:
        """A list of words, or one string with commas between them."""
        value = self.values.get(key)
        if isinstance(value, str):
            return tuple(word.strip() for word in value.split(",") if word.strip())
        return tuple(str(item) for item in self.items(key))

    def flags(self, key: str, count: int) -> tuple[bool, ...]:
        """A list of `count` booleans, all false where missing."""
        if not self.has(key):
            return (False,) * count
        return tuple(bool(item) for item in self.items(key))

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of integers or constant names."""
        return tuple(self._integer(item, key) for item in self.items(key))

    def below(self, key: str) -> Fields:
        """A nested map, empty where missing."""
        value = self.values.get(key)
        if value is None:
            value = {}
        return as_fields(value, f"{key} of {self.where}", self.constants)

    def _integer(self, value: Yaml, key: str) -> int:
        if isinstance(value, str):
            return self.constant(value, key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise CostError(
                f"{self.where}: field {key!r} must be a number, not {_kind(value)}"
            )
        return int(value)

    def constant(self, word: str, key: str) -> int:
        """
        A literal or the constant of that name; raises `CostError` where it is neither.
        """
        word = word.strip()
        value = self.constants.get(word, word)
        try:
            return int(value)
        except ValueError:
            raise CostError(
                f"{self.where}: {word!r} in {key!r} is neither a number nor a name in "
                "const; define it there"
            ) from None


def as_fields(
    value: Yaml, where: str, constants: Mapping[str, int | str] | None = None
) -> Fields:
    """The fields of a YAML value; raises `CostError` where it is no map."""
    if not isinstance(value, dict):
        raise CostError(f"{where} must be a map of fields, not {_kind(value)}")
    return Fields(value, where, constants or {})


def as_yaml(value: object) -> Yaml:
    """What `yaml.safe_load` returned, as the type this package uses."""
    return cast(Yaml, value)


def _kind(value: Yaml) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return f"{str(value).lower()}"
        case list():
            return "a list"
        case dict():
            return "a map"
        case _:
            return repr(value)
