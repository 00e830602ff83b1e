"""
What a GPU kernel does as a function of its block sizes: read once from the tile tree.

`summarize` walks the tree of one grid node; the summary answers traffic, work and
occupancy of registers and shared memory for any block sizes, without touching IR.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from comet.cost.reals import Real, longest, product, total
from comet.dialects.arch.gpu import rate_name
from comet.dialects.compound import ContractOp, FillOp, MapKind, MapOp, ReduceOp
from comet.dialects.compound.dims import (
    element_type_of,
    extents_of,
    level_of,
    names_of,
)
from comet.dialects.schedule import SpatialOp, TemporalOp
from comet.dialects.schedule.attributes import Combiner
from comet.dialects.schedule.node import NodeOp
from comet.dialects.schedule.transfers import loads, stores
from comet.passes.analysis.gpu_levels import GpuLevels
from comet.passes.analysis.reduction_loops import iteration_dims
from comet.passes.schedule.tile.gpu.rows_in_memory import bytes_at_a_time

REGISTER = 4
"""Bytes of a register."""

LARGE_PIECE = 8
"""From so many bytes on, what is loaded at a time needs no registers to speak of."""

COPIED_PIECE = 4
"""From so many bytes on, what is loaded goes to shared memory by itself."""

MIN_DOT_BLOCK = 16
"""The smallest extent that a tensor core instruction takes along each dimension."""

VECTOR_WEIGHTS = {
    MapKind.EXP: 8,
    MapKind.LOG: 8,
    MapKind.SQRT: 8,
    MapKind.RSQRT: 8,
    MapKind.TANH: 16,
    MapKind.ERF: 16,
    MapKind.DIV: 8,
}
"""Cost of a map relative to an addition: special functions have fewer lanes."""

Blocks: TypeAlias = "Mapping[str, Real]"
"""The block size (elements) of each dimension of a kernel; arrays for many choices."""


def power_of_two(extent: int) -> int:
    """Return the smallest power of two that is at least `extent`."""
    return 1 << (extent - 1).bit_length()


@dataclass(frozen=True)
class Term:
    """Something that each element of a tile costs, inside some loops."""

    dims: tuple[str, ...]
    weight: float
    """Bytes or operations per element."""
    loops: tuple[str, ...] = ()
    """The loops of the program around it, the innermost last."""

    def per_tile(self, blocks: Blocks) -> Real:
        """Return the cost of one tile."""
        return self.weight * product(blocks[dim] for dim in self.dims)


@dataclass(frozen=True)
class KernelSummary:
    """The work of one kernel, by block sizes."""

    extents: Mapping[str, int]
    grid: tuple[str, ...]
    loops: tuple[str, ...]
    dot_dims: frozenset[str]
    """Dimensions of contractions; their blocks have a minimum."""
    dot_rows: frozenset[str]
    """Those of the left operands that results keep."""
    dot_depths: frozenset[str]
    """Those that contractions sum."""
    inner_dims: frozenset[str]
    """Those of loops that stand in other loops."""
    batch_dims: frozenset[str]
    """Dimensions of which a contraction takes one element; their blocks are 1."""
    tensors: tuple[Term, ...]
    """Inputs and results in device memory, bytes."""
    loads: tuple[Term, ...]
    """Bytes into shared memory or registers."""
    stores: tuple[Term, ...]
    """Bytes to device memory."""
    dots: tuple[Term, ...]
    """Floating-point operations of contractions."""
    dot_reads: tuple[Term, ...]
    """Bytes that contractions read from shared memory."""
    vectors: tuple[Term, ...]
    """Other floating-point operations."""
    rounds: tuple[tuple[str, ...], ...]
    """The loops around each place where a program waits for loads."""
    registers: tuple[tuple[Term, ...], ...]
    """What is alive together in registers, bytes, at each place."""
    crowded: tuple[tuple[Term, ...], ...]
    """The same while each op runs, its operands and results counted."""
    fragments: tuple[tuple[Term, ...], ...]
    """The same at each contraction, operands from shared memory included."""
    shared: tuple[tuple[Term, ...], ...]
    """What is alive together in shared memory, bytes, in each node."""
    pieces: tuple[tuple[Term, ...], ...]
    """
    What is loaded together in small pieces, in each node: registers for each of them.

    Each has an address; those of 2 bytes pass through registers, too.
    """
    dot_type: str
    """Element type of the contractions' operands, the name of their rate."""

    def trips(self, dim: str, blocks: Blocks) -> Real:
        """Return the number of blocks along a dimension."""
        return np.ceil(self.extents[dim] / blocks[dim])

    def programs(self, blocks: Blocks) -> Real:
        """Return the number of programs."""
        return product(self.trips(dim, blocks) for dim in self.grid)

    def per_program(self, terms: Sequence[Term], blocks: Blocks) -> Real:
        """Return the sum of terms over all iterations of one program."""
        return total(
            term.per_tile(blocks) * product(self.trips(d, blocks) for d in term.loops)
            for term in terms
        )

    def moved(self, blocks: Blocks) -> Real:
        """Return the bytes that one program loads and stores."""
        loaded = total(
            term.per_tile(blocks) * self._times_loaded(term, blocks)
            for term in self.loads
        )
        return loaded + self.per_program(self.stores, blocks)

    def _times_loaded(self, tile: Term, blocks: Blocks) -> Real:
        """Return how often a tile is loaded: before the loops that do not change it."""
        times: Real = 1.0
        for dim in reversed(tile.loops):
            again = np.logical_or(dim in tile.dims, np.greater(times, 1))
            times = times * np.where(again, self.trips(dim, blocks), 1.0)
        return times

    def stands(self, tile: Term, blocks: Blocks) -> Real:
        """Return 1 where the innermost loop that repeats does not change a tile."""
        stands: Real = 0.0
        for dim in tile.loops:
            repeats = np.greater(self.trips(dim, blocks), 1)
            stands = np.where(repeats, float(dim not in tile.dims), stands)
        return stands

    def iterations(self, blocks: Blocks) -> Real:
        """Return how often one program waits for loads."""
        return total(
            product(self.trips(dim, blocks) for dim in loops) for loops in self.rounds
        )

    def peak(
        self,
        places: Sequence[Sequence[Term]],
        blocks: Blocks,
        copies: Real = 1.0,
        standing: Real = 1.0,
    ) -> Real:
        """
        Return the largest sum that is alive together, bytes.

        There are `copies` of each tile, but `standing` of one that stands still.
        """

        def alive(tile: Term) -> Real:
            stands = self.stands(tile, blocks)
            return tile.per_tile(blocks) * (stands * standing + (1 - stands) * copies)

        return longest(total(map(alive, place)) for place in places)


