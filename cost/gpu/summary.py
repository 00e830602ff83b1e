"""
The summary of a GPU kernel: its work as a function of block sizes.

It gives traffic, operations, and the tiles that registers and shared memory hold at the
same time. Block sizes are numbers, or arrays with one element per choice.
`from_ir/kernel.py` reads a summary from a tile tree.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, wraps
from math import prod
from typing import Concatenate, ParamSpec, Self, TypeVar, cast

import numpy as np

from comet.cost.gpu.bounded import Bound, BoundedLoop, Trips, busiest
from comet.cost.gpu.contractions import Contractions
from comet.cost.gpu.hoisting import loops_around, same_in_all_tiles
from comet.cost.gpu.kernel_facts import (
    LiveTiles,
    Moves,
    Nest,
    Synchronization,
    VectorWork,
)
from comet.cost.gpu.launch_order import (
    l2_swizzle,
    successive_programs,
    tiles_in_order,
)
from comet.cost.gpu.peaks import peak_points
from comet.cost.gpu.terms import (
    Blocks,
    Point,
    Term,
    Tiles,
    Wait,
)
from comet.cost.reals import Real, Truth, any_of, choose, longest, product, total

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Evaluated(Tiles):
    """The blocks of one summary, with a cache of the results of its formulas."""

    def __init__(self, summary: KernelSummary, blocks: Blocks):
        super().__init__(blocks)
        self.summary = summary
        self.known: dict[Hashable, object] = {}

    @classmethod
    def of(cls, summary: KernelSummary, blocks: Blocks) -> Self:
        """Return blocks that cache the results of the formulas of `summary`."""
        if isinstance(blocks, cls) and blocks.summary is summary:
            return blocks
        return cls(summary, blocks)

    def once(self, key: Hashable, find: Callable[[], Result]) -> Result:
        """Return the cached result for `key`, at the first call that of `find`."""
        if key not in self.known:
            self.known[key] = find()
        return cast("Result", self.known[key])


def _once(
    formula: Callable[Concatenate[KernelSummary, Arguments], Result],
) -> Callable[Concatenate[KernelSummary, Arguments], Result]:
    """Cache the results of a formula in its last argument, if that is `Evaluated`."""

    @wraps(formula)
    def once(
        self: KernelSummary, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        blocks = args[-1]
        if not isinstance(blocks, Evaluated) or blocks.summary is not self:
            return formula(self, *args, **kwargs)
        key, known = (formula, *args[:-1]), blocks.known
        if key not in known:
            known[key] = formula(self, *args, **kwargs)
        return cast("Result", known[key])

    return once


@dataclass(frozen=True)
class KernelSummary:
    """The work of one kernel, by block sizes."""

    products: Contractions
    nest: Nest
    live: LiveTiles
    moves: Moves = Moves()  # noqa: RUF009  # it is frozen
    vector: VectorWork = VectorWork()  # noqa: RUF009
    sync: Synchronization = Synchronization()  # noqa: RUF009

    @cached_property
    def peaks(self) -> tuple[Point, ...]:
        """The points that may need most registers."""
        return peak_points(self.live.points)

    @cached_property
    def tiles_alive(self) -> tuple[Point, ...]:
        """The points that may have most bytes of tiles, with their tiles alone."""
        tiles = (Point(point.tiles, epilogue=point.epilogue) for point in self.peaks)
        return peak_points(tiles)

    @_once
    def padded(self, blocks: Blocks) -> Blocks:
        """Return blocks large enough for `tl.dot`, as `pad-blocks` makes them."""
        dims = (self.products.dims - self.products.batch) & blocks.keys()
        least = self.products.least_extent
        if all(np.all(np.greater_equal(blocks[dim], least)) for dim in dims):
            return blocks
        larger = {
            dim: np.maximum(size, least) if dim in dims else size
            for dim, size in blocks.items()
        }
        return Evaluated(self, larger)

    @_once
    def trips(self, dim: str, blocks: Blocks) -> Real:
        """Return the blocks along a dimension; if a group splits it, the programs."""
        if dim in self.nest.ctas:
            return self.nest.ctas[dim]
        return np.ceil(self.nest.extents[dim] / blocks[dim])

    @_once
    def iterated(self, dim: str, blocks: Blocks) -> Real:
        """
        Return the iterations of a loop that count for the time, per program.

        These are the trips, unless a mask bounds the loop: then the mean of the
        programs that the busiest multiprocessor runs, or of the tiles of the busiest
        persistent program.
        """
        order, bound = self.nest.order, self.nest.bounds.get(dim)
        share = self.programs(blocks) / self.nest.multiprocessors
        if order.persistent and bound is not None and bound.rows in self.nest.grid:
            return self._busiest(dim, bound, blocks)
        trips = self._trips_run(dim, blocks)
        if bound is not None and bound.since != (bound.rows in order.reversed):
            return trips.served_longest_first(np.ceil(share), share)
        return trips.served(np.ceil(share))

    @_once
    def _trips_run(self, dim: str, blocks: Blocks) -> Trips:
        """Return the iterations of a loop that run, which a mask may bound."""
        bound = self.nest.bounds.get(dim)
        if bound is None:
            trips = self.trips(dim, blocks)
            mean = self.nest.seen.get(dim, 1.0) * trips
            if self.nest.shares is not None and dim in self.nest.shares.loops:
                mean = trips = self.nest.shares.tiles_of_run * mean
            return Trips(mean, trips, 0.0, mean)
        successive = self.successive(bound.rows, blocks)
        sizes = blocks[bound.rows], blocks[dim]
        loop = self._bounded(dim, bound)
        return loop.trips(*sizes, successive, self.nest.multiprocessors)

    def _bounded(self, dim: str, bound: Bound) -> BoundedLoop:
        """Return a loop that a mask bounds."""
        rows, extent = self.nest.extents[bound.rows], self.nest.extents[dim]
        return BoundedLoop(rows, extent, bound.offset, bound.since, bound.first)

    def _busiest(self, dim: str, bound: Bound, blocks: Blocks) -> float:
        """
        Return the iterations for each tile of the persistent program with most.

        Program p has the tiles p, p + `persistent`, and so on, in the order of their
        start. Blocks are no arrays.
        """
        trips = [int(self.trips(loop, blocks)) for loop in self.nest.grid]
        index, swizzle = self.nest.grid.index(bound.rows), int(self.swizzle(blocks))
        tiles = tiles_in_order(trips, index, swizzle)
        if bound.rows in self.nest.order.reversed:
            tiles = trips[index] - 1 - tiles
        sizes = int(blocks[bound.rows]), int(blocks[dim])
        lengths = self._bounded(dim, bound).by_tile(*sizes)[tiles]
        return busiest(lengths, self.nest.order.persistent)

    def seen_of(self, tensor: Term) -> float:
        """Return the mean fraction of a tensor that loops over its dimensions read."""
        return prod(self.nest.seen.get(dim, 1.0) for dim in tensor.dims)

    @_once
    def successive(self, dim: str, blocks: Blocks) -> Real:
        """Return how many successive programs have the same tile of a dimension."""
        if dim not in self.nest.grid:
            return 1.0
        trips = [self.trips(loop, blocks) for loop in self.nest.grid]
        index, swizzle = self.nest.grid.index(dim), self.swizzle(blocks)
        return successive_programs(trips, index, swizzle)

    @_once
    def swizzle(self, blocks: Blocks) -> Real:
        """Return the L2 swizzle, 1 for none."""
        if self.nest.group or not self.products.operations:
            return 1.0
        if self.nest.order.swizzle:
            return float(self.nest.order.swizzle)
        trips = [self.trips(dim, blocks) for dim in self.nest.grid]
        return l2_swizzle(trips, self.nest.multiprocessors)

    @_once
    def programs(self, blocks: Blocks) -> Real:
        """Return the number of programs, or of tiles, of which programs do several."""
        if self.nest.shares is None:
            return product(self.trips(dim, blocks) for dim in self.nest.grid)
        listed = (self.nest.shares.part, self.nest.shares.sequence)
        lists = [dim for dim in self.nest.grid if dim not in listed]
        return self.nest.shares.runs * product(self.trips(dim, blocks) for dim in lists)

    def per_program(self, terms: Sequence[Term], blocks: Blocks) -> Real:
        """Return the sum of terms over all iterations of one program."""
        return total(
            term.per_tile(blocks)
            * self.turns(term.loops)
            * self._computed(term.loops, term.mask, blocks)
            for term in terms
        )

    def turns(self, loops: Sequence[str]) -> float:
        """
        Return how often a program runs a nest of loops.

        Once for each sequence of its run, if programs share a list of tiles; once
        otherwise. Loops over the tiles of sequences count the tiles of the whole run.
        """
        if self.nest.shares is None or self.nest.shares.loops.intersection(loops):
            return 1.0
        return self.nest.shares.sequences_of_run

    @_once
    def _computed(self, loops: tuple[str, ...], mask: str, blocks: Blocks) -> Real:
        """Return how often a term is computed; a mask only in masked iterations."""
        return product(
            self._trips_run(dim, blocks).masked
            if dim == mask and dim in self.nest.unmasked
            else self.iterated(dim, blocks)
            for dim in loops
        )

    def moved(self, blocks: Blocks) -> Real:
        """Return the mean over all programs of the bytes that one loads and stores."""
        ids = (
            t.per_tile(blocks) * self._times_loaded(t, blocks) for t in self.moves.ids
        )
        tiles = total(self.moved_by_loads(blocks))
        return tiles + total(ids) + total(self.moved_by_stores(blocks))

    @_once
    def moved_by_loads(self, blocks: Blocks) -> Sequence[Real]:
        """Return the bytes that one program moves by each load."""
        return [
            term.per_tile(blocks) * self._times_loaded(term, blocks)
            for term in self.moves.loads
        ]

    @_once
    def moved_by_stores(self, blocks: Blocks) -> Sequence[Real]:
        """Return the bytes that one program moves by each store."""
        return [
            term.per_tile(blocks)
            * self.turns(term.loops)
            * product(self._trips_run(dim, blocks).mean for dim in term.loops)
            for term in self.moves.stores
        ]

    def uneven(self, blocks: Blocks) -> Real:
        """
        Return by how much the busiest multiprocessor exceeds the mean of loaded bytes.

        Per program, if lengths differ, see `iterated`.
        """
        return total(
            tile.per_tile(blocks)
            * (
                self._times_loaded(tile, blocks, busiest=True)
                - self._times_loaded(tile, blocks)
            )
            for tile in self.moves.loads
            if self.nest.seen.keys() & set(tile.loops)
        )

    def _times_loaded(
        self, tile: Term, blocks: Blocks, *, busiest: bool = False
    ) -> Real:
        """
        Return how often a program loads a tile, which is hoisted where possible.

        The mean over all programs, or `busiest`, see `uneven`.
        """
        times: Real = self.turns(())
        if tile.repeated:
            times = times * self.is_looped(tile.repeated, blocks)
        loops = zip(tile.loops, self._loops_around(tile, blocks), strict=True)
        for dim, (_, around) in reversed(list(loops)):
            if self.turns((dim,)) < self.turns(()):
                times = times * choose(around, 1 / self.turns(()), 1.0)
            run = self._trips_run(dim, blocks).mean
            if busiest and dim in self.nest.seen:
                run = self.iterated(dim, blocks)
            times = times * choose(around, run, 1.0)
        return times

    @_once
    def _loops_around(self, tile: Term, blocks: Blocks) -> list[tuple[Real, Truth]]:
        """Return the trips of each loop, and whether it is around the tile's copy."""
        trips = [self.trips(dim, blocks) for dim in tile.loops]
        loops = list(zip(tile.loops, trips, strict=True))
        around = loops_around(tile.dims, loops, late=tile.late)
        return list(zip(trips, around, strict=True))

    @_once
    def is_invariant(self, tile: Term, blocks: Blocks) -> Real:
        """
        Return 1 if a tile is loop-invariant, else 0.

        It is if the innermost loop of more than one trip does not change it.
        """
        invariant = any_of(
            np.greater(trips, 1) & np.logical_not(around)
            for trips, around in self._loops_around(tile, blocks)
        )
        return np.where(invariant, 1.0, 0.0)

    def is_stationary(self, tile: Term, blocks: Blocks) -> Real:
        """Return 1 if a persistent program can load a tile once, else 0."""
        grid = [(dim, self.trips(dim, blocks)) for dim in self.nest.grid]
        same = same_in_all_tiles(tile.dims, grid)
        for _, around in self._loops_around(tile, blocks):
            same = np.logical_and(same, np.logical_not(around))
        return np.where(same, 1.0, 0.0)

    def iterations(self, blocks: Blocks) -> Real:
        """Return how often one program waits for loads."""
        return self._waits(lambda loops: True, blocks)

    def _waits(self, counts: Callable[[tuple[str, ...]], bool], blocks: Blocks) -> Real:
        """Return how often one program waits in the loops that count."""

        def times(loops: tuple[str, ...]) -> Real:
            iterated = (self.iterated(dim, blocks) for dim in loops)
            return self.turns(loops) * product(iterated)

        waits = [wait for wait in self.sync.waits if counts(wait.loops)]
        return total(times(wait.loops) for wait in waits) - total(
            times(wait.loops) * (1 - self.is_looped(wait.repeated, blocks))
            for wait in waits
            if wait.repeated
        )

    def pipelines(self, blocks: Blocks) -> Real:
        """
        Return how often one program starts a loop that loads ahead.

        That is the innermost of several iterations around a point where it waits.
        """
        starts = [self._starts(wait, blocks) for wait in self.sync.waits]
        turns = self.turns(()) * (1 + len(self.nest.unmasked))
        return longest((1.0, *starts)) * turns

    def exposed(self, blocks: Blocks) -> Real:
        """Return how often one program waits outside of loops of contractions."""
        return self._waits(lambda loops: loops not in self.products.loops, blocks)

    def _starts(self, wait: Wait, blocks: Blocks) -> Real:
        """Return how often the innermost loop of several iterations is started."""
        outer = len(wait.loops) - wait.coalesced
        starts: Real = 1.0
        inside = self.is_looped(wait.loops[outer:], blocks)
        for dim in reversed(wait.loops[:outer]):
            trips = self.iterated(dim, blocks)
            starts = starts * choose(np.greater(inside, 0), trips, 1.0)
            inside = np.maximum(inside, np.greater(self.trips(dim, blocks), 1) * 1.0)
        return starts

    @_once
    def is_looped(self, loops: tuple[str, ...], blocks: Blocks) -> Real:
        """Return 1 if one of the loops has several iterations, else 0."""
        trips = product(self.trips(dim, blocks) for dim in loops)
        return np.where(np.greater(trips, 1), 1.0, 0.0)

    def peak(
        self,
        groups: Sequence[Sequence[Term]],
        blocks: Blocks,
        copies: Real = 1.0,
        invariant: Real = 1.0,
        stationary: Real | None = None,
    ) -> Real:
        """
        Return the largest sum of terms that are alive at the same time, bytes.

        There are `copies` of each tile, but `invariant` of a loop-invariant one, and
        `stationary` of one that a persistent program loads once, if that is given.
        """

        @cache
        def alive(tile: Term) -> Real:
            still = self.is_invariant(tile, blocks)
            single = (np.equal(self.trips(dim, blocks), 1) for dim in tile.inner)
            size = tile.per_tile(blocks) * product(truth * 1.0 for truth in single)
            count = still * invariant + (1 - still) * copies
            if stationary is not None:
                kept = self.is_stationary(tile, blocks)
                count = kept * stationary + (1 - kept) * count
            return size * count

        return longest(total(map(alive, terms)) for terms in groups)
