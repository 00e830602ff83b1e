"""The plans that the search for factors on accelerators tries: random ones, steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, combinations, islice, permutations
from math import prod

import numpy as np

from comet.cost.accelerator.factors import Loops
from comet.passes.schedule.tile.factor_space import divisors
from comet.passes.schedule.tile.template import (
    Factor,
    Key,
    Plan,
    Template,
    Values,
    factors_of,
)

CHOICES = 12
"""How many divisors of an extent the search tries."""

SAMPLES = 8000
"""How many random plans the search prices before it descends."""


@cache
def some_divisors(extent: int) -> tuple[int, ...]:
    """Return divisors of an extent, both ends included, at most CHOICES of them."""
    found = divisors(extent)
    if len(found) <= CHOICES:
        return found
    positions = np.linspace(0, len(found) - 1, CHOICES).round().astype(int)
    return tuple(found[int(place)] for place in positions)


def orders_of(plan: Plan) -> tuple[tuple[str, ...], ...]:
    """Return the order of the loops of every key of a plan."""
    return tuple(tuple(dim for dim, _ in loops) for loops in plan.values())


def samples(template: Template, plan: Plan, fixed: Mapping[Factor, int]) -> Values:
    """
    Return random factors for the loops of a plan, the same at every call.

    Loops with one leader have the same factor, unless it is `fixed`.
    """
    random = np.random.default_rng(0)
    leaders, factors = template.leaders, factors_of(plan)
    chosen = {
        factor: random.choice(some_divisors(template.extent[factor]), SAMPLES)
        for factor in factors
        if leaders[factor] == factor
    }
    chosen |= {factor: np.full(SAMPLES, only) for factor, only in fixed.items()}
    return {factor: chosen.get(factor, chosen[leaders[factor]]) for factor in factors}


def neighbours(template: Template, plan: Plan) -> Values:
    """
    Return the plans that differ from `plan` in one factor, or in two related ones.

    Factors are related if they are of one dimension or key. Loops with one leader count
    as one factor.
    """
    current = factors_of(plan)
    followers: dict[Factor, list[Factor]] = {}
    for factor in current:
        followers.setdefault(template.leaders[factor], []).append(factor)
    others = {
        leader: np.asarray([n for n in some_divisors(extent) if n != current[leader]])
        for leader, extent in (
            (factor, template.extent[factor]) for factor in followers
        )
    }
    parts = {leader: _parts(group) for leader, group in followers.items()}
    moves = [(leader,) for leader in followers] + [
        (second, first)
        for first, second in combinations(followers, 2)
        if not parts[first].isdisjoint(parts[second])
    ]
    sizes = [prod(others[leader].size for leader in move) for move in moves]
    columns = {factor: np.full(sum(sizes), n) for factor, n in current.items()}
    for move, size, end in zip(moves, sizes, accumulate(sizes), strict=True):
        inner = size
        for leader in move if size else ():  # the last one changes from row to row
            values = others[leader]
            inner //= values.size
            for factor in followers[leader]:
                rows = columns[factor][end - size : end]
                rows.reshape(-1, values.size, inner)[:] = values[:, None]
    return columns


def _parts(factors: Sequence[Factor]) -> frozenset[Key | str]:
    """Return the keys and the dimensions of factors."""
    return frozenset(part for factor in factors for part in factor)


def reorderings(plan: Plan, leaders: Mapping[Factor, Factor]) -> Iterator[Plan]:
    """
    Yield the plan with every other order of the loops of a key.

    Loops of factor 1 stay innermost. Loops with one leader stay adjacent, and keys with
    the same leaders get the same order.
    """
    keys_of: dict[tuple[Factor, ...], list[Key]] = {}
    for key, loops in plan.items():
        roles = dict.fromkeys(leaders[key, dim] for dim, n in loops if n > 1)
        keys_of.setdefault(tuple(roles), []).append(key)
    for roles, keys in keys_of.items():
        for order in islice(permutations(roles), 1, None):
            yield {**plan, **{key: _ordered(plan, key, order, leaders) for key in keys}}


def _ordered(
    plan: Plan, key: Key, order: Sequence[Factor], leaders: Mapping[Factor, Factor]
) -> Loops:
    """Return the loops of a key in an order of leaders, loops of factor 1 innermost."""
    rank = {role: position for position, role in enumerate(order)}
    last = len(order)
    return tuple(
        sorted(
            plan[key],
            key=lambda loop: rank[leaders[key, loop[0]]] if loop[1] > 1 else last,
        )
    )