class _Walk:
    """Collects the terms of a summary from a tile tree."""

    def __init__(self, levels: GpuLevels):
        self.levels = levels
        self.loads: list[Term] = []
        self.stores: list[Term] = []
        self.dots: list[Term] = []
        self.dot_reads: list[Term] = []
        self.vectors: list[Term] = []
        self.rounds: list[tuple[str, ...]] = []
        self.registers: list[tuple[Term, ...]] = []
        self.crowded: list[tuple[Term, ...]] = []
        self.fragments: list[tuple[Term, ...]] = []
        self.shared: list[tuple[Term, ...]] = []
        self.pieces: list[tuple[Term, ...]] = []
        self.held: dict[SSAValue, Term | None] = {}
        self.dot_dims: set[str] = set()
        self.dot_rows: set[str] = set()
        self.dot_depths: set[str] = set()
        self.inner_dims: set[str] = set()
        self.batch_dims: set[str] = set()
        self.dot_type = "f32"

    def node(
        self,
        op: NodeOp,
        loops: tuple[str, ...],
        outer: Sequence[SSAValue],
        loaded: tuple[SSAValue, ...] = (),
    ) -> None:
        """Visit a node; `outer` is alive in registers around it, `loaded` in shared."""
        inside = loops
        if isinstance(op, TemporalOp):
            inside = (*loops, *op.factors)
            self.inner_dims |= set(op.factors) if loops else set()
        loaded_here = tuple(loads(op))
        self.loads += [_bytes(load.tile, inside) for load in loaded_here]
        if loaded_here:
            self.rounds.append(inside)
        small = (_pieces(load.outer, load.tile, inside) for load in loaded_here)
        self.pieces.append(tuple(term for term in small if term is not None))
        own = (tile for tile in op.tiles if level_of(tile) == self.levels.shared)
        loaded = (*loaded, *own)
        self.shared.append(tuple(_bytes(tile, inside) for tile in loaded))
        self.stores += [_bytes(store.tile, inside) for store in stores(op)]
        self.body(op, inside, outer, loaded)

    def body(
        self,
        op: NodeOp,
        loops: tuple[str, ...],
        outer: Sequence[SSAValue],
        loaded: tuple[SSAValue, ...],
    ) -> None:
        """Visit the ops of a node and record what is alive before and after each."""
        block = op.body.block
        last = _last_uses(block)
        alive = dict.fromkeys([*outer, *block.args, *_accumulators(op)])
        for inner in block.ops:
            self._record(alive)
            crowd = dict.fromkeys((*alive, *inner.results))
            self.crowded.append(self._in_registers(crowd))
            if isinstance(inner, NodeOp):
                around = [value for value in alive if value not in inner.operands]
                self.node(inner, loops, around, loaded)
            else:
                self._count(inner, loops, alive)
            for value in [v for v in alive if last.get(v) is inner]:
                del alive[value]
            alive |= dict.fromkeys(inner.results)
        self._record(alive)

    def _record(self, alive: Mapping[SSAValue, None]) -> None:
        self.registers.append(self._in_registers(alive))

    def _in_registers(self, alive: Mapping[SSAValue, None]) -> tuple[Term, ...]:
        held = (self._held(tile) for tile in alive)
        return tuple(term for term in held if term is not None)

    def _held(self, tile: SSAValue) -> Term | None:
        """Return what a tile takes of registers, None if it lives elsewhere."""
        if tile not in self.held:
            here = level_of(tile) == self.levels.registers
            self.held[tile] = _bytes(tile) if here else None
        return self.held[tile]

    def _count(
        self, op: Operation, loops: tuple[str, ...], alive: Mapping[SSAValue, None]
    ) -> None:
        if not op.results or isinstance(op, FillOp):
            return
        dims = iteration_dims(op)
        if not isinstance(op, ContractOp):
            weight = VECTOR_WEIGHTS.get(op.kind.data, 1) if isinstance(op, MapOp) else 1
            weight = 2 if isinstance(op, ReduceOp) else weight
            self.vectors.append(Term(dims, weight, loops))
            return
        self.dots.append(Term(dims, 2, loops))
        kept, summed = set(names_of(op.result)), set(names_of(op.lhs))
        batch = _batch_dims(op)
        self.dot_dims |= set(dims) - batch
        self.dot_rows |= (kept & summed) - batch
        self.dot_depths |= summed - kept
        self.batch_dims |= batch
        together = dict.fromkeys((*alive, op.result))
        reads = [_bytes(value, loops) for value in op.operands]
        copied = (self._held(value) for value in op.operands)
        operands = (copy or read for copy, read in zip(copied, reads, strict=True))
        self.fragments.append((*self._in_registers(together), *operands))
        self.dot_type = rate_name(element_type_of(op.lhs))
        self.dot_reads += reads


