"""The tables that `comet-opt --explain` prints, one for each choice."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp

from comet.dialects.arch import find_system
from comet.passes.search.goal import Cost
from comet.passes.search.record import Choice, Row, session
from comet.text_table import aligned

Columns: TypeAlias = Mapping[str, Callable[[Cost], str]]
"""The text of a cost in each column, by its unit."""


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:,.3f}"


GPU_COLUMNS: Columns = {"us": lambda cost: _microseconds(cost.latency)}
ACCELERATOR_COLUMNS: Columns = {
    "cycles": lambda cost: f"{cost.latency:,.0f}",
    "pJ": lambda cost: f"{cost.energy:,.0f}",
}


@contextmanager
def explaining(module: ModuleOp) -> Generator[None]:
    """Print on stderr the choices that passes make on `module`, even if one fails."""
    with session() as searched:
        try:
            yield
        finally:
            print(explained(searched.choices, module), file=sys.stderr)


def explained(choices: Iterable[Choice], module: ModuleOp) -> str:
    """
    Return the tables of `choices`, made on the hardware of `module`.

    Equal choices have one table, at the first of them.
    """
    system = find_system(module)
    on_gpu = system is not None and system.gpu is not None
    columns = GPU_COLUMNS if on_gpu else ACCELERATOR_COLUMNS
    places: dict[Choice, dict[str, None]] = {}
    for choice in choices:
        places.setdefault(replace(choice, place=""), {})[choice.place] = None
    return "\n".join(_table(choice, at, columns) for choice, at in places.items())


def _table(choice: Choice, places: Iterable[str], columns: Columns) -> str:
    """
    Return a heading and a row for each candidate, `*` at the chosen one.

    All of `places` have the same candidates with the same costs.
    """
    within = f", with {', '.join(choice.within)}" if choice.within else ""
    is_ranked = any(row.rank is not None for row in choice.rows)
    is_limited = any(row.limit for row in choice.rows)
    last = ["limited by"] * is_limited
    texts = [("  candidate", *columns, *["compared, us"] * is_ranked, *last)]
    for index, row in enumerate(choice.rows):
        mark = "*" if index == choice.chosen else " "
        cells = (*_costs(row, columns), *[_rank(row)] * is_ranked)
        texts.append((f"{mark} {row.label}", *cells, *[row.limit] * is_limited))
    lines = aligned(texts, left=(0, len(texts[0]) - 1) if is_limited else (0,))
    return "\n".join([f"{choice.name} for {', '.join(places)}{within}", *lines, ""])


def _costs(row: Row, columns: Columns) -> tuple[str, ...]:
    """Return the text of a cost in each column."""
    cost = row.cost
    return tuple("-" if cost is None else text(cost) for text in columns.values())


def _rank(row: Row) -> str:
    """Return the text of what a candidate is compared by."""
    return "-" if row.rank is None else _microseconds(row.rank)
