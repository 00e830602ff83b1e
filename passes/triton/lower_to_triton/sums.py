"""
How `lower-to-triton` writes sums of products: with one accumulator for all of them.

Each product, and each loop that sums products, starts from what the one before it left.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import SSAValue

from comet.dialects.schedule.accumulators import sum_with, summands
from comet.passes.triton.lower_to_triton.values import Scope, Tile


def start_of(value: SSAValue, scope: Scope) -> Tile | None:
    """
    Return the accumulator that a product, or a loop of products, continues, if any.

    That is the accumulator of the loop around, or of an earlier term of the same sum.
    """
    if value in scope.accumulators:
        return scope.accumulators[value]
    if (total := sum_with(value)) is None:
        return None
    before = _term_before(value, total)
    return scope.accumulators.get(total) if before is None else scope.tile(before)


def added_to_earlier(value: SSAValue, tile: Tile, scope: Scope) -> Tile:
    """Return the tile of a term, without zeros where earlier terms may have others."""
    total = sum_with(value)
    before = None if total is None else _term_before(value, total)
    if before is None:
        return tile
    zeros = scope.tile(before).padding.keys()
    kept = {dim: zero for dim, zero in tile.padding.items() if dim in zeros}
    return replace(tile, padding=kept)


def is_last_term(value: SSAValue) -> bool:
    """Whether a product is the last one of a sum, after which its accumulator is."""
    total = sum_with(value)
    return total is not None and summands(total)[-1] is value


def sum_of_products(value: SSAValue, scope: Scope) -> Tile | None:
    """Return the accumulator after the last term, None if `value` is no such sum."""
    terms = summands(value)
    return scope.tile(terms[-1]) if terms else None


def _term_before(value: SSAValue, total: SSAValue) -> SSAValue | None:
    """Return the term before `value` in a sum, None before the first."""
    terms = summands(total)
    index = terms.index(value)
    return terms[index - 1] if index else None
