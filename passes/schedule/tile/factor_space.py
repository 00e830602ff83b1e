"""
The space of factors and loop orders of a template, cut into parts.

A part of the space fixes the loops of the first keys and leaves those of the others
open; outer nodes come first. Parts that differ only in factors are elements of arrays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain, permutations, takewhile
from math import factorial, isqrt, prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from comet.cost.accelerator.mappings import Mappings
from comet.cost.accelerator.model import room_many
from comet.cost.accelerator.problem import Tile, walk_tiles
from comet.cost.accelerator.volume import relevant
from comet.cost.estimate import CostError
from comet.cost.from_ir.capacity import Bytes, Sizes
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.node import NodeOp, nodes_around
from comet.digraph import components
from comet.passes.schedule.tile.candidates import Candidates, block_of
from comet.passes.schedule.tile.template import (
    Factor,
    Key,
    Plan,
    Template,
    Values,
    select,
)

EQUAL_ORDERS = "an order of loops that reuses as much"
CONTRARY_ORDERS = "orders that one node cannot have"
"""Why parts are not made."""

MANY = 10_000
"""
With more parts it pays to drop those whose factors do not divide early; and how many
are counted at a time.
"""

Order: TypeAlias = tuple[str, ...]
"""The dimensions of a key's loops, outermost first."""

Moved: TypeAlias = tuple[frozenset[str], frozenset[str]]
"""The dimensions of a tensor, and of the operation that uses it, as in the problem."""


@dataclass(frozen=True)
class Parts:
    """Parts of the space that differ only in factors."""

    orders: tuple[Order, ...]
    """The loops of the first keys, one order for each key."""
    factors: Values
    """The factors of all dimensions of these keys, one array element for each part."""

    @property
    def count(self) -> int:
        """How many parts there are."""
        return next((array.size for array in self.factors.values()), 1)

    def where(self, chosen: NDArray[np.bool_ | np.intp]) -> Parts:
        """Return the chosen parts, by a mask or by positions."""
        return Parts(self.orders, select(self.factors, chosen))

    def blocks(self, size: int) -> Iterator[Parts]:
        """Yield the parts in blocks of at most `size`."""
        for first in range(0, self.count, size):
            yield self.where(np.arange(first, min(first + size, self.count)))