def _batch_dims(op: ContractOp) -> set[str]:
    """
    Return the dimensions of which a product of two matrices has one element.

    These are the ones that all three values have; and of several rows, columns or
    summed dimensions all but the last, whose elements lie nearest to each other.
    """
    lhs, rhs, out = (extents_of(value) for value in (op.lhs, op.rhs, op.result))
    shared = lhs.keys() & rhs.keys()
    rows = [dim for dim in lhs if lhs[dim] > 1 and dim not in shared]
    columns = [dim for dim in rhs if rhs[dim] > 1 and dim not in shared]
    summed = [dim for dim in rhs if rhs[dim] > 1 and dim in shared - out.keys()]
    others = {*rows[:-1], *columns[:-1], *summed[:-1]}
    return (shared & out.keys()) | others


def _accumulators(op: NodeOp) -> Iterator[SSAValue]:
    """Yield the yielded values whose running result stays alive in the body."""
    for value, combiner in zip(op.yielded, op.combiners, strict=True):
        if combiner is not Combiner.NONE:
            yield value


def _last_uses(block: Block) -> dict[SSAValue, Operation]:
    return {value: op for op in block.ops for value in op.operands}


def _bytes(value: SSAValue, loops: tuple[str, ...] = ()) -> Term:
    return Term(names_of(value), element_type_of(value).bitwidth / 8, loops)


