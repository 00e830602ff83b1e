"""Typed access to the fields of a hardware file, with errors that name the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from comet.cost.estimate import HardwareError

Yaml: TypeAlias = (
    "bool | int | float | str | Sequence[Yaml] | Mapping[str, Yaml] | None"
)


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one YAML map; `where` names it in errors."""

    values: Mapping[str, Yaml]
    where: str

    def has(self, key: str) -> bool:
        """Whether the field is there and not null."""
        return self.values.get(key) is not None

    def text(self, key: str) -> str:
        """A word that must be there."""
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self._fail(key, "a word")
        return value

    def integer(self, key: str, default: int | None = None) -> int:
        """An integer; a float is truncated, as the COMET tool does."""
        return int(self.number(key, default))

    def number(self, key: str, default: float | None = None) -> float:
        """A number; it must be there if there is no default."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._fail(key, "a number")
        return value

    def flag(self, key: str) -> bool:
        """A boolean, false where it is missing."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self._fail(key, "true or false")
        return value

    def items(self, key: str) -> Sequence[Yaml]:
        """A list; missing or null reads as empty."""
        value = self.values.get(key)
        if value is None:
            return ()
        if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
            raise self._fail(key, "a list")
        return value

    def below(self, key: str, where: str) -> Fields:
        """A nested map, empty where missing."""
        value = self.values.get(key)
        return Fields({}, where) if value is None else as_fields(value, where)

    def _fail(self, key: str, wanted: str) -> HardwareError:
        there = repr(self.values[key]) if key in self.values else "nothing"
        return HardwareError(
            f"{self.where}: field {key!r} must be {wanted}, not {there}"
        )


def as_fields(value: Yaml, where: str) -> Fields:
    """The fields of a YAML value; raises `HardwareError` where it is no map."""
    if not isinstance(value, Mapping):
        raise HardwareError(f"{where} must be a map of fields, not {value!r}")
    return Fields(value, where)