@dataclass(frozen=True)
class FactorSpace:
    """All factors and loop orders of a template, or those of some of its nodes."""

    template: Template
    keys: tuple[Key, ...]
    """The keys that get loops, outer nodes first."""
    fixed: Mapping[Factor, int] = field(default_factory=dict[Factor, int])
    """The factors that are given, and not searched."""

    def fixing(self, fixed: Mapping[Factor, int]) -> FactorSpace:
        """Return the space with these factors given."""
        return replace(self, fixed=fixed)

    def _choices(self, factor: Factor) -> NDArray[np.int64]:
        """Return the values that a factor may have."""
        if (only := self.fixed.get(factor)) is not None:
            return np.array([only])
        return np.array(divisors(self.template.extent[factor]))

    def dividing_values(
        self, factor: Factor, chosen: Mapping[Factor, int]
    ) -> NDArray[np.int64]:
        """Return the values of a factor that are legal with the chosen factors."""
        values = self._choices(factor)
        columns = {other: np.full(values.size, n) for other, n in chosen.items()}
        legal = Candidates(self.template, {**columns, factor: values}).factors_divide()
        return values[np.broadcast_to(legal, values.size)]

    @classmethod
    def of(cls, template: Template) -> FactorSpace:
        """
        Return the whole space of a template.

        Keys are in the order of their depth. The loops of outer nodes decide most of a
        bound, so that most parts are pruned before inner nodes multiply them.
        """
        depth: dict[Key, int] = {}
        for node, key in template.keys.items():
            around = sum(1 for _ in nodes_around(node))
            depth[key] = max(around, depth.get(key, 0))
        keys = (key for key, dims in template.loops.items() if dims)
        return cls(template, tuple(sorted(keys, key=lambda key: depth[key])))

    @cached_property
    def nests(self) -> tuple[FactorSpace, ...]:
        """
        The spaces of nests that share no key, in the order of their keys.

        Nests are the trees that a function runs one after the other. The loops of one
        nest do not change the cost of the others.
        """
        roots: dict[Key, set[NodeOp]] = {key: set() for key in self.keys}
        for node, key in self.template.keys.items():
            if key in roots:
                roots[key].add(node.outermost)

        def in_one_nest(key: Key) -> Iterator[Key]:
            return (other for other in self.keys if roots[key] & roots[other])

        nests = components(self.keys, in_one_nest)
        return tuple(replace(self, keys=keys) for keys in nests)

    @property
    def whole(self) -> Parts:
        """The one part that leaves the loops of all keys open."""
        return Parts((), {})

    def is_plan(self, parts: Parts) -> bool:
        """Return whether every key has its loops."""
        return len(parts.orders) == len(self.keys)

    def width(self, parts: Parts) -> int:
        """Return an upper bound of the choices of factors for the next key."""
        key = self.keys[len(parts.orders)]
        dims = self.template.loops[key]
        return prod(self._choices((key, dim)).size for dim in dims)

    def cut(self, parts: Parts, tally: Counter[str] | None = None) -> Iterator[Parts]:
        """
        Yield the parts of `parts` in which one more key has its loops.

        Factors that do not divide are left out. Of the orders with the same reuse of
        every tensor, which cost the same, only the first is made, unless the loops join
        those of other keys in one node. Orders that contradict each other, as ops of
        one node would loop in different ones, are left out. `tally` counts the parts
        that are left out, by the reason.
        """
        key = self.keys[len(parts.orders)]
        crossed = self._crossed(parts, key)
        left_out = Counter[str]() if tally is None else tally
        equal = crossed.count * factorial(len(self.template.loops[key]))
        for order, rows in self._different(crossed, key):
            found = Parts((*parts.orders, order), crossed.factors).where(rows)
            equal -= found.count
            if self._has_orders(found):
                yield found
            else:
                left_out[CONTRARY_ORDERS] += found.count
        left_out[EQUAL_ORDERS] += equal

    def _different(
        self, parts: Parts, key: Key
    ) -> Iterator[tuple[Order, NDArray[np.bool_]]]:
        """Yield orders of `key`, each with the parts for which it is needed."""
        several = np.zeros(parts.count, np.int64)
        for bit, dim in enumerate(self.template.loops[key]):
            several |= (parts.factors[key, dim] > 1).astype(np.int64) << bit
        for order, subsets in self._orders(key).items():
            rows = np.isin(several, subsets)
            if rows.any():
                yield order, rows

    def _orders(self, key: Key) -> Mapping[Order, list[int]]:
        """
        Return orders of a key, each with the sets of loops for which it is needed.

        A set has the loops of several iterations, as a bit mask over the dimensions of
        the key. An order is not needed if an earlier one reuses the same tensors (see
        `_reused`). Orders of a joined key have only the loops of the set: a loop of one
        iteration could contradict the order of another key.
        """
        if key not in self._orders_cache:
            dims, found = self.template.loops[key], dict[Order, list[int]]()
            for subset in range(1 << len(dims)):
                looped = [dim for bit, dim in enumerate(dims) if subset >> bit & 1]
                for order in self._different_orders(key, looped):
                    found.setdefault(order, []).append(subset)
            self._orders_cache[key] = found
        return self._orders_cache[key]

    def _different_orders(self, key: Key, looped: Sequence[str]) -> Iterator[Order]:
        """Yield the orders that a key needs if `looped` have several iterations."""
        if key in self._joined:
            yield from permutations(looped)
            return
        seen: set[tuple[frozenset[str], ...]] = set()
        for order in permutations(self.template.loops[key]):
            reused = self._reused(key, [dim for dim in order if dim in looped])
            if reused not in seen:
                seen.add(reused)
                yield order

    def reuse_of(self, plan: Plan) -> tuple[tuple[frozenset[str] | str, ...], ...]:
        """
        Return a key of the reuse of tiles, which follows from the orders of loops.

        Plans with the same factors cost the same if it is equal.
        """
        looped = (
            (key, [dim for dim, factor in loops if factor > 1])
            for key, loops in plan.items()
        )
        return tuple(
            tuple(order) if key in self._joined else self._reused(key, order)
            for key, order in looped
        )

    @cached_property
    def _joined(self) -> frozenset[Key]:
        """The keys whose loops become those of one node of the problem with others."""
        template, found = self.template, dict[int, set[Key]]()
        for (tile, _), nodes in template.owners.items():
            found.setdefault(tile, set()).update(template.keys[node] for node in nodes)
        return frozenset(chain.from_iterable(k for k in found.values() if len(k) > 1))

    def _reused(self, key: Key, order: Sequence[str]) -> tuple[frozenset[str], ...]:
        """Return, for each tensor, the inner loops that do not change it."""
        letters = self.template.letters
        inwards = [letters[dim] for dim in reversed(order)]
        return tuple(
            frozenset(takewhile(lambda dim: dim not in moved, inner))
            for moved, used in self.tensors[key]
            for inner in [[dim for dim in inwards if dim in used]]
        )

    @cached_property
    def _orders_cache(self) -> dict[Key, dict[Order, list[int]]]:
        return {}

    @cached_property
    def tensors(self) -> Mapping[Key, tuple[Moved, ...]]:
        """The tensors that the nodes of each key move."""
        template, found = self.template, dict[Key, set[Moved]]()
        problem = template.problem
        for tile in walk_tiles(problem.root):
            for entry in () if tile.spatial else tile.entries:
                moved = relevant(problem.projection(entry.tensor, entry.tag))
                for node in template.owners.get((tile.index, entry.tag), ()):
                    looped = frozenset(problem.operation[entry.tag].dims)
                    found.setdefault(template.keys[node], set()).add((moved, looped))
        return {key: tuple(moves) for key, moves in found.items()}

    def _crossed(self, parts: Parts, key: Key) -> Parts:
        """Return each part with each choice of factors for `key` that is legal."""
        for dim in self.template.loops[key]:
            parts = self._crossed_by(parts, (key, dim))
            if parts.count > MANY:
                parts = self._dividing(parts)
        return self._dividing(parts)

    def _crossed_by(self, parts: Parts, factor: Factor) -> Parts:
        """Return each part with each choice of `factor`, whether it divides or not."""
        choices = self._choices(factor)
        factors = {f: np.repeat(a, choices.size) for f, a in parts.factors.items()}
        factors[factor] = np.tile(choices, parts.count)
        return Parts(parts.orders, factors)

    def _dividing(self, parts: Parts) -> Parts:
        """Return the parts whose factors all divide."""
        divide = Candidates(self.template, parts.factors).factors_divide()
        return parts.where(np.broadcast_to(divide, parts.count))

    def _has_orders(self, parts: Parts) -> bool:
        """
        Return whether no two ops of one node need different orders of its loops.

        Joined keys have the same loops in all parts, so the first part decides.
        """
        try:
            self.template.problem_for(self.plan(parts, 0))
        except CostError:
            return False
        return True

    def plan(self, parts: Parts, index: int) -> Plan:
        """Return the loops of one part."""
        return {
            key: tuple((dim, int(parts.factors[key, dim][index])) for dim in order)
            for key, order in zip(self.keys, parts.orders, strict=False)
        }

    def mappings(self, parts: Parts) -> Mappings:
        """Return the parts as mappings without the open loops."""
        pairs = zip(self.keys, parts.orders, strict=False)
        plan = {key: tuple((dim, 1) for dim in order) for key, order in pairs}
        return Candidates(self.template, parts.factors).mappings(plan)

    def looped_keys(self, parts: Parts) -> frozenset[Key]:
        """Return the keys that have loops."""
        return frozenset(self.keys[: len(parts.orders)])

    def open_loops(self, parts: Parts) -> frozenset[tuple[int, str]]:
        """
        Return the nodes of the problem with open loops, each with an operation.

        A temporal node is open for an operation if it, or a node around it, has open
        loops for the operation. So nests that share a node are open one by one.
        """
        looped = self.looped_keys(parts)
        open_ = {
            owner
            for owner, nodes in self.template.owners.items()
            if not all(self._is_final(node, looped) for node in nodes)
        }
        problem = self.template.problem
        return frozenset(
            (tile.index, entry.tag)
            for tile in walk_tiles(problem.root)
            for entry in tile.entries
            if any((n, entry.tag) in open_ for n in _around(problem.parent, tile))
        )

    def _is_final(self, node: TemporalOp, looped: frozenset[Key]) -> bool:
        key = self.template.keys[node]
        return key in looped or not self.template.loops.get(key)

    def legal(self, parts: Parts) -> NDArray[np.bool_]:
        """Return which plans fit, with tiles that the units can compute."""
        candidates = Candidates(self.template, parts.factors)
        room = room_many(self.mappings(parts), self.template.hardware)
        legal = candidates.tiles_are_matrices() & candidates.fits_levels() & room
        return np.broadcast_to(legal, parts.count)

    def room(self, parts: Parts) -> NDArray[np.bool_]:
        """
        Return which parts hold the tiles that open loops cannot make smaller.

        Tiles below open nodes count 0 bytes; nodes with open loops have one buffer for
        each tile.
        """
        candidates = Candidates(self.template, parts.factors)
        looped = self.looped_keys(parts)
        final = {node for node in self.template.nodes if self._is_final(node, looped)}
        open_ = {
            block for block, nodes in self.template.above.items() if {*nodes} - final
        }

        def bytes_of(value: SSAValue) -> Bytes:
            return 0 if block_of(value) in open_ else candidates.bytes_of(value)

        def iterations(node: NodeOp) -> Bytes:
            return candidates.iterations(node) if node in final else 1

        spare = self.template.layout.spare_bytes(Sizes(bytes_of, iterations))
        return np.broadcast_to(np.asarray(spare >= 0), parts.count)

    @cached_property
    def size(self) -> int:
        """
        The number of mappings, also of those that do not fit.

        Loops of one iteration count too: each key has an order of all its dimensions.
        """
        if len(self.nests) > 1:
            return prod(nest.size for nest in self.nests)
        loops = self.template.loops
        dims = dict.fromkeys(dim for key in self.keys for dim in loops[key])
        orders = prod(factorial(len(loops[key])) for key in self.keys)
        return orders * prod(self._count(dim) for dim in dims)

    def _count(self, dim: str) -> int:
        """Return how many choices of factors `dim` has in all keys."""
        keys = [key for key in self.keys if dim in self.template.loops[key]]
        return self._completions(self.whole, [(key, dim) for key in keys])

    def _completions(self, parts: Parts, open_: Sequence[Factor]) -> int:
        """
        Return in how many ways the factors `open_` complete all parts together.

        At most MANY parts get the next factor at a time, so that memory is bounded.
        """
        if not open_:
            return parts.count
        count = 0
        for block in parts.blocks(MANY):
            crossed = self._dividing(self._crossed_by(block, open_[0]))
            count += self._completions(crossed, open_[1:])
        return count


@cache
def divisors(extent: int) -> tuple[int, ...]:
    """Return all divisors of an extent, smallest first."""
    small = [n for n in range(1, isqrt(extent) + 1) if extent % n == 0]
    return tuple(small) + tuple(extent // n for n in reversed(small) if n * n != extent)


def _around(parent: Mapping[int, Tile], tile: Tile) -> set[int]:
    """Return the index of `tile`, and those of all nodes around it."""
    found = {tile.index}
    while (above := parent.get(tile.index)) is not None:
        found.add(above.index)
        tile = above
    return found
