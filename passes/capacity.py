"""Whether the values that are alive at the same time fit each memory level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.utils.exceptions import PassFailedException

from comet.dialects.arch import SystemOp
from comet.dialects.compound_dims import element_type_of, extents_of, level_of
from comet.dialects.schedule import SpatialOp
from comet.dialects.schedule_node import NodeOp


@dataclass(frozen=True)
class Demand:
    """What is alive at one level while an op runs."""

    level: str
    op: Operation
    parts: Mapping[str, int]
    """Bytes in one instance of the level, by value, double buffers included."""

    @property
    def total(self) -> int:
        """Bytes in all."""
        return sum(self.parts.values())


def value_bytes(value: SSAValue) -> int:
    """Return the size of a value, all its elements."""
    bits = element_type_of(value).bitwidth
    return -(-prod(extents_of(value).values()) * bits // 8)


def check_capacity(func: FuncOp, system: SystemOp) -> None:
    """
    Check every level below the outermost one against the values alive in it.

    Raises PassFailedException naming the level, the largest tensor, and the bytes.
    """
    capacity = {level.level_name: level.capacity for level in system.levels[1:]}
    for demand in demands(func):
        room = capacity.get(demand.level)
        if room is None or demand.total <= room:
            continue
        name, size = max(demand.parts.items(), key=lambda item: item[1])
        raise PassFailedException(
            f"tile: level {demand.level} needs {demand.total} bytes and has {room}; "
            f"the largest tile is that of %{name} with {size} bytes: raise the factors "
            f"above {demand.level}, or fuse less"
        )


def demands(func: FuncOp) -> Iterator[Demand]:
    """Yield what each level holds while each op of the tile trees in `func` runs."""
    yield from _block_demands(func.body.block, {}, frozenset(), repeats=False)


Held: TypeAlias = dict[SSAValue, int]
"""Bytes that each value alive takes in one instance of its level."""


def _block_demands(
    block: Block, outer: Held, views: AbstractSet[SSAValue], repeats: bool
) -> Iterator[Demand]:
    """
    Yield the demands of the ops in `block`, on top of what outer blocks hold.

    A value is alive from its definition to its last use in the block. `views` are part
    of values that outer blocks hold already. Tiles that come in from another level
    while a loop repeats take two buffers, so that the next transfer can overlap.
    """
    last_use = _last_uses(block)
    copies = 2 if repeats else 1
    alive: Held = {a: copies * value_bytes(a) for a in block.args if a not in views}
    for op in block.ops:
        alive |= {r: _result_bytes(r) for r in op.results if r not in views}
        held = outer | alive
        if isinstance(op, NodeOp):
            again = (
                repeats if isinstance(op, SpatialOp) else prod(op.factors.values()) > 1
            )
            yield from _block_demands(op.body.block, held, _views(op), again)
        yield from _level_demands(op, held)
        for value in [value for value in alive if last_use.get(value) is op]:
            del alive[value]


def _iterations(op: NodeOp) -> int:
    return prod(op.factors.values())


def _last_uses(block: Block) -> dict[SSAValue, Operation]:
    last: dict[SSAValue, Operation] = {}
    for op in block.ops:
        last |= dict.fromkeys(op.operands, op)
    return last


def _views(node: NodeOp) -> frozenset[SSAValue]:
    """Return what in the body of `node` is part of one of its operands or results."""
    outer = (*node.ins, *node.initial_carries(), *node.outs)
    inner = (*node.body.block.args, *node.yielded)
    return frozenset(
        tile
        for whole, tile in zip(outer, inner, strict=True)
        if level_of(whole) == level_of(tile)
    )


def _result_bytes(result: OpResult) -> int:
    """Return the bytes of a result in one instance of its level."""
    if isinstance(node := result.owner, SpatialOp):
        share = node.yielded[result.index]
        if level_of(share) == level_of(result):
            return value_bytes(share)
    return value_bytes(result)


def _level_demands(op: Operation, held: Held) -> Iterator[Demand]:
    by_level: dict[str, dict[str, int]] = {}
    for value, size in held.items():
        parts = by_level.setdefault(level_of(value) or "", {})
        name = value.name_hint or "unnamed"
        parts[name] = parts.get(name, 0) + size
    for level, parts in by_level.items():
        yield Demand(level, op, parts)
