"""Liveness: whether the values alive at the same time fit each memory level."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Block, Operation, OpResult, SSAValue

from comet.dialects.arch import SystemOp
from comet.dialects.compound.dims import bytes_of, level_of
from comet.dialects.compound.pad import unmasked
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule.iter_args import folds, in_place
from comet.dialects.schedule.liveness import alive_before
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import views

Bytes: TypeAlias = "int | NDArray[np.int64] | NDArray[np.float64]"
"""A number of bytes, or an array with one for each candidate."""


@dataclass(frozen=True)
class Demand:
    """What is alive at one level while an op runs."""

    level: str
    op: Operation
    parts: Mapping[str, Bytes]
    """Bytes in one instance of the level, by value, double buffers included."""

    @property
    def total(self) -> Bytes:
        """Bytes in all."""
        total: Bytes = 0
        for size in self.parts.values():
            total = total + size
        return total


def iterations(node: NodeOp) -> int:
    """Return how often the body of `node` runs on one instance."""
    return 1 if isinstance(node, SpatialOp) else prod(node.factors.values())


@dataclass(frozen=True)
class Sizes:
    """The sizes of values and the iterations of nodes, by default those of the IR."""

    bytes_of: Callable[[SSAValue], Bytes] = bytes_of
    iterations: Callable[[NodeOp], Bytes] = iterations


def overflow(block: Block, system: SystemOp, sizes: Sizes) -> Demand | None:
    """Return the first demand that its level cannot hold, None if all fit."""
    for demand, room in _limited(block, system, sizes):
        if np.any(demand.total > room):
            return demand
    return None


def spare_bytes(block: Block, system: SystemOp, sizes: Sizes) -> Bytes:
    """Return the least free space of any level in bytes; negative if one overflows."""
    spare: Bytes = max((level.capacity or 0 for level in system.levels), default=0)
    for demand, room in _limited(block, system, sizes):
        spare = np.minimum(spare, room - demand.total)
    return spare


def _limited(
    block: Block, system: SystemOp, sizes: Sizes
) -> Iterator[tuple[Demand, int]]:
    """Yield the demands on levels below the outermost one, with their capacities."""
    capacity = {level.level_name: level.capacity for level in system.levels[1:]}
    for demand in demands(block, sizes):
        if (room := capacity.get(demand.level)) is not None:
            yield demand, room


def describe_overflow(demand: Demand, system: SystemOp) -> str:
    """Say which level overflows, by how much, and what takes most of it."""
    name, size = max(demand.parts.items(), key=lambda item: int(np.max(item[1])))
    return (
        f"level {demand.level} needs {demand.total} bytes and has "
        f"{system.level(demand.level).capacity}; the largest tile is that of %{name} "
        f"with {size} bytes"
    )


def demands(block: Block, sizes: Sizes) -> Iterator[Demand]:
    """Yield what each level holds while each op of the tile trees in a block runs."""
    yield from _Walk(sizes).block(block, {}, frozenset(), buffers=1)


Held: TypeAlias = dict[SSAValue, Bytes]
"""Bytes that each value alive takes in one instance of its level."""


@dataclass(frozen=True)
class _Walk:
    sizes: Sizes

    def block(
        self, block: Block, outer: Held, viewed: AbstractSet[SSAValue], buffers: Bytes
    ) -> Iterator[Demand]:
        """
        Yield the demands of the ops in `block`, in addition to those of outer blocks.

        `viewed` are parts of values that outer blocks hold; the first value of an
        iter_arg that is overwritten is in the memory of the result. Tiles from another
        level take two buffers if a loop repeats, so that transfers can overlap.
        """
        size_of = self.sizes.bytes_of
        own: Held = {a: buffers * size_of(a) for a in block.args if a not in viewed}
        for op, alive in alive_before(block, block.args):
            made = [r for r in op.results if r not in viewed and not _overwritten(r)]
            own |= {result: self.result(result) for result in made}
            stored = map(unmasked, (*alive, *op.results))
            held = outer | {v: own[v] for v in stored if v in own}
            if isinstance(op, NodeOp):
                inner = buffers
                if not isinstance(op, SpatialOp):
                    inner = np.minimum(self.sizes.iterations(op), 2)
                yield from self.block(op.body.block, held, views(op), inner)
            yield from _level_demands(op, held)

    def result(self, result: OpResult) -> Bytes:
        """Return the bytes of a result in one instance of its level."""
        if (end := _result_of_init_arg(result)) is not None:
            return self.result(end)
        node, size_of = result.owner, self.sizes.bytes_of
        inner = node.yielded[result.index] if isinstance(node, NodeOp) else result
        if inner is result or level_of(inner) != level_of(result):
            return size_of(result)
        if isinstance(node, SpatialOp):
            return self.result(inner) if isinstance(inner, OpResult) else size_of(inner)
        if isinstance(inner, OpResult) and isinstance(inner.owner, SpatialOp):
            return size_of(result) // np.maximum(size_of(inner), 1) * self.result(inner)
        return size_of(result)


def _result_of_init_arg(result: OpResult) -> OpResult | None:
    """Return the result of the iter_arg that `result` starts, its only use, if any."""
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
    """Return whether `result` starts an iter_arg that is updated in place."""
    end = _result_of_init_arg(result)
    if end is None:
        return False
    node = _node_of(end)
    return in_place(node)[folds(node).index(end)]


def _node_of(result: OpResult) -> NodeOp:
    assert isinstance(result.owner, NodeOp)
    return result.owner


def _level_demands(op: Operation, held: Held) -> Iterator[Demand]:
    by_level: dict[str, dict[str, Bytes]] = {}
    for value, size in held.items():
        parts = by_level.setdefault(level_of(value) or "", {})
        name = value.name_hint or "unnamed"
        parts[name] = parts.get(name, 0) + size
    for level, parts in by_level.items():
        yield Demand(level, op, parts)
