"""Checks arguments that must be one of several words."""

from __future__ import annotations

from collections.abc import Iterable

from comet.tools.diagnostics import UsageError


def expect_one_of(what: str, word: str, known: Iterable[str]) -> None:
    """Raise UsageError unless an argument, called `what`, is a known word."""
    if word not in (words := tuple(known)):
        raise UsageError(
            f"there is no {what} '{word}' here; choose from {', '.join(words)}"
        )
