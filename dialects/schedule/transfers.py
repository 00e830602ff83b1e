"""
The transfers of a tile tree: the only definition of what moves between memory levels.

A value crosses the border of a node as a tile. If the tile is at another memory level,
the node transfers it; otherwise the tile is a view of the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from comet.dialects.compound.dims import level_of
from comet.dialects.schedule.copy import CopyOp
from comet.dialects.schedule.node import NodeOp

Crossing: TypeAlias = Literal["in", "iter_arg", "out"]
"""How a value crosses a border: as an operand, as an init arg, as a result."""


@dataclass(frozen=True)
class Border:
    """A value at the border of a node, and its tile in the body."""

    outer: SSAValue
    tile: SSAValue
    crossing: Crossing

    @property
    def outer_level(self) -> str:
        """The memory level of the value outside, empty if it has none yet."""
        return level_of(self.outer) or ""

    @property
    def tile_level(self) -> str:
        """The memory level of the tile in the body, empty if it has none yet."""
        return level_of(self.tile) or ""

    @property
    def is_transfer(self) -> bool:
        """Whether the level changes; otherwise the tile is a view of the value."""
        return self.outer_level != self.tile_level


def borders(node: NodeOp) -> Iterator[Border]:
    """Yield the values at the border of `node`: operands, iter_args, then results."""
    yield from _entering(node)
    for outer, tile in zip(node.init_args(), node.region_iter_args, strict=True):
        yield Border(outer, tile, "iter_arg")
    yield from _leaving(node)


def _entering(node: NodeOp) -> Iterator[Border]:
    ins = node.ins
    for outer, tile in zip(ins, node.body.block.args[: len(ins)], strict=True):
        yield Border(outer, tile, "in")


def _leaving(node: NodeOp) -> Iterator[Border]:
    for outer, tile in zip(node.outs, node.yielded, strict=True):
        yield Border(outer, tile, "out")


def loads(node: NodeOp) -> Iterator[Border]:
    """Yield the operands that `node` transfers to the level of their tiles."""
    return (border for border in _entering(node) if border.is_transfer)


def stores(node: NodeOp) -> Iterator[Border]:
    """Yield the results that `node` transfers from the level of their tiles."""
    return (border for border in _leaving(node) if border.is_transfer)


def transfers(node: NodeOp) -> Iterator[Border]:
    """Yield the borders at which `node` moves a tile between levels, loads first."""
    yield from loads(node)
    yield from stores(node)


def views(node: NodeOp) -> frozenset[SSAValue]:
    """Return the tiles in the body of `node` that are views of a value outside."""
    return frozenset(b.tile for b in borders(node) if not b.is_transfer)


def verify_copies(root: NodeOp) -> None:
    """Raise VerifyException if a tree has copies, and a border of it transfers."""
    if not any(isinstance(op, CopyOp) for op in root.walk()):
        return
    for node in root.walk():
        for border in borders(node) if isinstance(node, NodeOp) else ():
            if border.is_transfer:
                raise VerifyException(
                    f"'{node.name}' op turns {border.outer.type} into "
                    f"{border.tile.type} at its border, in a tree with copies; write a "
                    "schedule.copy"
                )
