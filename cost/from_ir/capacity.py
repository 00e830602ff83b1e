"""Liveness: whether the values alive at the same time fit each memory level."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Block, Operation, OpResult, SSAValue

from comet.dialects.arch import SystemOp
from comet.dialects.compound.copied import origin_of
from comet.dialects.compound.dims import bytes_of, level_of
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.iter_args import folds, in_place
from comet.dialects.schedule.liveness import alive_before
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import views

Bytes: TypeAlias = "int | NDArray[np.int64] | NDArray[np.float64]"
"""A number of bytes, or an array with one for each candidate."""


@dataclass(frozen=True)
class Demand:
    """The bytes that one level holds while an op runs."""

    level: str
    op: Operation
    values: Mapping[str, Bytes]
    """Bytes in one instance of the level, by value, double buffers included."""

    @property
    def total(self) -> Bytes:
        """The sum of all values, bytes."""
        total: Bytes = 0
        for size in self.values.values():
            total = total + size
        return total


def iterations(node: NodeOp) -> int:
    """Return how often the body of `node` runs on one instance."""
    return 1 if isinstance(node, SpatialOp) else node.trip_count


@dataclass(frozen=True)
class Sizes:
    """The sizes of values and the iterations of nodes, by default those of the IR."""

    bytes_of: Callable[[SSAValue], Bytes] = bytes_of
    iterations: Callable[[NodeOp], Bytes] = iterations


def overflow(block: Block, system: SystemOp, sizes: Sizes) -> Demand | None:
    """Return the first demand that its level cannot hold, None if all fit."""
    capacity = _capacities(system)
    for demand in demands(block, sizes):
        if np.any(demand.total > capacity.get(demand.level, np.inf)):
            return demand
    return None


@dataclass(frozen=True)
class Stored:
    """A value that is stored at a memory level."""

    value: SSAValue
    loop: NodeOp | None = None
    """The temporal node that transfers it as a tile in each iteration, if one does."""

    def bytes(self, sizes: Sizes) -> Bytes:
        """
        Return the bytes in one instance of the level.

        Tiles that a loop transfers in several iterations have two buffers (double
        buffering).
        """
        if isinstance(self.value, OpResult):
            return _result_bytes(self.value, sizes)
        size = sizes.bytes_of(self.value)
        if self.loop is None:
            return size
        return np.minimum(sizes.iterations(self.loop), 2) * size


@dataclass(frozen=True)
class Moment:
    """The values that one level holds while an op runs, without sizes."""

    level: str
    op: Operation
    stored: tuple[Stored, ...]

    def demand(self, size_of: Callable[[Stored], Bytes]) -> Demand:
        """Return the bytes by value, given those of each stored value."""
        found: dict[str, Bytes] = {}
        for stored in self.stored:
            name = stored.value.name_hint or "unnamed"
            found[name] = found.get(name, 0) + size_of(stored)
        return Demand(self.level, self.op, found)


@dataclass(frozen=True)
class Layout:
    """
    The sets of values that levels hold at the same time, without sizes.

    For the levels below the outermost one. One walk over the tile trees gives the
    layout for all sizes.
    """

    limits: tuple[tuple[frozenset[Stored], int], ...]
    """Values alive at the same time, and the capacity of their level, bytes."""
    largest: int
    """The bytes of the largest level."""

    @classmethod
    def of(cls, block: Block, system: SystemOp) -> Layout:
        """Return the layout of the tile trees in a block, without subsets of sets."""
        capacity = _capacities(system)
        alive: dict[str, set[frozenset[Stored]]] = {level: set() for level in capacity}
        for moment in moments(block):
            if moment.level in alive:
                alive[moment.level].add(frozenset(moment.stored))
        limits = (
            (stored, capacity[level])
            for level, every in alive.items()
            for stored in every
            if not any(stored < other for other in every)
        )
        largest = max((level.capacity or 0 for level in system.levels), default=0)
        return cls(tuple(limits), largest)

    def spare_bytes(self, sizes: Sizes) -> Bytes:
        """Return the least free space in bytes; negative if a level overflows."""
        every = frozenset[Stored]().union(*(stored for stored, _ in self.limits))
        size_of = {value: value.bytes(sizes) for value in every}
        spare: Bytes = self.largest
        for stored, room in self.limits:
            total: Bytes = 0
            for value in stored:
                total = total + size_of[value]
            spare = np.minimum(spare, room - total)
        return spare


def _capacities(system: SystemOp) -> dict[str, int]:
    """Return the capacity of each level below the outermost one that has a limit."""
    found = ((level.level_name, level.capacity) for level in system.levels[1:])
    return {name: capacity for name, capacity in found if capacity is not None}


def describe_overflow(demand: Demand, system: SystemOp) -> str:
    """Return a clause: the level that overflows, its bytes, and its largest value."""
    name, size = max(demand.values.items(), key=lambda item: int(np.max(item[1])))
    return (
        f"level {demand.level} needs {demand.total} bytes and has "
        f"{system.level(demand.level).capacity}; the largest tile is that of %{name} "
        f"with {size} bytes"
    )


def demands(block: Block, sizes: Sizes) -> Iterator[Demand]:
    """Yield the demand on each level, for each op of the tile trees in a block."""
    size_of = cache(partial(Stored.bytes, sizes=sizes))
    for moment in moments(block):
        yield moment.demand(size_of)


def moments(block: Block) -> Iterator[Moment]:
    """Yield the live values of each level, for each op of the tile trees in a block."""
    yield from _moments(block, {}, frozenset(), None)


def _moments(
    block: Block,
    outer: Mapping[SSAValue, Stored],
    viewed: AbstractSet[SSAValue],
    loop: NodeOp | None,
) -> Iterator[Moment]:
    """
    Yield the moments of the ops in `block`; `outer` are the values of outer blocks.

    `viewed` are views of these. The init arg of an iter_arg that is updated in place
    shares the memory of the loop's result.
    """
    local: dict[SSAValue, Stored]
    local = {a: Stored(a, loop) for a in block.args if a not in viewed}
    for op, alive in alive_before(block, block.args):
        results = [r for r in op.results if r not in viewed and not _overwritten(r)]
        local |= {result: Stored(result) for result in results}
        stored = map(origin_of, (*alive, *op.results))
        held = {**outer, **{v: local[v] for v in stored if v in local}}
        if isinstance(op, NodeOp):
            inner = loop if isinstance(op, SpatialOp) else op
            yield from _moments(op.body.block, held, views(op), inner)
        by_level: dict[str, list[Stored]] = {}
        for value, item in held.items():
            by_level.setdefault(level_of(value) or "", []).append(item)
        for level, stored_there in by_level.items():
            yield Moment(level, op, tuple(stored_there))


def _result_bytes(result: OpResult, sizes: Sizes) -> Bytes:
    """Return the bytes of a result in one instance of its level."""
    if (end := _result_of_init_arg(result)) is not None:
        return _result_bytes(end, sizes)
    node, size_of = result.owner, sizes.bytes_of
    inner = node.yielded[result.index] if isinstance(node, NodeOp) else result
    if inner is result or level_of(inner) != level_of(result):
        return size_of(result)
    if not isinstance(inner, OpResult):
        return size_of(inner) if isinstance(node, SpatialOp) else size_of(result)
    if isinstance(node, SpatialOp):
        return _result_bytes(inner, sizes)
    if isinstance(inner.owner, SpatialOp):
        tiles = size_of(result) // np.maximum(size_of(inner), 1)
        return tiles * _result_bytes(inner, sizes)
    return size_of(result)


def _result_of_init_arg(result: OpResult) -> OpResult | None:
    """Return the loop's result whose init arg `result` is, its only use, if any."""
    for use in result.uses:
        node, position = use.operation, use.index
        if (
            isinstance(node, NodeOp)
            and position >= len(node.ins)
            and result.has_one_use()
        ):
            return folds(node)[position - len(node.ins)]
    return None


def _overwritten(result: OpResult) -> bool:
    """Return whether `result` is the init arg of an iter_arg updated in place."""
    end = _result_of_init_arg(result)
    if end is None:
        return False
    node = end.owner
    assert isinstance(node, NodeOp)
    return in_place(node)[folds(node).index(end)]
