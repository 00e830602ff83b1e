"""The tables that `comet-opt --explain` prints, one for each choice."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from xdsl.dialects.builtin import ModuleOp

from comet.dialects.arch import find_system
from comet.passes.search.goal import Cost
from comet.passes.search.record import Choice, Row, session
from comet.text_table import aligned


@contextmanager
def explaining(module: ModuleOp) -> Generator[None]:
    """Print on stderr the choices that passes make on `module`, even if one fails."""
    with session() as searched:
        try:
            yield
        finally:
            print(explained(searched.choices, module), file=sys.stderr)


def explained(choices: Iterable[Choice], module: ModuleOp) -> str:
    """Return the tables of `choices`, made on the hardware of `module`."""
    system = find_system(module)
    on_gpu = system is not None and system.gpu is not None
    return "\n".join(_table(choice, on_gpu) for choice in choices)


def _table(choice: Choice, on_gpu: bool) -> str:
    """Return a heading and a row for each candidate, `*` at the chosen one."""
    within = f", with {', '.join(choice.within)}" if choice.within else ""
    texts = [("  candidate", *_units(on_gpu), "limited by")]
    texts += [
        (f"{'*' if index == choice.chosen else ' '} {row.label}", *_cells(row, on_gpu))
        for index, row in enumerate(choice.rows)
    ]
    lines = aligned(texts, left=(0, len(texts[0]) - 1))
    return "\n".join([f"{choice.name} for {choice.place}{within}", *lines, ""])


def _units(on_gpu: bool) -> tuple[str, ...]:
    return ("us",) if on_gpu else ("cycles", "pJ")


def _cells(row: Row, on_gpu: bool) -> tuple[str, ...]:
    if row.cost is None:
        return (*("-" for _ in _units(on_gpu)), row.limit)
    return (*_numbers(row.cost, on_gpu), row.limit)


def _numbers(cost: Cost, on_gpu: bool) -> tuple[str, ...]:
    if on_gpu:
        return (f"{cost.latency * 1e6:,.3f}",)
    return f"{cost.latency:,.0f}", f"{cost.energy:,.0f}"
