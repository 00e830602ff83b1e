"""Options that give names numbers: `"N=272,K=128"`."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ENTRY = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*([1-9]\d{0,17})\s*")


def named_number(text: str) -> tuple[str, int] | None:
    """Return the name and the positive number in `N=272`, None for another text."""
    entry = _ENTRY.fullmatch(text)
    return None if entry is None else (entry[1], int(entry[2]))


def format_numbers(numbers: Mapping[str, int]) -> str:
    """Return the text of an option that gives these numbers."""
    return ",".join(f"{name}={number}" for name, number in numbers.items())
