"""Tables as Markdown has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a cell must have no line break and no bar."""
    lines = [f"| {' | '.join(cells)} |" for cells in (columns, *rows)]
    return "\n".join((lines[0], "|" + "---|" * len(columns), *lines[1:]))