def _pieces(value: SSAValue, tile: SSAValue, loops: tuple[str, ...]) -> Term | None:
    """Return the registers for the pieces of a tile; None if they are large enough."""
    piece = bytes_at_a_time(value)
    if piece >= LARGE_PIECE:
        return None
    registers = 2 if piece >= COPIED_PIECE else 3
    pieces = element_type_of(tile).bitwidth / 8 / piece
    return Term(names_of(tile), registers * REGISTER * pieces, loops)


def _tensors(node: SpatialOp, levels: GpuLevels) -> Iterator[SSAValue]:
    """Yield the tensors in device memory: inputs, results, and what sweeps keep."""
    yield from dict.fromkeys((*node.ins, *node.outs))
    for op in node.walk():
        if not isinstance(op, TemporalOp):
            continue
        for result in op.outs:
            read = any(isinstance(use.operation, NodeOp) for use in result.uses)
            if level_of(result) == levels.memory and read:
                yield result


def tile_blocks(node: SpatialOp) -> dict[str, int]:
    """Return the block that holds the largest tile of each dimension."""
    blocks: dict[str, int] = {}
    for op in node.walk():
        if not isinstance(op, NodeOp):
            continue
        for outer, tile in zip(op.ins, op.tiles, strict=True):
            for dim, extent in extents_of(tile).items():
                blocks.setdefault(dim, power_of_two(extents_of(outer)[dim]))
                if dim in op.factors:
                    blocks[dim] = power_of_two(extent)
    for value in node.outs:
        for dim, extent in extents_of(value).items():
            blocks.setdefault(dim, power_of_two(extent))
    return blocks


def summarize(node: SpatialOp, levels: GpuLevels) -> KernelSummary:
    """Return the summary of the kernel under a grid node, whatever its factors."""
    walk = _Walk(levels)
    walk.node(node, (), ())
    extents: dict[str, int] = {}
    for value in (*node.ins, *node.outs):
        extents |= extents_of(value)
    nodes = [op for op in node.walk() if isinstance(op, TemporalOp)]
    loops = dict.fromkeys(dim for op in nodes for dim in op.factors)
    return KernelSummary(
        extents=extents,
        grid=tuple(node.factors),
        loops=tuple(loops),
        dot_dims=frozenset(walk.dot_dims),
        dot_rows=frozenset(walk.dot_rows),
        dot_depths=frozenset(walk.dot_depths),
        inner_dims=frozenset(walk.inner_dims),
        batch_dims=frozenset(walk.batch_dims),
        tensors=tuple(map(_bytes, _tensors(node, levels))),
        loads=tuple(walk.loads),
        stores=tuple(walk.stores),
        dots=tuple(walk.dots),
        dot_reads=tuple(walk.dot_reads),
        vectors=tuple(walk.vectors),
        rounds=tuple(walk.rounds),
        registers=tuple(walk.registers),
        crowded=tuple(walk.crowded),
        fragments=tuple(walk.fragments),
        shared=tuple(walk.shared),
        pieces=tuple(walk.pieces),
        dot_type=walk.dot_type,
    )
