"""The values in registers at each op of a GPU kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from comet.cost.from_ir.bodies import Body
from comet.cost.from_ir.memory import vector_width
from comet.cost.from_ir.products import tile_bytes
from comet.cost.from_ir.register_tiles import (
    RegisterTiles,
    accumulators,
    broadcast_during,
    continued,
    kept_vectors,
)
from comet.cost.from_ir.row_points import (
    doubled_values,
    kept_values,
    rounded_tiles,
)
from comet.cost.from_ir.scatters import addresses
from comet.cost.gpu.device import Device
from comet.cost.gpu.terms import DividedEpilogue, Operands, Point, Term
from comet.dialects.compound.dims import level_of
from comet.dialects.schedule import TemporalOp
from comet.dialects.schedule.liveness import alive_before
from comet.dialects.schedule.transfers import stores

Kept: TypeAlias = "Mapping[SSAValue, tuple[str, ...]]"
"""Vectors that loops keep in the layout of a product, each with these loops."""

NOTHING_KEPT: Kept = {}


class RegisterPoints:
    """
    Finds what is alive in registers at each op of a kernel.

    `level` is that of registers; `operands` are those of its contractions, and
    `divided` the ops of an epilogue that subtiles can divide. `with_products`: the
    kernel, or a fold in it, has contractions. `whole`: see `RegisterTiles`; of a tile
    that is rounded to bf16, the fraction `rounded` is then in registers twice.
    """

    def __init__(
        self,
        level: str,
        operands: Mapping[Operation, Operands],
        divided: Mapping[Operation, DividedEpilogue],
        *,
        with_products: bool,
        whole: bool,
        rounded: float = 0.0,
    ):
        self._level = level
        self._operands = operands
        self._divided = divided
        self._with_products = with_products
        self._whole = whole
        self._rounded = rounded
        self._tiles = RegisterTiles(with_products=with_products, whole=whole)
        self._held = cache(self._held_bytes)

    def of(
        self, body: Body, outer: Sequence[SSAValue] = (), kept: Kept = NOTHING_KEPT
    ) -> Iterator[Point]:
        """
        Yield the points of a body.

        `outer` are the values alive in registers around it, and `kept` the vectors that
        loops around it keep.
        """
        kept = self._kept(body, kept)
        block = body.node.body.block
        tiles = (arg for arg in block.args if isinstance(arg.type, TensorType))
        entering = (*outer, *tiles, *accumulators(body.node))
        always = tuple(kept_values(body)) if self._whole else ()
        doubled = self._bytes(doubled_values(body, always))
        for op, living in alive_before(block, entering, body.late):
            alive = tuple(dict.fromkeys((*always, *living)))
            if (operands := self._operands.get(op)) is not None:
                yield self._before(body, op, alive, kept, operands)
            held = (*self._bytes(self._tiles.during(op, alive)), *doubled)
            if self._whole and self._rounded:
                held += tuple(rounded_tiles(op, self._rounded))
            vectors, epilogue = self._vectors(op, kept), self._divided.get(op)
            yield Point(held, vectors, operands, epilogue=epilogue)
            if (inner := body.inner.get(op)) is not None:
                passed = {*op.operands, *continued(body.node, inner.node)}
                around = [value for value in alive if value not in passed]
                yield from self.of(inner, around, kept)

    def _kept(self, body: Body, kept: Kept) -> Kept:
        """
        Return the vectors that a node and the loops around it keep.

        Each comes with these loops: it is kept if one of them has several iterations.
        Without loops it is always kept: programs of a group have several tiles.
        """
        if not isinstance(body.node, TemporalOp) or not self._with_products:
            return kept
        found = dict(kept)
        for value in kept_vectors(body.node):
            around = found.get(value)
            if body.loop is None or around == ():
                found[value] = ()
            else:
                found[value] = (*(around or ()), *body.node.factors)
        return found

    def _vectors(self, op: Operation, kept: Kept) -> tuple[Term, ...]:
        """Return the vectors in the layout of a product during an op."""
        vectors = tuple(broadcast_during(op))
        others = [value for value in kept if value not in vectors]
        held = (tile_bytes(value, kept[value]) for value in others)
        return (*self._bytes(vectors), *held)

    def _before(
        self,
        body: Body,
        product: Operation,
        alive: Sequence[SSAValue],
        kept: Kept,
        operands: Operands,
    ) -> Point:
        """Return the values in registers just before a contraction in a body."""
        held = self._tiles.before(product, alive)
        sums = set(accumulators(body.node))
        other = self._bytes(value for value in held if value not in sums)
        summed = self._bytes(value for value in held if value in sums)
        vectors = self._vectors(product, kept)
        return Point(other, vectors, operands, before=True, accumulator=summed)

    def _bytes(self, tiles: Iterable[SSAValue]) -> tuple[Term, ...]:
        """Return the bytes of the tiles that are in registers."""
        held = [self._held(tile) for tile in tiles]
        return tuple([term for term in held if term is not None])

    def _held_bytes(self, tile: SSAValue) -> Term | None:
        """Return the bytes of a tile in registers, None if it is not there."""
        return tile_bytes(tile) if level_of(tile) == self._level else None


def narrow_loads(bodies: Iterable[Body], gpu: Device) -> Iterator[tuple[Term, ...]]:
    """Yield the registers for addresses of narrow loads, in each body, bytes."""
    most, rules = gpu.memory.load_bytes, gpu.triton.copies
    for body in bodies:
        found = (
            addresses(load.tile, vector_width(load.outer, most), body.loops, rules)
            for load in body.loads
        )
        yield tuple(term for term in found if term is not None)


def accessed_tiles(bodies: Iterable[Body]) -> Iterator[tuple[Term, ...]]:
    """Yield the tiles that each loop loads and stores, bytes."""
    for body in bodies:
        if body.loop is not None:
            borders = (*body.loads, *stores(body.loop))
            yield tuple(tile_bytes(border.tile, body.loops) for border in borders)
