"""A cache that forgets what was used least recently."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")


class Recent(Generic[Key, T]):
    """At most so many values by key, those used last (LRU)."""

    def __init__(self, most: int):
        self._most = most
        self._values: dict[Key, T] = {}
        """The least recently used first."""

    def get(self, key: Key) -> T | None:
        """Return the value of a key, None if it has none or was forgotten."""
        if (value := self._values.pop(key, None)) is not None:
            self._values[key] = value
        return value

    def keep(self, key: Key, value: T) -> T:
        """Set the value of a key, and return it; forget the least recently used."""
        self._values.pop(key, None)
        if len(self._values) >= self._most:
            del self._values[next(iter(self._values))]
        self._values[key] = value
        return value
