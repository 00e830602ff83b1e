"""Input texts, with their file names for errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Self, TypeAlias

from comet.tools.diagnostics import UsageError

PathOrText: TypeAlias = str | PathLike[str]
"""A path, or a text with a line break."""


def is_text(source: PathOrText) -> bool:
    """Return whether `source` is a text and not a path."""
    return isinstance(source, str) and "\n" in source


@dataclass(frozen=True)
class Source:
    """The text of a file."""

    text: str
    name: str
    """The path of the file, which errors name."""

    @classmethod
    def of(cls, source: PathOrText) -> Self:
        """Return a text with a line break as it is, and read any other as a path."""
        return cls(str(source), "<text>") if is_text(source) else cls.read(source)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Self:
        """
        Read a file, without a byte order mark.

        Raises OSError, or UsageError if it is not UTF-8 text.
        """
        try:
            return cls(Path(path).read_text("utf-8-sig"), fspath(path))
        except UnicodeDecodeError as error:
            raise UsageError(f"{fspath(path)}: the file is not UTF-8 text") from error


def read_all(paths: Mapping[str, str | PathLike[str]]) -> dict[str, Source]:
    """Read several files, by name."""
    return {name: Source.read(path) for name, path in paths.items()}
